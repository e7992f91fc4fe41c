/**
 * A bucket that refills at a steady rate (pure): token bucket, leaky bucket, GCRA. A refused call proves that the bucket is empty.
 * From then on the number of accepted calls gives the lowest possible refill rate, and the next refusal the highest one. The size
 * of the bucket is the largest burst that was accepted, so that permits lost by overflow do not look like a slower refill.
 */
import type { CallLog } from './call-log.ts';
import { type Evidence, LimiterModel, RESTORED_REFUSALS } from './limiter-model.ts';

/** Calls that are searched for the largest burst. */
const LOOK_BACK_CALLS = 4096;
/** The measurement starts anew at a refusal after this time: a longer one is more exact, a shorter one is newer. */
const MAX_SPAN_MS = 60_000;
const KNOWN_SHARE = 0.97;
/** Rates between which the search runs, calls per millisecond. */
const MIN_RATE = 1e-7;
const MAX_RATE = 10;
const SEARCH_STEPS = 24;

/** The bounds are refill rates, calls per millisecond. */
export class BucketModel extends LimiterModel {
  readonly kind = 'bucket';
  readonly #accepted: CallLog;
  /** Instant at which the bucket was empty; NaN before the first refusal. */
  #emptyAt = NaN;
  #acceptedSinceEmpty = 0;
  #capacity = 1;
  /** Calls per millisecond to use while the bounds are far apart; 0 once the rate is known. */
  #targetRate = 0;

  constructor(accepted: CallLog) {
    super();
    this.#accepted = accepted;
  }

  get isConsistent(): boolean {
    return this.lowerBound <= this.upperBound * 1.005;
  }

  get isUsable(): boolean {
    return this.upperBound !== Infinity && this.lowerBound >= 0.6 * this.upperBound;
  }

  get limit(): number {
    return this.#capacity;
  }

  get windowMs(): number {
    return (this.limit * 1000) / this.rate;
  }

  get rate(): number {
    return 1000 * Math.max(this.#targetRate, Math.min(this.lowerBound, this.upperBound));
  }

  get burst(): number {
    return Math.max(1, Math.floor(this.#capacity * 0.9));
  }

  recordAccepted({ at, jitterMs }: Evidence): void {
    // A call sent within the jitter may have arrived before the bucket was empty.
    if (!(at > this.#emptyAt + jitterMs)) return;
    this.#acceptedSinceEmpty++;
    // The bucket may have held a fraction of a permit, and one call may have arrived out of order: hence -2.
    this.lowerBound = Math.max(this.lowerBound, (this.#acceptedSinceEmpty - 2) / (at - this.#emptyAt + 2 * jitterMs));
  }

  recordRefused(evidence: Evidence): void {
    const { at, isInformative } = evidence;
    if (at > this.#emptyAt) {
      const maxRate = this.#estimateMaxRate(evidence);
      this.lowerUpperBound(maxRate, isInformative, maxRate < this.upperBound * 0.95);
      if (at - this.#emptyAt < MAX_SPAN_MS) return;
    }
    this.#emptyAt = at;
    this.#acceptedSinceEmpty = 0;
  }

  wouldRefuse(now: number, _jitterMs: number, pending: CallLog): boolean {
    const used = this.#acceptedSinceEmpty + pending.size + 1;
    return used > (this.rate / 1000) * (now - this.#emptyAt) + 0.5;
  }

  override onSelected(): void {
    // Nearer to the upper bound, since the lower one cannot rise above the rate at which we send.
    this.#targetRate =
      this.lowerBound >= KNOWN_SHARE * this.upperBound ? 0 : this.lowerBound ** 0.25 * this.upperBound ** 0.75;
  }

  override reset(): void {
    super.reset();
    this.#emptyAt = NaN;
    this.#acceptedSinceEmpty = 0;
    this.#capacity = 1;
    this.#targetRate = 0;
  }

  /**
   * Continues with what an earlier process learned.
   * @param rate permits per second
   */
  restore(rate: number, capacity: number): void {
    this.lowerBound = rate / 1000;
    this.upperBound = rate / 1000;
    this.#capacity = capacity;
    this.explainedRefusals = RESTORED_REFUSALS;
  }

  /** The refill rate above which the refused call would have been accepted. Rate and capacity depend on each other: four rounds. */
  #estimateMaxRate(evidence: Evidence): number {
    let maxRate = Infinity;
    this.#capacity = 1;
    for (let round = 0; round < 4; round++) {
      maxRate = Math.min(maxRate, this.#findLowestAcceptingRate(evidence));
      this.#capacity = this.#findLargestBurst(Math.min(this.upperBound, maxRate), evidence);
    }
    return maxRate;
  }

  #findLowestAcceptingRate(evidence: Evidence): number {
    let refusing = MIN_RATE;
    let accepting = MAX_RATE;
    for (let step = 0; step < SEARCH_STEPS; step++) {
      const rate = Math.sqrt(refusing * accepting);
      if (this.#levelAt(evidence, rate) < 1) refusing = rate;
      else accepting = rate;
    }
    return accepting;
  }

  /** Permits in a bucket of this refill rate when the call arrived, starting empty at `#emptyAt`. */
  #levelAt({ at, jitterMs }: Evidence, rate: number): number {
    const end = this.#accepted.firstIndexFrom(at + jitterMs);
    let level = 0;
    let last = this.#emptyAt;
    for (let index = this.#accepted.firstIndexFrom(this.#emptyAt - jitterMs); index < end; index++) {
      const next = Math.max(last, this.#accepted.at(index));
      level = Math.max(0, Math.min(this.#capacity, level + rate * (next - last)) - 1);
      last = next;
    }
    return Math.min(this.#capacity, level + rate * Math.max(0, at - last - 2 * jitterMs));
  }

  /** The most calls that were accepted beyond the refill: the bucket holds at least as many. */
  #findLargestBurst(rate: number, { jitterMs, pending }: Evidence): number {
    const end = pending.size === 0 ? this.#accepted.size : this.#accepted.firstIndexFrom(pending.at(0));
    let debt = 0;
    let last = -Infinity;
    let largest = 1;
    for (let index = Math.max(0, end - LOOK_BACK_CALLS); index < end; index++) {
      const next = this.#accepted.at(index);
      debt = Math.max(0, debt - (next - last) * rate) + 1;
      last = next;
      largest = Math.max(largest, debt);
    }
    return Math.max(1, Math.floor(largest - 2 * rate * jitterMs));
  }
}
