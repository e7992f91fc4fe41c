/**
 * The store in which the replicas of a fleet share one token per credential. It has one record per credential and sees
 * record names, token marks and sealed texts only; fleet/shared-token implements it over Redis. A lease says which replica
 * sends the token request. Claiming again renews it, and it expires, so that a dead replica does not block the others.
 */

/** Asks for the shared token, or for the right to request one. */
export interface ClaimRequest {
  /** Identifies the claiming replica. */
  readonly owner: string;
  /** How long no other replica may send the token request, unless the claim is repeated. */
  readonly leaseMs: number;
  /** Mark of the token to replace: it is not returned. */
  readonly excludedMark: string | undefined;
  /** True also removes that token for all replicas, if it is still the stored one. */
  readonly isRefused: boolean;
  /** A token with less than this share of its lifetime left is not returned. */
  readonly minRemainingShare: number;
}

export type ClaimResult =
  | { readonly kind: 'found'; readonly sealed: string; readonly leftMs: number }
  /** Another replica holds the lease. */
  | { readonly kind: 'taken'; readonly owner: string }
  /** Another replica's token request failed: send none for `leftMs`. */
  | { readonly kind: 'failed'; readonly sealed: string; readonly leftMs: number }
  /** The claimant holds the lease. */
  | {
      readonly kind: 'yours';
      /** By the store's clock, milliseconds. */
      readonly storeNow: number;
    };

export interface PublishRequest {
  readonly owner: string;
  readonly sealed: string;
  readonly mark: string;
  /** End of the token's lifetime by the store's clock, milliseconds. */
  readonly expiresAt: number;
  readonly lifetimeMs: number;
}

/** No call rejects. Undefined: the store is not available now. False: another replica holds the lease. */
export interface SharedTokenStore {
  /** Whether a call makes sense; waits briefly if that is likely to make it so. */
  whenReady(): Promise<boolean>;
  claim(name: string, request: ClaimRequest): Promise<ClaimResult | undefined>;
  /** Stores a token, ends the lease, removes the last failure. */
  publish(name: string, token: PublishRequest): Promise<boolean | undefined>;
  /**
   * Stores a failure and ends the lease. For `holdMs` no other replica sends a token request; if one wanted to, it then has
   * another `holdMs` to do so before this owner may.
   */
  publishFailure(name: string, owner: string, sealed: string, holdMs: number): Promise<boolean | undefined>;
  releaseLease(name: string, owner: string): Promise<boolean | undefined>;
  /** Removes exactly this sealed text, if it is still stored. */
  discardUnreadable(name: string, sealed: string): Promise<boolean | undefined>;
}
