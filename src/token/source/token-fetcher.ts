/**
 * Where the next token comes from, as its source sees it: one function that is handed in. Behind it may be the token
 * endpoint, a file of an earlier run or a store that neighbours share, each wrapped around the next.
 */
import type { Cancel } from '../../platform/clock.ts';
import type { StoredToken } from '../store/sealed-token.ts';
import type { TokenRequestResult } from '../endpoint/token-response.ts';
import type { CredentialFault, Token } from '../token.ts';

/** Why a token is asked for. */
export interface TokenNeed {
  /**
   * `first`: none is held. `renewal`: the held one nears its end. `unauthorized`: the upstream refused the held one.
   * `rotated`: the held one is fine, and the credentials that would renew it have changed.
   */
  readonly reason: 'first' | 'renewal' | 'unauthorized' | 'rotated';
  /** The one to be replaced: it must not be handed out again. */
  readonly held: Token | undefined;
}

/** A token that had been asked for before, by an earlier run or by a neighbour. */
export interface ReusedToken {
  readonly kind: 'found';
  readonly token: StoredToken;
  readonly from: string;
}

export type DeclinableFetchResult =
  | TokenRequestResult
  | ReusedToken
  /** Only to `rotated`: the new credentials were refused, and nothing changes. */
  | { readonly kind: 'declined' };

/** Must settle in bounded time; what is thrown is never shown. */
export type FetchToken = (need: TokenNeed, signal: AbortSignal) => Promise<DeclinableFetchResult>;

export interface TokenFetcher {
  readonly fetch: FetchToken;
  /** Calls `onNews` each time that there are credentials worth a token request of their own, until it is cancelled. */
  watchCredentials(onNews: () => void): Cancel;
  credentialFault(): CredentialFault | undefined;
}
