/**
 * The words that the token folder and its users share: what a token is, and what a source of them promises.
 */

/** An access token in memory (RFC 6749 §1.4). Never logged, never put in an error. */
export interface Token {
  /** The bearer value, checked against RFC 6750 §2.1 `b64token`, so that it cannot break a field line. */
  readonly value: string;
  /** Rises with every token obtained by this source: the order of tokens, and a name for one that is safe to log. */
  readonly serial: number;
  /** Scope granted (RFC 6749 §5.1); undefined when absent or empty, which means unknown. */
  readonly scope: string | undefined;
  /** When it was asked for, which is the earliest its life can have begun, and when its life ends; of the life clock. */
  readonly obtainedAt: number;
  readonly expiresAt: number;
  /** The same end on the wall clock as it stood then, epoch milliseconds: for showing, not for deciding. */
  readonly expiresWallAt: number;
}

/** What a caller does after the upstream refused a token with 401. */
export type UnauthorizedDecision =
  /** A newer token is held: send the request once more. */
  | { readonly kind: 'replay' }
  /** No newer token is to be had now: the 401 goes to the client. */
  | { readonly kind: 'pass-through' };

/** `closed`: asked when needed. `open`: known to fail, probed now and then. `half-open`: such a probe is under way. */
export type CircuitPhase = 'closed' | 'open' | 'half-open';

/** What is wrong with the newest credentials while older ones are in use. */
export interface CredentialFault {
  /** Fit for a log. */
  readonly detail: string;
  /** Since when, epoch milliseconds. */
  readonly wallAt: number;
}

/** What the admin port and the metrics show of a source. Holds no secret. */
export interface TokenState {
  readonly credential: string;
  /** `none`: never obtained or expired; `valid`; `suspect`: refused by the upstream, a refresh is under way or failed. */
  readonly status: 'none' | 'valid' | 'suspect';
  readonly serial: number;
  readonly scope: string | undefined;
  /** Epoch milliseconds; undefined without a token. */
  readonly expiresWallAt: number | undefined;
  /** Milliseconds of life left; undefined without a token. */
  readonly validForMs: number | undefined;
  /** Asked for and not granted; empty when all is granted or it is unknown. */
  readonly missingScopes: readonly string[];
  /** Failures of the token endpoint in a row. */
  readonly consecutiveFailures: number;
  /** The last failure in words, cleared by a success. */
  readonly lastFailure:
    | { readonly outcome: 'rejected' | 'unavailable' | 'malformed'; readonly detail: string; readonly wallAt: number }
    | undefined;
  /** Of the token endpoint. */
  readonly circuit: CircuitPhase;
  readonly credentialFault: CredentialFault | undefined;
  /** When the token endpoint is asked next, milliseconds from now; undefined when nothing is planned. */
  readonly nextRequestInMs: number | undefined;
  /** True once the first token was held, and from then on. */
  readonly hasHadToken: boolean;
}

export interface TokenSource {
  /** Begins the first fetch and the refresh ahead of expiry. Does not wait, does not throw. */
  start(): void;
  /** Somebody waits for a token to be held, with no request in hand: the next try comes as soon as for a request. */
  requestIfMissing(): void;
  /** Ends timers and the fetch under way; waiters are refused. */
  stop(): void;
  /**
   * The token that may be sent at this very moment, or undefined: none held, or too near its end for a flight.
   * A suspect token is given only when its refresh has failed.
   */
  current(): Token | undefined;
  /**
   * Resolves as soon as `current()` would give a token. Shares the one fetch under way; `signal` ends this wait only,
   * never the shared fetch (rejecting with the signal's reason). While the token endpoint is known to fail it rejects at once.
   * @throws SidecarError TOKEN_REJECTED, TOKEN_UNAVAILABLE
   */
  waitForToken(signal: AbortSignal): Promise<Token>;
  /**
   * The upstream answered 401 to exactly this token. Marks it suspect if it is still the current one and the cooldown
   * allows, and waits for the one shared refresh; a late 401 for an older token changes nothing and says `replay`.
   * `signal` ends this wait only (rejecting with the signal's reason).
   */
  handleUnauthorized(token: Token, signal: AbortSignal): Promise<UnauthorizedDecision>;
  /** A replay with this token was not refused with 401: the cooldown goes back to its first value. */
  confirmAccepted(token: Token): void;
  state(): TokenState;
}
