/**
 * The store in which the replicas of a fleet share one token per credential. It has one record per credential and sees
 * record names and sealed texts only; fleet/shared-token implements it over Redis. Others may write to it: what it returns is checked
 * by its sealed parts. A lease says which replica sends the token request. Claiming again renews it, and it expires, so that a dead
 * replica does not block the others.
 */

/** The length of a sealed text with the longest token and a long scope. The store treats a longer one as absent. */
export const MAX_STORED_CHARS = 64 * 1024;

/** Asks for the shared token, or for the right to request one. */
export interface ClaimRequest {
  readonly owner: string;
  /** How long no other replica may send the token request, unless the claim is repeated; milliseconds. */
  readonly leaseMs: number;
  /** A stored token or failure that the replica does not take: the store acts as if it were not there. */
  readonly declined: string | undefined;
  /** True also removes `declined` for all replicas, if it is still stored. */
  readonly isUseless: boolean;
}

/** Instants by the store's clock, epoch milliseconds. */
export type ClaimResult =
  | { readonly kind: 'found'; readonly sealed: string; readonly storeNow: number }
  | { readonly kind: 'taken'; readonly owner: string }
  /** Another replica's token request failed: send none for `leftMs`. */
  | { readonly kind: 'failed'; readonly sealed: string; readonly storeNow: number; readonly leftMs: number }
  | { readonly kind: 'yours'; readonly storeNow: number };

export interface PublishRequest {
  readonly owner: string;
  readonly sealed: string;
  /** End of the token's lifetime by the store's clock, milliseconds: the record may be dropped then. */
  readonly expiresAt: number;
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
}
