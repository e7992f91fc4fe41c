/**
 * The counters that can stand behind a limit (pure): calls within a window, calls that have not leaked away yet, calls in flight. Every
 * limiter refuses a call when such a count has reached its capacity; only the length of the window, or the rate of the leak, is unknown.
 * So the bank holds each counter for many lengths and rates, and says what they counted before a call. It is asked at refusals only.
 */
import type { CallLog } from './call-log.ts';

export const COUNTER_KINDS = ['window', 'bucket', 'concurrency'] as const;
export type CounterKind = (typeof COUNTER_KINDS)[number];

export type Counter =
  /** Calls within this time before a call, milliseconds. */
  | { readonly kind: 'window'; readonly windowMs: number }
  /** Calls that have not leaked away at this rate, per millisecond. */
  | { readonly kind: 'bucket'; readonly leakPerMs: number }
  /** Calls in flight. */
  | { readonly kind: 'concurrency' };

/** A call whose outcome is known. */
export interface CountedCall {
  /** Monotonic instant at which it was sent, milliseconds. */
  readonly at: number;
  /** Calls in flight when it was sent. */
  readonly inFlight: number;
}

/** Ratio of two lengths or rates that follow each other. */
const STEP = 1.015;
const SHORTEST_WINDOW_MS = 300;
const LONGEST_WINDOW_MS = 86_400_000;
/** Lengths that are exact, since limits are often set by people. */
const USUAL_SECONDS = [1, 2, 3, 4, 5, 6, 10, 15, 20, 30, 60, 90, 120, 300, 600, 900, 1800, 3600, 86_400];
const SLOWEST_LEAK_PER_MS = 2e-5;
const FASTEST_LEAK_PER_MS = 1;
/** A call this much earlier than the window begins is counted, as a share of the window: windows are measured with some error. */
export const WINDOW_TOLERANCE = 0.002;
/** Calls that are counted by the leaks at a time; older ones have mostly leaked away. */
const MAX_CALLS_BEHIND = 4096;
/** Calls that are sent at once overtake each other. With a longer time, a fast rate would look like a number in flight. */
const MAX_OVERTAKING_MS = 5;
/** Requests and responses spend time on the way: of the calls in flight here, at least this share is at the upstream. */
const MIN_UPSTREAM_SHARE = 0.6;
const SAME_INSTANT_MS = 0.01;

export class CounterBank {
  readonly counters: readonly Counter[];
  readonly #windowsMs: readonly number[];
  readonly #leaksPerMs: Float64Array;
  readonly #hasInFlight: boolean;
  readonly #calls: CallLog;
  /** What each leaking counter holds at `#leakedAt`, from the calls before `#countedUntil`. */
  readonly #levels: Float64Array;
  #leakedAt = 0;
  #countedUntil = -Infinity;
  #epochStartedAt = -Infinity;

  /** @param calls those that were not refused */
  constructor(kinds: readonly CounterKind[], calls: CallLog) {
    this.#windowsMs = kinds.includes('window') ? listWindows() : [];
    this.#leaksPerMs = Float64Array.from(kinds.includes('bucket') ? listLeaks() : []);
    this.#hasInFlight = kinds.includes('concurrency');
    this.#calls = calls;
    this.#levels = new Float64Array(this.#leaksPerMs.length);
    this.counters = [
      ...this.#windowsMs.map((windowMs): Counter => ({ kind: 'window', windowMs })),
      ...Array.from(this.#leaksPerMs, (leakPerMs): Counter => ({ kind: 'bucket', leakPerMs })),
      ...(this.#hasInFlight ? [{ kind: 'concurrency' } as const] : []),
    ];
  }

  /**
   * What each counter held at most before this call.
   * @param jitterMs calls sent within this time after it may have overtaken it
   */
  countMost({ at, inFlight }: CountedCall, jitterMs: number): Float32Array {
    const overtaking = this.#calls.count(at, at + Math.min(jitterMs, MAX_OVERTAKING_MS));
    return this.#count(at, at + SAME_INSTANT_MS, WINDOW_TOLERANCE, inFlight + overtaking);
  }

  /**
   * What each counter held at least before this call.
   * @param jitterMs calls sent within this time before it may have arrived after it
   */
  countLeast({ at, inFlight }: CountedCall, jitterMs: number): Float32Array {
    return this.#count(at, at - jitterMs, -WINDOW_TOLERANCE, Math.floor(inFlight * MIN_UPSTREAM_SHARE));
  }

  /** The limit was changed at this instant: calls from before do not count. */
  startEpoch(at: number): void {
    this.#epochStartedAt = at;
    this.#levels.fill(0);
  }

  #count(at: number, until: number, tolerance: number, inFlight: number): Float32Array {
    const counts = new Float32Array(this.counters.length);
    const end = this.#calls.firstIndexFrom(until);
    let next = 0;
    let first = end;
    for (const windowMs of this.#windowsMs) {
      // Each window begins before the one before it: once all calls are counted, nothing is left to search.
      if (first > 0) first = Math.min(end, this.#calls.firstIndexFrom(at - windowMs * (1 + tolerance)));
      counts[next++] = at - windowMs < this.#epochStartedAt ? 0 : end - first;
    }
    this.#leakUntil(at);
    for (let index = 0; index < this.#levels.length; index++)
      counts[next++] = Math.max(0, (this.#levels[index] ?? 0) - (this.#leaksPerMs[index] ?? 0) * (at - this.#leakedAt));
    if (this.#hasInFlight) counts[next] = inFlight;
    return counts;
  }

  /** Counts the calls before `at` that are not counted yet. */
  #leakUntil(at: number): void {
    const end = this.#calls.firstIndexFrom(at);
    const first = Math.max(this.#calls.firstIndexFrom(this.#countedUntil), end - MAX_CALLS_BEHIND);
    for (let call = first; call < end; call++) {
      const instant = this.#calls.at(call);
      for (let index = 0; index < this.#levels.length; index++) {
        const leaked = (this.#leaksPerMs[index] ?? 0) * (instant - this.#leakedAt);
        this.#levels[index] = Math.max(0, (this.#levels[index] ?? 0) - leaked) + 1;
      }
      this.#leakedAt = instant;
    }
    this.#countedUntil = Math.max(this.#countedUntil, at);
  }
}

function listWindows(): number[] {
  const lengths = new Set(USUAL_SECONDS.map((seconds) => seconds * 1000));
  for (let length = SHORTEST_WINDOW_MS; length <= LONGEST_WINDOW_MS; length *= STEP) lengths.add(Math.round(length));
  return [...lengths].sort((one, other) => one - other);
}

function listLeaks(): number[] {
  const rates: number[] = [];
  for (let rate = SLOWEST_LEAK_PER_MS; rate <= FASTEST_LEAK_PER_MS; rate *= STEP) rates.push(rate);
  return rates;
}
