/** The chosen limits as they are kept to (pure): rate and burst, when they allow the next call, and whether calls have shown that one was raised. */
import type { CallLog } from './call-log.ts';
import { WINDOW_TOLERANCE } from './counter-bank.ts';
import type { ChosenLimit, ChosenPair } from './limit-choice.ts';
import type { LimitUsage } from '../throttle.ts';

/** Share of a learned rate that is used, for windows and for buckets. */
const WINDOW_RATE_SHARE = 0.99;
const BUCKET_RATE_SHARE = 0.985;
/** A window of at least this many calls is used up to this share, since its count is approximate. */
const LARGE_WINDOW_CALLS = 100;
const LARGE_WINDOW_SHARE = 0.995;
/** Share of a bucket's burst that is used. */
const BUCKET_BURST_SHARE = 0.9;
/** Calls from which the level of a bucket is computed. */
const MAX_REPLAYED_CALLS = 1024;
/** Jitter and calls that overtake each other let a count be exceeded by a share of it, and some calls. */
const EXCESS_SHARE = 1.01;
const EXCESS_CALLS = 2;
/** A limit this many times faster than the probed one is kept to in a probe. */
const MIN_PROBED_RATIO = 1.25;
const SAME_INSTANT_MS = 0.01;

export class LimitInUse {
  readonly choice: ChosenLimit;
  readonly #calls: CallLog;
  readonly #pending: CallLog;
  /** Calls that had not leaked out of a bucket at the last grant. */
  #level = 0;
  #grantedAt = -Infinity;
  #limitProbeStartedAt = Infinity;

  /**
   * @param calls those that were not refused
   * @param pending those without a response
   */
  constructor(choice: ChosenLimit, calls: CallLog, pending: CallLog) {
    this.choice = choice;
    this.#calls = calls;
    this.#pending = pending;
    if (choice.counter.kind === 'bucket')
      for (let index = Math.max(0, calls.size - MAX_REPLAYED_CALLS); index < calls.size; index++)
        this.recordGrant(calls.at(index));
    this.#grantedAt = calls.size === 0 ? -Infinity : calls.at(calls.size - 1);
  }

  /** Permits per second that are used; Infinity for a limit in flight. */
  get rate(): number {
    const { counter, rate } = this.choice;
    if (counter.kind === 'concurrency') return Infinity;
    return rate * (counter.kind === 'bucket' ? BUCKET_RATE_SHARE : WINDOW_RATE_SHARE);
  }

  /** Permits that may be saved up, at least 1; `windowShare` is a share of a window's limit. */
  burst(windowShare: number): number {
    const { counter, capacity } = this.choice;
    switch (counter.kind) {
      case 'window':
        return Math.max(1, Math.floor(capacity * windowShare));
      case 'bucket':
        return Math.max(1, Math.floor((capacity + 0.5) * BUCKET_BURST_SHARE));
      case 'concurrency':
        return capacity;
    }
  }

  /** When the limit allows the next call; past or -Infinity: now. */
  openAt(): number {
    const { counter, capacity } = this.choice;
    if (counter.kind === 'concurrency') return -Infinity;
    if (counter.kind === 'bucket')
      return this.#level < capacity
        ? -Infinity
        : this.#grantedAt + (this.#level - capacity) / counter.leakPerMs + SAME_INSTANT_MS;
    const used = capacity < LARGE_WINDOW_CALLS ? capacity : Math.floor(capacity * LARGE_WINDOW_SHARE);
    const oldest = this.#calls.at(this.#calls.size - used);
    return Number.isNaN(oldest) ? -Infinity : oldest + counter.windowMs * (1 + WINDOW_TOLERANCE) + SAME_INSTANT_MS;
  }

  wouldRefuse(now: number): boolean {
    return this.choice.counter.kind !== 'concurrency' && this.#countAt(now) >= this.choice.capacity;
  }

  countUsed(now: number): Omit<LimitUsage, 'opensInMs'> {
    const { counter, capacity } = this.choice;
    switch (counter.kind) {
      case 'window':
        return { used: this.#countAt(now), limit: capacity, windowMs: counter.windowMs };
      case 'bucket': {
        const limit = Math.floor(capacity + 1);
        return { used: Math.min(limit, this.#levelAfter(now)), limit, windowMs: undefined };
      }
      case 'concurrency':
        return { used: this.#pending.size, limit: capacity, windowMs: undefined };
    }
  }

  recordGrant(now: number): void {
    // A bucket never holds more than its capacity: what would exceed it came under another limit.
    this.#level = Math.min(this.#levelAfter(now), this.choice.capacity) + 1;
    this.#grantedAt = now;
  }

  /** @returns calls beyond the limit that the limiter may accept although it was not raised */
  startLimitProbe(now: number): number {
    this.#limitProbeStartedAt = now;
    return this.choice.counter.kind === 'window' ? this.choice.capacity : EXCESS_CALLS;
  }

  /** The calls accepted in the probe exceed what the limiter can have admitted meanwhile. */
  isExceeded(now: number, inFlight: number): boolean {
    const { counter, capacity } = this.choice;
    if (counter.kind === 'concurrency') return inFlight > capacity * EXCESS_SHARE + EXCESS_CALLS;
    // What the limiter held at the start is not known: a bucket can have been full, and a window can have begun at any instant.
    const ms = now - this.#limitProbeStartedAt;
    const allowed =
      counter.kind === 'bucket' ? capacity + 1 + counter.leakPerMs * ms : capacity * (1 + ms / counter.windowMs);
    const accepted = this.#calls.count(this.#limitProbeStartedAt, Infinity) - this.#pending.size;
    return accepted > allowed * EXCESS_SHARE + EXCESS_CALLS;
  }

  #countAt(now: number): number {
    const { counter } = this.choice;
    if (counter.kind === 'window') return this.#calls.count(now - counter.windowMs, Infinity);
    return this.#levelAfter(now);
  }

  #levelAfter(now: number): number {
    const { counter } = this.choice;
    return counter.kind === 'bucket' && this.#level > 0
      ? Math.max(0, this.#level - counter.leakPerMs * (now - this.#grantedAt))
      : 0;
  }
}

/** The chosen limits as they are kept to: both must allow a call, and only the slower one is probed. */
export class LimitPair {
  readonly chosen: ChosenPair;
  /** The slower one's. */
  readonly choice: ChosenLimit;
  readonly rate: number;
  readonly slower: LimitInUse;
  readonly faster: LimitInUse | undefined;
  readonly inFlight: ChosenLimit | undefined;

  constructor(chosen: ChosenPair, use: (choice: ChosenLimit) => LimitInUse) {
    const { main, additional } = chosen;
    const isSlower = additional !== undefined && additional.rate < main.rate;
    this.chosen = chosen;
    this.choice = isSlower ? additional : main;
    this.slower = use(this.choice);
    this.faster = additional && use(isSlower ? main : additional);
    this.rate = Math.min(this.slower.rate, this.faster?.rate ?? Infinity);
    this.inFlight = [main, additional].find((choice) => choice?.counter.kind === 'concurrency');
  }

  /** A faster limit that is hardly faster would hide for ever that the slower one was raised: both are exceeded then. */
  get fasterInProbe(): LimitInUse | undefined {
    return this.faster !== undefined && this.faster.rate < MIN_PROBED_RATIO * this.slower.rate
      ? undefined
      : this.faster;
  }

  burst(windowShare: number): number {
    return Math.min(this.slower.burst(windowShare), this.faster?.burst(windowShare) ?? Infinity);
  }

  recordGrant(now: number): void {
    this.slower.recordGrant(now);
    this.faster?.recordGrant(now);
  }
}
