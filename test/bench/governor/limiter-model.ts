/**
 * What every simulated limiter has in common: it says when it would take the next call, is told what it took or refused, and
 * knows how much it admits in a stretch of time. Pure: `at` is milliseconds since the start of the run, and never runs back.
 */

/** What a limiter could say of itself in fields. */
export interface Allowance {
  /** Calls that it would take now, with none in between. */
  readonly remaining: number;
  /** When `remaining` becomes larger, or the window ends. */
  readonly resetAt: number;
}

/** The hidden rule alone, without the answers that it gives. */
export interface LimiterModel {
  /**
   * The earliest instant, `at` or later, at which it would take a call if none came in between.
   * Asking changes nothing. Infinity when only an ending call can help (a limit on calls in flight).
   */
  nextAt(at: number, inFlight: number): number;
  /** A call arrived and was taken. */
  take(at: number): void;
  /** A call arrived and was refused. */
  refuse(at: number): void;
  /** Sustained calls per millisecond at that instant. */
  rateAt(at: number): number;
  /** Calls that it admits from one instant to another to someone who keeps at its limit all along, nothing saved up. */
  capacity(fromMs: number, toMs: number): number;
  /** What no stretch of time admits on top of its capacity. */
  readonly burst: number;
  /** The stretch in which it counts, milliseconds; 0 when it does not count in stretches. */
  readonly windowMs: number;
  /** Undefined when it has nothing to say. */
  allowance(at: number): Allowance | undefined;
  /** The status of its refusals if it has one of its own. */
  readonly status?: number | undefined;
}

/** Instants that were reckoned and not observed differ in their last digits. */
export const TOLERANCE_MS = 1e-6;
