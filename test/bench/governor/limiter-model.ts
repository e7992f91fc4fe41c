/**
 * The interface of every simulated limiter: when it accepts the next call, the recording of accepted and refused calls, and its
 * capacity in a time range. Pure: `at` is milliseconds since the start of the run, and never decreases.
 */

/** What a limiter can state in header fields. */
export interface Allowance {
  /** Calls that it would accept now. */
  readonly remaining: number;
  /** When `remaining` rises, or the window ends. */
  readonly resetAt: number;
}

/** What is needed to count possible calls. */
export interface CountedModel {
  /**
   * The earliest instant, `at` or later, at which it accepts a call if none comes in between. Changes nothing. Infinity when only an ending call can help (a limit on calls in flight).
   */
  nextAt(at: number, inFlight: number): number;
  /** A call arrived and was accepted. */
  take(at: number): void;
  /** How long a call that it accepts at that instant waits at the server before it is served, milliseconds. Default: not at all. */
  heldMs?(at: number): number;
}

/** The rule alone, without statuses and header fields. */
export interface LimiterModel extends CountedModel {
  /** A call arrived and was refused. */
  refuse(at: number): void;
  /** Sustained calls per millisecond at that instant. */
  rateAt(at: number): number;
  /** Calls that it admits between two instants to a client that is always at the limit, without saved-up permits. */
  capacity(fromMs: number, toMs: number): number;
  /** The most that a time range admits above its capacity. */
  readonly burst: number;
  /** Length of its window, milliseconds; 0 without a window. */
  readonly windowMs: number;
  /** Undefined when it can state nothing. */
  allowance(at: number): Allowance | undefined;
  /**
   * Its present state, for the calls that are possible if chance always chooses the best. Takes of one are takes of the other.
   * Default: the model itself.
   */
  withBestChoices?(): CountedModel;
  /** The status of its refusals, if it differs from the configured one. */
  readonly status?: number | undefined;
}

/** Computed instants differ from observed ones in their last digits. */
export const TOLERANCE_MS = 1e-6;
