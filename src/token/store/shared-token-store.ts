/**
 * What shared-tokens needs of the place where replicas meet: a board with one entry for each credential. It sees names, marks and
 * sealed texts only. What it is built on is decided where things are wired.
 */

/** A wish for the token under a name, or for the right to ask for it. */
export interface ClaimRequest {
  /** Who claims; the same for all claims of one replica. */
  readonly owner: string;
  /** For how long nobody else asks, unless the claim is repeated. */
  readonly leaseMs: number;
  /** Mark of the token that is to be replaced: it is not handed out. */
  readonly excludedMark: string | undefined;
  /** True takes that token off the board for all, if it is still the one posted. */
  readonly isRefused: boolean;
  /** A posted token with less than this share of its life left is not handed out. */
  readonly minRemainingShare: number;
}

export type ClaimResult =
  | { readonly kind: 'found'; readonly sealed: string; readonly leftMs: number }
  /** Another replica asks: the one with this name. */
  | { readonly kind: 'taken'; readonly owner: string }
  /** Another replica has asked in vain: for so long nobody should. */
  | { readonly kind: 'failed'; readonly sealed: string; readonly leftMs: number }
  /** The claimant asks. */
  | {
      readonly kind: 'yours';
      /** By the board's clock, milliseconds. */
      readonly storeNow: number;
    };

export interface PublishRequest {
  readonly owner: string;
  readonly sealed: string;
  readonly mark: string;
  /** End of the token's life by the board's clock, milliseconds. */
  readonly expiresAt: number;
  readonly lifetimeMs: number;
}

/** Nothing rejects. Undefined: the board cannot be asked now. False: another replica has the lease. */
export interface SharedTokenStore {
  /** Whether asking makes sense, after a short wait where that is likely to change it. */
  whenReady(): Promise<boolean>;
  claim(name: string, request: ClaimRequest): Promise<ClaimResult | undefined>;
  /** Posts a token, ends the lease, forgets the last failure. */
  publish(name: string, posting: PublishRequest): Promise<boolean | undefined>;
  /**
   * Posts a failure and ends the lease. For `holdMs` no other replica asks; if one wanted to, it then has as long again to
   * do so before this owner does.
   */
  publishFailure(name: string, owner: string, sealed: string, holdMs: number): Promise<boolean | undefined>;
  /** Ends the lease. */
  releaseLease(name: string, owner: string): Promise<boolean | undefined>;
  /** Takes a posted text off the board, if it is still there. */
  discardUnreadable(name: string, sealed: string): Promise<boolean | undefined>;
}
