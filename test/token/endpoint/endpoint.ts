/** Token endpoints for tests, by default with a client secret, and one complete request. */
import { selectNoProxy } from '../../../src/platform/egress/proxy-selector.ts';
import type { SecretSource } from '../../../src/token/client/secret-file.ts';
import { parseTokenResponse } from '../../../src/token/endpoint/token-response.ts';
import type { TokenRequestResult, TokenResponseForm } from '../../../src/token/endpoint/token-response.ts';
import { createEchoFilter } from '../../../src/token/endpoint/server-text.ts';
import { TokenEndpoint, type TokenEndpointOptions } from '../../../src/token/endpoint/token-endpoint.ts';
import { readMadeAt } from '../../../src/platform/origin-clock.ts';
import { ManualClock } from '../../support/manual-clock.ts';

/** Values of extra parameters or header fields. */
export function valuesOf(map: Readonly<Record<string, string>>): Record<string, SecretSource> {
  return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, { kind: 'value', value }]));
}

export const SECRET = 'pä:ß%2B+/=';

const STANDARD_FORM: TokenResponseForm = {
  tokenField: 'access_token',
  expiresInField: 'expires_in',
  expiresInUnit: 'seconds',
  defaultLifetimeMs: 300_000,
};

/** The body of a 200, which echoes nothing. @param form what differs from the standard form */
export function parseResponse(body: string, form: Partial<TokenResponseForm> = {}): TokenRequestResult {
  const made = readMadeAt(undefined, undefined, new ManualClock().wallNow());
  const echoFilter = createEchoFilter({ clientId: '', sentSecrets: [] }, { valuesToRedact: [] }, { scope: undefined });
  return parseTokenResponse(body, echoFilter, { ...STANDARD_FORM, ...form }, { status: 200, made });
}

/** @param address a token URL, or an issuer as it names itself */
export function buildEndpoint(address: URL | string, options: Partial<TokenEndpointOptions> = {}): TokenEndpoint {
  return new TokenEndpoint({
    endpoint:
      address instanceof URL
        ? { kind: 'url', url: address }
        : { kind: 'issuer', issuer: address, allowInsecureHttp: false },
    clientId: { kind: 'value', value: 'client-1' },
    method: { name: 'client_secret_basic', secret: { kind: 'value', value: SECRET }, encoding: 'raw' },
    clientCertificate: undefined,
    audience: ['https://api.test/'],
    scope: undefined,
    resource: [],
    extraParameters: {},
    extraHeaders: {},
    grantType: 'client_credentials',
    bodyFormat: 'form',
    assertionGrant: undefined,
    timeoutMs: 10_000,
    ...STANDARD_FORM,
    userAgent: 'test-agent/1',
    caFile: undefined,
    egress: selectNoProxy,
    clock: new ManualClock(),
    observe: () => undefined,
    ...options,
  });
}

/** Reads the credential and sends one request with it; an unreadable credential is `unavailable`, as in the sidecar. */
export async function askOnce(
  endpoint: TokenEndpoint,
  signal: AbortSignal = new AbortController().signal,
): Promise<TokenRequestResult> {
  const credential = await endpoint.readCredential();
  if (credential.kind === 'unreadable') return { kind: 'unavailable', detail: credential.detail };
  return endpoint.request(credential, signal);
}
