/**
 * A bucket that refills steadily (pure; token bucket, leaky bucket, GCRA). At a refusal it is empty; from there on the number
 * accepted says how fast it refills at least, and the next refusal how fast at most. How much it holds follows from the
 * largest burst that it took, so that what was lost by overflowing is never taken for a slower refill.
 */
import type { CallLog } from './call-log.ts';
import { type Evidence, LimiterModel } from './limiter-model.ts';

/** Calls looked back on for the largest burst. */
const LOOK_BACK = 4096;
/** From one empty bucket to the next: a longer time tells more, a shorter one is newer. */
const LONGEST_SPAN_MS = 60_000;
const KNOWN = 0.97;
/** Rates are searched for between these, calls per millisecond. */
const SLOWEST = 1e-7;
const FASTEST = 10;
const SEARCH_STEPS = 24;

/** Bounds are calls per millisecond. */
export class BucketModel extends LimiterModel {
  readonly kind = 'bucket';
  readonly #log: CallLog;
  /** An instant at which it was empty; NaN while not known. */
  #emptyAt = NaN;
  #acceptedSince = 0;
  #holds = 1;
  /** Calls per millisecond to try while the bounds are far apart: nearer to the upper one, which no pace of ours holds down. */
  #aim = 0;

  /** @param log the accepted calls */
  constructor(log: CallLog) {
    super();
    this.#log = log;
  }

  get stands(): boolean {
    return this.least <= this.most * 1.005;
  }

  get usable(): boolean {
    return this.most !== Infinity && this.least >= 0.6 * this.most;
  }

  get limit(): number {
    return this.#holds;
  }

  get windowMs(): number {
    return (this.limit * 1000) / this.rate;
  }

  get rate(): number {
    return 1000 * Math.max(this.#aim, Math.min(this.least, this.most));
  }

  get burst(): number {
    return Math.max(1, Math.floor(this.#holds * 0.9));
  }

  accepted({ at, jitterMs }: Evidence): void {
    // What was sent a little later may have arrived before it was empty.
    if (!(at > this.#emptyAt + jitterMs)) return;
    this.#acceptedSince++;
    // A fraction of a permit may have been there, and one may have arrived out of order.
    this.least = Math.max(this.least, (this.#acceptedSince - 2) / (at - this.#emptyAt + 2 * jitterMs));
  }

  refused(evidence: Evidence): void {
    const { at, telling } = evidence;
    if (at > this.#emptyAt) {
      const fastest = this.#judgeRate(evidence);
      this.noteRefusal(fastest, telling, fastest < this.most * 0.95);
      if (at - this.#emptyAt < LONGEST_SPAN_MS) return;
    }
    this.#emptyAt = at;
    this.#acceptedSince = 0;
  }

  opensAt(): number {
    // The pace is the rate; there is nothing to wait for beyond it.
    return -Infinity;
  }

  isFull(now: number, _jitterMs: number, pending: CallLog): boolean {
    const used = this.#acceptedSince + pending.size + 1;
    return used > (this.rate / 1000) * (now - this.#emptyAt) + 0.5;
  }

  override aim(): void {
    this.#aim = this.least >= KNOWN * this.most ? 0 : this.least ** 0.25 * this.most ** 0.75;
  }

  override forget(): void {
    super.forget();
    this.#emptyAt = NaN;
    this.#acceptedSince = 0;
    this.#holds = 1;
    this.#aim = 0;
  }

  /**
   * As it was in an earlier process.
   * @param rate permits per second
   */
  restore(rate: number, holds: number): void {
    this.least = rate / 1000;
    this.most = rate / 1000;
    this.#holds = holds;
    this.agreeing = 2;
  }

  /** The rate above which this call would have been accepted. Each round knows better how much the bucket holds. */
  #judgeRate(evidence: Evidence): number {
    let fastest = Infinity;
    this.#holds = 1;
    for (let round = 0; round < 4; round++) {
      fastest = Math.min(fastest, this.#fastestRefusing(evidence));
      this.#holds = this.#largestBurst(Math.min(this.most, fastest), evidence);
    }
    return fastest;
  }

  #fastestRefusing(evidence: Evidence): number {
    let refuses = SLOWEST;
    let accepts = FASTEST;
    for (let step = 0; step < SEARCH_STEPS; step++) {
      const rate = Math.sqrt(refuses * accepts);
      if (this.#levelAt(evidence, rate) < 1) refuses = rate;
      else accepts = rate;
    }
    return accepts;
  }

  /** What such a bucket would have held at this call, having been empty. */
  #levelAt({ at, jitterMs }: Evidence, rate: number): number {
    const end = this.#log.indexOf(at + jitterMs);
    let level = 0;
    let last = this.#emptyAt;
    for (let index = this.#log.indexOf(this.#emptyAt - jitterMs); index < end; index++) {
      const next = Math.max(last, this.#log.at(index));
      level = Math.max(0, Math.min(this.#holds, level + rate * (next - last)) - 1);
      last = next;
    }
    return Math.min(this.#holds, level + rate * Math.max(0, at - last - 2 * jitterMs));
  }

  /** The most that was ever taken beyond what flowed in: it held at least that. */
  #largestBurst(rate: number, { jitterMs, pending }: Evidence): number {
    const end = pending.size === 0 ? this.#log.size : this.#log.indexOf(pending.at(0));
    let debt = 0;
    let last = -Infinity;
    let largest = 1;
    for (let index = Math.max(0, end - LOOK_BACK); index < end; index++) {
      const next = this.#log.at(index);
      debt = Math.max(0, debt - (next - last) * rate) + 1;
      last = next;
      largest = Math.max(largest, debt);
    }
    return Math.max(1, Math.floor(largest - 2 * rate * jitterMs));
  }
}
