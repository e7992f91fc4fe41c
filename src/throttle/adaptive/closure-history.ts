/**
 * The refusals that a learned limit has to explain (pure). Refusals without an accepted call between them are one closure. Of each
 * closure is kept how much every counter held at most when a call was refused, and at least when one was accepted beside it. Kept are the
 * first closures, when calls came in bursts, and the newest ones.
 */
import type { CountedCall, CounterBank } from './counter-bank.ts';

/** A time in which the upstream refused. */
export interface Closure {
  /** By counter: the lowest count at which a call was refused. */
  readonly refused: Float32Array;
  /** By counter: the highest count at which a call was accepted just before or after. */
  readonly accepted: Float32Array;
}

interface OpenClosure extends Closure {
  readonly firstRefusedAt: number;
  lastRefusedAt: number;
  isLong: boolean;
}

const LONG_CLOSURE_MS = 600_000;
const KEPT_FIRST = 6;
const KEPT_NEWEST = 12;

/** At most 18 closures. */
export class ClosureHistory {
  readonly #bank: CounterBank;
  #closures: OpenClosure[] = [];
  #isClosed = false;
  #lastAccepted: CountedCall | undefined;

  constructor(bank: CounterBank) {
    this.#bank = bank;
  }

  get closures(): readonly Closure[] {
    return this.#closures;
  }

  /**
   * @param jitterMs by how much the distance of two calls can change on their way
   * @returns `long` when the call ends a closure of more than ten minutes; `short` when it ends a shorter one after such a closure, which
   * was an outage then and is forgotten, since a limit that closes for long always does
   */
  recordAccepted(call: CountedCall, jitterMs: number): 'long' | 'short' | undefined {
    const closure = this.#closures.at(-1);
    this.#lastAccepted = call;
    if (!this.#isClosed || closure === undefined || call.at <= closure.lastRefusedAt + 2 * jitterMs) return undefined;
    this.#isClosed = false;
    keepEach(closure.accepted, this.#bank.countLeast(call, jitterMs), Math.max);
    closure.isLong = call.at - closure.firstRefusedAt > LONG_CLOSURE_MS;
    if (closure.isLong) return 'long';
    const kept = this.#closures.filter(({ isLong }) => !isLong);
    if (kept.length === this.#closures.length) return undefined;
    this.#closures = kept;
    return 'short';
  }

  recordRefused(call: CountedCall, jitterMs: number): void {
    const before = this.#lastAccepted;
    // Leaking counters go forward only, so they are asked for the earlier call first.
    const accepted =
      !this.#isClosed && before !== undefined && before.at <= call.at
        ? this.#bank.countLeast(before, jitterMs)
        : undefined;
    const refused = this.#bank.countMost(call, jitterMs);
    const closure = this.#closures.at(-1);
    if (this.#isClosed && closure !== undefined) {
      closure.lastRefusedAt = call.at;
      keepEach(closure.refused, refused, Math.min);
      return;
    }
    // A refusal with no call before it does not come from calls of this process.
    if (refused.every((count) => count === 0)) return;
    this.#isClosed = true;
    this.add({
      refused,
      accepted: accepted ?? new Float32Array(refused.length),
      firstRefusedAt: call.at,
      lastRefusedAt: call.at,
      isLong: false,
    });
  }

  /** A call was refused that was sent before the first refusal of the closure was known. */
  recordLateRefusal(call: CountedCall, jitterMs: number): void {
    const closure = this.#closures.at(-1);
    if (!this.#isClosed || closure === undefined || call.at <= closure.firstRefusedAt) return;
    closure.lastRefusedAt = Math.max(closure.lastRefusedAt, call.at);
    keepEach(closure.refused, this.#bank.countMost(call, jitterMs), Math.min);
  }

  /** Adds a closure that was not seen by this process. */
  add(closure: OpenClosure): void {
    this.#closures.push(closure);
    if (this.#closures.length > KEPT_FIRST + KEPT_NEWEST) this.#closures.splice(KEPT_FIRST, 1);
  }

  /** A call was accepted above the capacity of the chosen counter. */
  recordExcess(call: CountedCall, jitterMs: number): void {
    const counts = this.#bank.countLeast(call, jitterMs);
    for (const { accepted } of this.#closures) keepEach(accepted, counts, Math.max);
  }

  /** These had another cause. */
  drop(closures: readonly Closure[]): void {
    this.#closures = this.#closures.filter((closure) => !closures.includes(closure));
  }

  /**
   * The limit was changed.
   * @param since instant from which calls were made under the new one
   */
  forget(since: number): void {
    this.#closures = [];
    this.#isClosed = false;
    this.#bank.startEpoch(since);
  }
}

function keepEach(into: Float32Array, other: Float32Array, keep: (one: number, other: number) => number): void {
  for (const [index, value] of into.entries()) into[index] = keep(value, other[index] ?? value);
}
