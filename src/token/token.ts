/**
 * The contract between the token folder and its callers: an access token, and a source of tokens.
 * A token request passes source/ (when to request) → store/ (cache file, fleet) and client/ (which credential) → endpoint/ (HTTP).
 */

/** An access token in memory (RFC 6749 §1.4). Never logged, never part of an error. */
export interface Token {
  /** The bearer value: visible ASCII (0x21 to 0x7E) without a comma, so that it can neither break nor split a header field. */
  readonly value: string;
  /** Rises with every token of this source. Orders tokens, and identifies one safely in a log. */
  readonly serial: number;
  /** Granted scope (RFC 6749 §5.1); undefined = unknown (absent or empty). */
  readonly scope: string | undefined;
  /** Start of the token request, the earliest start of the lifetime; on the suspend-aware clock. */
  readonly obtainedAt: number;
  /** End of the lifetime, on the suspend-aware clock; Infinity for none. */
  readonly expiresAt: number;
  /** The same end by the wall clock, epoch milliseconds. For display only, never for a decision. */
  readonly expiresWallAt: number;
}

/** One attempt's use of a token, from the moment its permit is spent. */
export interface TokenUse {
  readonly token: Token;
  /** On the clock of the token. */
  readonly takenAt: number;
}

/** What the choice of a token depends on: the request that needs one. */
export interface TokenCaller {
  /** Monotonic. A call waits at most `auth.settleMs` from here on for a token that the upstream accepts. */
  readonly arrivedAt: number;
  /** Whether it can be sent again after a 401. Default true. */
  readonly canReplay?: boolean;
}

/** `closed`: requests are sent as needed. `open`: the endpoint fails, and gets single requests at intervals. `half-open`: one of them is in flight. */
export type CircuitPhase = 'closed' | 'open' | 'half-open';

/** Why the newest credentials are not in use while older ones are. */
export interface CredentialFault {
  /** Safe to log. */
  readonly detail: string;
  /** When the fault was first seen, epoch milliseconds. */
  readonly wallAt: number;
}

/** What the admin port and the metrics show of a source. Holds no secret. */
export interface TokenState {
  readonly credential: string;
  /** The file of a token that another program renews. Default: the token is requested */
  readonly file?: string;
  /** `none`: never obtained, or expired. `suspect`: rejected by the upstream, and its refresh is in flight or has failed. */
  readonly status: 'none' | 'valid' | 'suspect';
  /** The upstream does not accept the newest token yet, and the previous one is used (replication delay). */
  readonly usesPrevious: boolean;
  readonly serial: number;
  readonly scope: string | undefined;
  /** Epoch milliseconds; undefined without a token, and for one without an expiry. */
  readonly expiresWallAt: number | undefined;
  /** Remaining lifetime in milliseconds; undefined without a token, and for one without an expiry. */
  readonly validForMs: number | undefined;
  /** Requested scopes that were not granted; empty when all were, or when that is unknown. */
  readonly missingScopes: readonly string[];
  readonly consecutiveFailures: number;
  /** Cleared by a success. */
  readonly lastFailure:
    | {
        readonly outcome: 'rejected' | 'unavailable' | 'malformed';
        readonly detail: string;
        readonly wallAt: number;
        /** No request was sent, because a file that it needs cannot be used. Default false. */
        readonly isUnsent?: boolean;
      }
    | undefined;
  readonly circuit: CircuitPhase;
  readonly credentialFault: CredentialFault | undefined;
  /** Why the next process cannot request a token, and what to do. Default: it can */
  readonly refreshTokenFault?: string | undefined;
  /** Milliseconds until the next token request; undefined when none is planned. */
  readonly nextRequestInMs: number | undefined;
  readonly hasHadToken: boolean;
}

/** The access token of one credential: held, refreshed before it expires, replaced after a 401. */
export interface TokenSource {
  /** Starts the first fetch and the refresh ahead of expiry. Does not wait, does not throw. */
  start(): void;
  /** Requests a token if none is held, as soon as a waiting request would; for callers that have no request. */
  requestIfMissing(): void;
  /** Cancels timers and the fetch in flight, and rejects the waiters. */
  stop(): void;
  /** Settles when no refresh token is on its way to a file. Default: none ever is */
  readonly whenKept?: Promise<unknown> | undefined;
  /**
   * The use of a token for a call that is sent now; undefined when it has to wait: none is held, it expires too soon, or a refresh or
   * another call shows first which one the upstream accepts. Changes nothing.
   * @param caller Default: one that waits only for a token request
   * @param now what the monotonic clock has just given. Default: it is read
   */
  current(caller?: TokenCaller, now?: number): TokenUse | undefined;
  /**
   * Resolves as soon as `current()` would return a token. Callers share one token request (single flight); `signal` ends
   * only this wait (rejects with its reason). Rejects at once while the circuit is open.
   * @throws SidecarError TOKEN_REJECTED, TOKEN_UNAVAILABLE
   */
  waitForToken(signal: AbortSignal, caller?: TokenCaller): Promise<Token>;
  /** The upstream did not reject the token. @param isReplay of a call that was rejected: resets the cooldown */
  recordAccepted(tokenUse: TokenUse, isReplay: boolean): void;
  /**
   * The upstream rejected exactly this token with 401. Starts one shared refresh, where the cooldown allows and no other kept token may
   * be accepted. A late 401 for a token that is no longer kept changes nothing.
   */
  recordRejected(tokenUse: TokenUse): void;
  /**
   * After `recordRejected`: waits for the shared refresh, and up to `auth.settleMs` for a token that is accepted. False when the 401 goes
   * to the client. `signal` ends only this wait (rejects with its reason).
   */
  waitForReplacement(tokenUse: TokenUse, signal: AbortSignal): Promise<boolean>;
  state(): TokenState;
}
