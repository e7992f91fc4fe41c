/** The simulated partner: an authorization server and a Sales API in this process, with a client created at start. */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../platform/clock.ts';
import { systemClock } from '../platform/clock.ts';
import { startAuthorizationServer } from './authorization-server.ts';
import type { HiddenLimitOptions } from './hidden-limit.ts';
import type { LoopbackServer } from './loopback-server.ts';
import { DEFAULT_LIMIT, startSalesApi } from './sales-api.ts';
import { KNOWN_SCOPES } from './token-request.ts';

export interface SandboxOptions {
  /** The client that the authorization server knows. Default: random. */
  readonly client?: { readonly id: string; readonly secret: string };
  /** Lifetime of a token. Default 3 600 000. */
  readonly tokenLifetimeMs?: number;
  /** The API's hidden rate limit. Default: 5 permits per second, 5 saved up, `Retry-After` on a 429. */
  readonly limit?: HiddenLimitOptions;
  /** Interval at which all tokens are revoked. Default: never. */
  readonly revokeEveryMs?: number;
  /** Default: the system clock. */
  readonly clock?: Clock;
}

/** A running sandbox. */
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
  /** All scopes of the API, separated by spaces. */
  readonly scope: string;
  /** The number of tokens issued so far. */
  tokensIssued(): number;
  /** Revokes every token issued so far. */
  revokeTokens(): void;
  /** The number of API responses with this status. */
  apiResponseCount(status: number): number;
  /** Closes both servers; further calls wait for the same end. */
  close(): Promise<void>;
}

/** A name that is never a real host (RFC 2606). */
const AUDIENCE = 'https://sales-api.sandbox.invalid/';

/**
 * Starts both servers on free loopback ports.
 * @throws the listen error of node:net, after closing both
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

/** 32 bytes in base64 end with `=`, so that a client that form-encodes its secret first is rejected here. */
function createRandomClient() {
  return { id: `sandbox-${randomBytes(4).toString('hex')}`, secret: randomBytes(32).toString('base64') };
}
