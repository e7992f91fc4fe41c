/**
 * A model of one kind of limiter, and what the calls so far prove about its capacity (pure). Every kind is a counter with a
 * capacity: an accepted call proves that the capacity is at least so much, a refused call that it is at most so much. A model is
 * consistent while the lower bound does not exceed the upper one. model-selector.ts chooses the model in use.
 */
import type { CallLog } from './call-log.ts';

/** The kinds of limiters that are modelled. */
export const LIMITER_KINDS = ['sliding-window', 'fixed-window', 'first-call-window', 'bucket', 'concurrency'] as const;

export type LimiterKind = (typeof LIMITER_KINDS)[number];

/** A call whose outcome is known, and the circumstances in which it was sent. */
export interface Evidence {
  /** Monotonic instant at which the call was sent, milliseconds. */
  readonly at: number;
  /** By how much the distance of two calls can change on their way, milliseconds. */
  readonly jitterMs: number;
  /** Calls in flight when this one was sent. */
  readonly inFlight: number;
  /** Calls whose outcome is not known yet. */
  readonly pending: CallLog;
  /** A call was accepted since the previous refusal, so that explaining this refusal is a success of a model. */
  readonly isInformative: boolean;
}

/** Refusals that a model must have explained before an unexpected one is taken for jitter. */
const MIN_TRUSTED_REFUSALS = 4;
/** A restored model is usable at once, and not trusted. */
export const RESTORED_REFUSALS = 2;
/** Accepted calls, and time, that make up for one unexpected refusal. */
const RECOVERY_CALLS = 50;
const RECOVERY_MS = 5_000;
const RECOVERY_FACTOR = 1.008;
const MIN_SAFETY_FACTOR = 0.5;

/** One kind of limiter with its bounds; the subclasses say what is counted. */
export abstract class LimiterModel {
  abstract readonly kind: LimiterKind;
  /** Time after which a used-up limit is free again, milliseconds. */
  abstract readonly windowMs: number;
  /** Estimate of the capacity: calls per window, per burst, or in flight. */
  abstract readonly limit: number;
  /** Calls per second that the limiter admits in the long run. */
  abstract readonly rate: number;
  /** Permits that may be saved up; at least 1. */
  abstract readonly burst: number;

  protected lowerBound = 0;
  protected upperBound = Infinity;
  /** Refusals in a row that agree with this model. */
  explainedRefusals = 0;
  #unexpectedRefusals = 0;
  #acceptedInARow = 0;
  #acceptedSinceAt = -Infinity;
  /** Share of the rate that is used: below 1 after unexpected refusals. */
  safetyFactor = 1;

  /** False when the calls so far contradict this model. */
  abstract get isConsistent(): boolean;
  /** True when the bounds are close enough to act on. */
  abstract get isUsable(): boolean;
  abstract recordAccepted(evidence: Evidence): void;
  abstract recordRefused(evidence: Evidence): void;
  /** True when the limiter would refuse a call at `now`. */
  abstract wouldRefuse(now: number, jitterMs: number, pending: CallLog): boolean;

  /** What the calls so far prove about the capacity, in the unit of the kind. */
  get bounds(): { readonly lower: number; readonly upper: number } {
    return { lower: this.lowerBound, upper: this.upperBound };
  }

  /** When the limiter admits the next call; -Infinity or a past instant means now. Only windows close for a time. */
  openAt(_now: number, _jitterMs: number): number {
    return -Infinity;
  }

  /** True for the first call of a window after a used-up one. It goes alone, since the estimated start may be too early. */
  isFirstCallOfWindow(_now: number, _jitterMs: number): boolean {
    return false;
  }

  /** A call sent at `refusedAt` was refused, and the next accepted one was sent at `acceptedAt`. */
  recordReopening(_refusedAt: number, _acceptedAt: number, _jitterMs: number): void {
    // Only windows open at one instant.
  }

  /** True when it has explained several refusals, and none was unexpected recently. */
  get isTrusted(): boolean {
    return this.explainedRefusals >= MIN_TRUSTED_REFUSALS && this.#unexpectedRefusals === 0;
  }

  /**
   * Returns true when an unexpected refusal is taken for jitter, and multiplies the safety factor by `factor`. Only a model that has
   * explained others does so; after `maxUnexpected` of them it is invalid.
   */
  tolerateRefusal(now: number, maxUnexpected: number, factor: number): boolean {
    if (this.explainedRefusals < MIN_TRUSTED_REFUSALS) return false;
    if (this.#unexpectedRefusals >= maxUnexpected) {
      this.invalidate();
      return false;
    }
    this.#unexpectedRefusals++;
    this.#acceptedInARow = 0;
    this.#acceptedSinceAt = now;
    this.safetyFactor = Math.max(MIN_SAFETY_FACTOR, this.safetyFactor * factor);
    return true;
  }

  /**
   * Counts an accepted call; enough of them raise the safety factor again.
   * @param slowdown how many times more calls and time it takes
   */
  recoverSafetyFactor(now: number, slowdown: number): void {
    if (++this.#acceptedInARow < RECOVERY_CALLS * slowdown || now - this.#acceptedSinceAt < RECOVERY_MS * slowdown)
      return;
    this.#acceptedInARow = 0;
    this.#acceptedSinceAt = now;
    this.#unexpectedRefusals = Math.max(0, this.#unexpectedRefusals - 1);
    this.safetyFactor = Math.min(1, this.safetyFactor * RECOVERY_FACTOR);
  }

  /** This model has been selected. */
  onSelected(): void {
    // Most kinds need no preparation.
  }

  /** Forgets all evidence. */
  reset(): void {
    this.lowerBound = 0;
    this.upperBound = Infinity;
    this.explainedRefusals = 0;
    this.#unexpectedRefusals = 0;
    this.#acceptedInARow = 0;
    this.safetyFactor = 1;
  }

  /** Makes the model inconsistent until it is reset. */
  protected invalidate(): void {
    this.upperBound = 0;
  }

  /**
   * Lowers the upper bound to `atMost` if it is higher.
   * @param isMuchLower the refusal disagrees with the earlier ones: counting starts again
   */
  protected lowerUpperBound(atMost: number, isInformative: boolean, isMuchLower: boolean): void {
    if (isInformative) this.explainedRefusals++;
    if (isMuchLower) this.explainedRefusals = 1;
    this.upperBound = Math.min(this.upperBound, atMost);
  }
}
