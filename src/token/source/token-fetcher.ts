/**
 * What a token source gets its tokens from. Fetchers wrap one another: the cache file wraps the credential rotation, which wraps the
 * fleet's shared store, which wraps the token endpoint.
 */
import type { Clock, Random } from '../../platform/clock.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import type { ClientCredential } from '../client/client-authentication.ts';
import type { StoredToken } from '../store/sealed-token.ts';
import type { TokenRequestResult } from '../endpoint/token-response.ts';
import type { Token } from '../token.ts';

/** What the parts of one credential share. */
export interface TokenPartOptions {
  readonly credential: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: EventObserver;
}

export interface TokenNeed {
  /**
   * `first`: none is held. `refresh`: the held one expires soon. `unauthorized`: the upstream rejected the held one.
   * `rotated`: the held one is good, and the credentials for its refresh have changed.
   */
  readonly reason: 'first' | 'refresh' | 'unauthorized' | 'rotated';
  /** The token to replace: a fetcher must not return it again. */
  readonly held: Token | undefined;
}

/** A token that an earlier process or another replica had requested. */
export interface ReusedToken {
  readonly kind: 'found';
  readonly token: StoredToken;
  readonly from: string;
}

export type TokenFetchResult = (TokenRequestResult | ReusedToken) & {
  /** The previous token may have been revoked: it is not used for the time of a replication. Default false. */
  readonly isUsedAtOnce?: boolean;
};

export type DeclinableFetchResult =
  | TokenFetchResult
  /** Only for `rotated`: the new credentials were rejected, and nothing changes. */
  | { readonly kind: 'declined' };

/** Gets a token with one credential: from the endpoint, or from another replica. Never rejects, settles in bounded time. */
export type SendTokenRequest = (
  credential: ClientCredential,
  signal: AbortSignal,
  need: TokenNeed,
) => Promise<TokenFetchResult>;

export interface TokenFetcher {
  /** Settles in bounded time; a thrown error is never shown. */
  fetch(need: TokenNeed, signal: AbortSignal): Promise<DeclinableFetchResult>;
}
