/** The simulated partner: an authorization server and a Sales API in this process, with a client created at start. */
import { randomBytes } from 'node:crypto';
import { systemClock } from '../platform/clock.ts';
import { startAuthorizationServer } from './authorization-server.ts';
import { createServerIdentity } from './certificate.ts';
import { startSalesApi } from './sales-api.ts';
import { DEFAULT_SCENARIO, KNOWN_SCOPES } from './scenario.ts';

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

/** A name that is never a real host (RFC 2606). */
const AUDIENCE = 'https://sales-api.sandbox.invalid/';

/** @throws the listen error of node:net, after closing both servers */
export async function startSandbox(client = createRandomClient(), scenario = DEFAULT_SCENARIO) {
  const identity = createServerIdentity(systemClock.wallNow());
  const registered = { ...client, audience: AUDIENCE };
  const authorization = await startAuthorizationServer(identity, registered, scenario, systemClock);
  const { issuer: tokens } = authorization;
  const options = { identity, tokens, audience: AUDIENCE, clock: systemClock, scenario };
  const api = await startSalesApi(options).catch(async (error: unknown) => {
    await authorization.close();
    throw error;
  });
  return {
    /** What clients of both servers trust, in PEM, and where others get it. */
    certificate: identity.cert,
    certificateUrl: authorization.certificateUrl,
    // The names are those of the settings; the secret is never printed.
    authUrl: authorization.url,
    tokenUrl: authorization.tokenUrl,
    apiUrl: api.baseUrl,
    clientId: client.id,
    clientSecret: client.secret,
    audience: AUDIENCE,
    scope: KNOWN_SCOPES.join(' '),
    /** Closes both servers; further calls wait for the same end. */
    close: async (): Promise<void> => {
      await Promise.all([authorization.close(), api.close()]);
    },
  };
}

/** 32 bytes in base64 end with `=`, so that a client that form-encodes its secret first is rejected here. */
function createRandomClient() {
  return { id: `sandbox-${randomBytes(4).toString('hex')}`, secret: randomBytes(32).toString('base64') };
}
