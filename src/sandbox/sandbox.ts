/**
 * The simulated partner as a whole: an authorization server and a Sales API in this process, with credentials made for
 * this start alone. Putting the sidecar in front of them, and printing, are left to others.
 */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../platform/clock.ts';
import { systemClock } from '../platform/clock.ts';
import { startAuthorizationServer } from './authorization-server.ts';
import type { HiddenLimitOptions } from './hidden-limit.ts';
import type { LoopbackServer } from './loopback-server.ts';
import { DEFAULT_LIMIT, startSalesApi } from './sales-api.ts';
import { KNOWN_SCOPES } from './token-request.ts';

export interface SandboxOptions {
  /** The one client that the authorization server knows. Default: random. */
  readonly client?: { readonly id: string; readonly secret: string };
  /** Life of a token. Default 3 600 000. */
  readonly tokenLifetimeMs?: number;
  /** The API's hidden rate limit. Default: 5 permits per second, 5 saved up, `Retry-After` on a 429. */
  readonly limit?: HiddenLimitOptions;
  /** All tokens are revoked again and again, this often. Default: never. */
  readonly revokeEveryMs?: number;
  /** Default: the process's clock. */
  readonly clock?: Clock;
}

/** What a sidecar needs to know to stand in front of it, and what a test may ask it to do. */
export interface Sandbox {
  /** The authorization server's origin: `auth.url`. */
  readonly authUrl: URL;
  /** The full token endpoint. */
  readonly tokenUrl: URL;
  /** The API's base with its path, `…/v1`: `upstream.baseUrl`. */
  readonly apiUrl: URL;
  readonly clientId: string;
  /** Never printed. */
  readonly clientSecret: string;
  readonly audience: string;
  /** Every scope that the API asks for, separated by spaces. */
  readonly scope: string;
  /** Tokens issued so far. */
  tokensIssued(): number;
  /** Every token issued until now is refused from now on. */
  revokeTokens(): void;
  /** How many answers the API sent with this status. */
  apiResponseCount(status: number): number;
  /** Ends both servers at once; further calls wait for the same end. */
  close(): Promise<void>;
}

/** A name that can never be a real host (RFC 2606). */
const AUDIENCE = 'https://sales-api.sandbox.invalid/';

/**
 * Starts both servers on loopback ports that the system chooses.
 * @throws the listen error of node:net; nothing is left running then
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { clock = systemClock, tokenLifetimeMs = 3_600_000, limit = DEFAULT_LIMIT } = options;
  const { id: clientId, secret: clientSecret } = options.client ?? createRandomClient();
  const authorization = await startAuthorizationServer({
    clientId,
    clientSecret,
    audiences: [AUDIENCE],
    tokenLifetimeMs,
    clock,
  });
  const apiOptions = { tokens: authorization, audience: AUDIENCE, limit, clock };
  const api = await startSalesApi(
    options.revokeEveryMs === undefined ? apiOptions : { ...apiOptions, revokeEveryMs: options.revokeEveryMs },
  ).catch(async (error: unknown) => {
    await authorization.close();
    throw error;
  });
  return {
    authUrl: authorization.url,
    tokenUrl: authorization.tokenUrl,
    apiUrl: api.baseUrl,
    clientId,
    clientSecret,
    audience: AUDIENCE,
    scope: KNOWN_SCOPES.join(' '),
    tokensIssued: () => authorization.tokensIssued(),
    revokeTokens: () => {
      authorization.revokeAll();
    },
    apiResponseCount: (status) => api.responseCount(status),
    close: () => closeAll([authorization, api]),
  };
}

async function closeAll(servers: readonly LoopbackServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.close()));
}

/** 32 bytes in base64 end with `=`, so that a client that form-encodes its secret first is refused here. */
function createRandomClient() {
  return { id: `sandbox-${randomBytes(4).toString('hex')}`, secret: randomBytes(32).toString('base64') };
}
