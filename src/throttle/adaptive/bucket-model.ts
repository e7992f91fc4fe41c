/**
 * A bucket that refills steadily (pure; token bucket, leaky bucket, GCRA). At a refusal it is empty; from there on the number
 * accepted says how fast it refills at least, and the next refusal how fast at most. How much it holds follows from the
 * largest burst that it took, so that what was lost by overflowing is never taken for a slower refill.
 */
import type { CallLog } from './call-log.ts';
import { type Evidence, LimiterModel } from './limiter-model.ts';

/** Calls looked back on for the largest burst. */
const LOOK_BACK_CALLS = 4096;
/** From one empty bucket to the next: a longer time tells more, a shorter one is newer. */
const MAX_SPAN_MS = 60_000;
const KNOWN_SHARE = 0.97;
/** Rates are searched for between these, calls per millisecond. */
const MIN_RATE = 1e-7;
const MAX_RATE = 10;
const SEARCH_STEPS = 24;

/** Bounds are calls per millisecond. */
export class BucketModel extends LimiterModel {
  readonly kind = 'bucket';
  readonly #log: CallLog;
  /** An instant at which it was empty; NaN while not known. */
  #emptyAt = NaN;
  #acceptedSinceEmpty = 0;
  #capacity = 1;
  /** Calls per millisecond to try while the bounds are far apart: nearer to the upper one, which no pace of ours holds down. */
  #targetRate = 0;

  /** @param log the accepted calls */
  constructor(log: CallLog) {
    super();
    this.#log = log;
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
    // What was sent a little later may have arrived before it was empty.
    if (!(at > this.#emptyAt + jitterMs)) return;
    this.#acceptedSinceEmpty++;
    // A fraction of a permit may have been there, and one may have arrived out of order.
    this.lowerBound = Math.max(this.lowerBound, (this.#acceptedSinceEmpty - 2) / (at - this.#emptyAt + 2 * jitterMs));
  }

  recordRefused(evidence: Evidence): void {
    const { at, isInformative } = evidence;
    if (at > this.#emptyAt) {
      const fastest = this.#estimateMaxRate(evidence);
      this.lowerUpperBound(fastest, isInformative, fastest < this.upperBound * 0.95);
      if (at - this.#emptyAt < MAX_SPAN_MS) return;
    }
    this.#emptyAt = at;
    this.#acceptedSinceEmpty = 0;
  }

  openAt(): number {
    // The pace is the rate; there is nothing to wait for beyond it.
    return -Infinity;
  }

  isFull(now: number, _jitterMs: number, pending: CallLog): boolean {
    const used = this.#acceptedSinceEmpty + pending.size + 1;
    return used > (this.rate / 1000) * (now - this.#emptyAt) + 0.5;
  }

  override onSelected(): void {
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
   * As it was in an earlier process.
   * @param rate permits per second
   */
  restore(rate: number, holds: number): void {
    this.lowerBound = rate / 1000;
    this.upperBound = rate / 1000;
    this.#capacity = holds;
    this.explainedRefusals = 2;
  }

  /** The rate above which this call would have been accepted. Each round knows better how much the bucket holds. */
  #estimateMaxRate(evidence: Evidence): number {
    let fastest = Infinity;
    this.#capacity = 1;
    for (let round = 0; round < 4; round++) {
      fastest = Math.min(fastest, this.#findLowestAcceptingRate(evidence));
      this.#capacity = this.#findLargestBurst(Math.min(this.upperBound, fastest), evidence);
    }
    return fastest;
  }

  #findLowestAcceptingRate(evidence: Evidence): number {
    let refuses = MIN_RATE;
    let accepts = MAX_RATE;
    for (let step = 0; step < SEARCH_STEPS; step++) {
      const rate = Math.sqrt(refuses * accepts);
      if (this.#levelAt(evidence, rate) < 1) refuses = rate;
      else accepts = rate;
    }
    return accepts;
  }

  /** What such a bucket would have held at this call, having been empty. */
  #levelAt({ at, jitterMs }: Evidence, rate: number): number {
    const end = this.#log.firstIndexFrom(at + jitterMs);
    let level = 0;
    let last = this.#emptyAt;
    for (let index = this.#log.firstIndexFrom(this.#emptyAt - jitterMs); index < end; index++) {
      const next = Math.max(last, this.#log.at(index));
      level = Math.max(0, Math.min(this.#capacity, level + rate * (next - last)) - 1);
      last = next;
    }
    return Math.min(this.#capacity, level + rate * Math.max(0, at - last - 2 * jitterMs));
  }

  /** The most that was ever taken beyond what flowed in: it held at least that. */
  #findLargestBurst(rate: number, { jitterMs, pending }: Evidence): number {
    const end = pending.size === 0 ? this.#log.size : this.#log.firstIndexFrom(pending.at(0));
    let debt = 0;
    let last = -Infinity;
    let largest = 1;
    for (let index = Math.max(0, end - LOOK_BACK_CALLS); index < end; index++) {
      const next = this.#log.at(index);
      debt = Math.max(0, debt - (next - last) * rate) + 1;
      last = next;
      largest = Math.max(largest, debt);
    }
    return Math.max(1, Math.floor(largest - 2 * rate * jitterMs));
  }
}
