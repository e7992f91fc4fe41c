/**
 * One idea of how the upstream limits, and how far it holds (pure). Every kind of limiter is a counter with a capacity: an
 * accepted call says that the capacity is at least so much, a refused one that it is at most so much. An idea stands as long
 * as both can be true. Which idea to act on is beliefs.ts's to choose, and how to act on it learned-pace.ts's.
 */
import type { CallLog } from './call-log.ts';

/** The kinds of limiters that are told apart. */
export type LimiterKind = 'sliding-window' | 'fixed-window' | 'first-call-window' | 'bucket' | 'concurrency';

/** A call whose answer is known, and the circumstances in which it was made. */
export interface Evidence {
  /** Monotonic instant at which it was sent, milliseconds. */
  readonly at: number;
  /** Arrivals are this much more or less apart than departures, milliseconds. */
  readonly jitterMs: number;
  /** Calls that were under way when it was sent. */
  readonly inFlight: number;
  /** Calls whose answers are not known yet. */
  readonly pending: CallLog;
  /** Something was accepted since the refusal before: to agree with this one means something. */
  readonly isInformative: boolean;
}

/** Refusals that an idea must have foreseen before one that it has not is put down to jitter. */
const MIN_TRUSTED_REFUSALS = 4;
/** Calls, and time, without a refusal that make up for an unforeseen one. */
const RECOVERY_CALLS = 50;
const RECOVERY_MS = 5_000;
const RECOVERY_FACTOR = 1.008;
const MIN_SAFETY_FACTOR = 0.5;

/** Bounds on a capacity, in a unit of the kind's own. */
export abstract class LimiterModel {
  abstract readonly kind: LimiterKind;
  /** The time in which a used-up limit is free again, milliseconds; of equally good ideas the shortest is tried first. */
  abstract readonly windowMs: number;
  /** Calls within the window, in a burst or at once, as far as is known. */
  abstract readonly limit: number;
  /** Calls per second that it lets through in the long run. */
  abstract readonly rate: number;
  /** Permits that may be saved up under this idea; at least 1. */
  abstract readonly burst: number;

  protected lowerBound = 0;
  protected upperBound = Infinity;
  /** Refusals in a row that this idea explains. */
  explainedRefusals = 0;
  /** Refusals lately that it had not foreseen. */
  #unpredictedRefusals = 0;
  #acceptedInARow = 0;
  #acceptedSinceAt = -Infinity;
  /** Share of the rate that is used: less than 1 while refusals come unforeseen. */
  safetyFactor = 1;

  /** True while nothing speaks against it. */
  abstract get isConsistent(): boolean;
  /** True when it is known well enough to act on. */
  abstract get isUsable(): boolean;
  abstract recordAccepted(evidence: Evidence): void;
  abstract recordRefused(evidence: Evidence): void;
  /** From when on it lets the next call through; a past instant or -Infinity: now. */
  abstract openAt(now: number, jitterMs: number): number;
  /** True when it would refuse a call at `now`. */
  abstract isFull(now: number, jitterMs: number, pending: CallLog): boolean;

  /**
   * True when it has been closed until now and nothing has been sent since. It may open a little later than it is believed to, so
   * that one call should go first, and not all that were saved up.
   */
  isFirstCallOfWindow(_now: number, _jitterMs: number): boolean {
    return false;
  }

  /** It was closed at `refusedAt` and open at `acceptedAt`. */
  recordReopening(_refusedAt: number, _acceptedAt: number, _jitterMs: number): void {
    // Most kinds have no instant at which they open as a whole.
  }

  /** True when it has foreseen refusals, and none came unforeseen lately. */
  get isTrusted(): boolean {
    return this.explainedRefusals >= MIN_TRUSTED_REFUSALS && this.#unpredictedRefusals === 0;
  }

  /**
   * A refusal came that it had not foreseen. True when that is put down to jitter: less of its rate is used for a while.
   * @param now monotonic
   * @param strikes so many are survived, if it has foreseen others
   * @param share what one leaves of the rate
   */
  tolerateRefusal(now: number, strikes: number, share: number): boolean {
    if (this.explainedRefusals < MIN_TRUSTED_REFUSALS) return false;
    if (this.#unpredictedRefusals >= strikes) {
      this.invalidate();
      return false;
    }
    this.#unpredictedRefusals++;
    this.#acceptedInARow = 0;
    this.#acceptedSinceAt = now;
    this.safetyFactor = Math.max(MIN_SAFETY_FACTOR, this.safetyFactor * share);
    return true;
  }

  /** A call was accepted while it was acted on. */
  recoverSafetyFactor(now: number): void {
    if (++this.#acceptedInARow < RECOVERY_CALLS || now - this.#acceptedSinceAt < RECOVERY_MS) return;
    this.#acceptedInARow = 0;
    this.#acceptedSinceAt = now;
    this.#unpredictedRefusals = Math.max(0, this.#unpredictedRefusals - 1);
    this.safetyFactor = Math.min(1, this.safetyFactor * RECOVERY_FACTOR);
  }

  /** It is the idea to act on from now on. */
  onSelected(): void {
    // Most kinds need no preparation.
  }

  /** Nothing is known of it any more. */
  reset(): void {
    this.lowerBound = 0;
    this.upperBound = Infinity;
    this.explainedRefusals = 0;
    this.#unpredictedRefusals = 0;
    this.#acceptedInARow = 0;
    this.safetyFactor = 1;
  }

  /** It cannot be, whatever else will be seen. */
  invalidate(): void {
    this.upperBound = 0;
  }

  /** Lowers the upper bound, and notes whether this refusal agrees with those before. */
  protected lowerUpperBound(atMost: number, telling: boolean, isLower: boolean): void {
    if (telling) this.explainedRefusals++;
    if (isLower) this.explainedRefusals = 1;
    this.upperBound = Math.min(this.upperBound, atMost);
  }
}
