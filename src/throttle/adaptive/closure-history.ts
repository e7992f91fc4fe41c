/**
 * The refusals that a learned limit has to explain (pure). Refusals without an accepted call between them are one closure. Of each
 * closure is kept how much every counter held at most when a call was refused, and at least when one was accepted beside it. Kept are the
 * first closures, when calls came in bursts, and the newest ones.
 */
import type { CountedCall, CounterBank } from './counter-bank.ts';
import { Penalty } from './penalty.ts';

/** A time in which the upstream refused. */
export interface Closure {
  /** By counter: the lowest count at which a call was refused. */
  readonly refused: Float32Array;
  /** By counter: the highest count at which a call was accepted just before or after. */
  readonly accepted: Float32Array;
}

interface OpenClosure extends Closure {
  /** The same, without the refusals that a penalty explains. */
  readonly byLimit: Closure;
  readonly firstRefusedAt: number;
  lastRefusedAt: number;
  /** When the last call was refused that a penalty does not explain. */
  refusedByLimitAt: number;
  /** Refused calls after it. */
  repeats: number;
  isLong: boolean;
}

const LONG_CLOSURE_MS = 600_000;
/** A longer closure may have been an outage; after it, one that is this many times longer. */
const FIRST_OUTAGE_MS = 45_000;
const LONGER = 8;
const MIN_REPEATS = 2;
const KEPT_FIRST = 6;
const KEPT_NEWEST = 12;

export class ClosureHistory {
  readonly #bank: CounterBank;
  #closures: OpenClosure[] = [];
  #isClosed = false;
  #outageMs = FIRST_OUTAGE_MS;
  #statedMs = 0;
  lastAccepted: CountedCall | undefined;
  readonly #penalty = new Penalty();
  /** The end of the last closure lies between the two. */
  #wasClosedAt = -Infinity;
  #wasOpenAt = Infinity;

  constructor(bank: CounterBank) {
    this.#bank = bank;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get closures(): readonly Closure[] {
    return this.#penalty.known === undefined ? this.#closures : this.#closures.map(({ byLimit }) => byLimit);
  }

  /** For which a refusal closes the limit; 0 when that depends on what is counted. */
  get penaltyMs(): number {
    return this.#penalty.known?.leastMs ?? 0;
  }

  /** -Infinity without one. */
  get penaltyEndsAt(): number {
    if (!this.#isClosed) return -Infinity;
    const { known, expectedMs } = this.#penalty;
    const closure = this.#closures.at(-1);
    if (known === undefined || closure === undefined) return -Infinity;
    const { lastRefusedAt, refusedByLimitAt } = closure;
    return refusedByLimitAt + (lastRefusedAt < refusedByLimitAt + expectedMs ? expectedMs : known.mostMs);
  }

  /**
   * @param jitterMs by how much the distance of two calls can change on their way
   * @returns `outage` when the call ends a closure that may have been one; `changed` when it changes which refusals have to be explained: it
   * ends a shorter one after one of more than ten minutes, which was an outage then and is forgotten, since a limit that closes for long
   * always does, or shows that there is a penalty, or none
   */
  recordAccepted(call: CountedCall, jitterMs: number): 'outage' | 'changed' | undefined {
    const closure = this.#closures.at(-1);
    this.lastAccepted = call;
    if (!this.#isClosed || closure === undefined || call.at <= closure.lastRefusedAt + 2 * jitterMs) return undefined;
    this.#isClosed = false;
    const hadPenalty = this.penaltyMs > 0;
    this.#recordEnd(closure, call.at, jitterMs);
    keepEach(closure.accepted, this.#bank.countLeast(call, jitterMs), Math.max);
    const closedMs = call.at - closure.firstRefusedAt;
    const penaltyMs = this.#penalty.known?.mostMs ?? 0;
    closure.isLong = closedMs > Math.max(LONG_CLOSURE_MS, penaltyMs);
    if (closure.isLong || closedMs > Math.max(this.#outageMs, penaltyMs)) {
      this.#outageMs = LONGER * closedMs;
      return 'outage';
    }
    const kept = this.#closures.filter(({ isLong }) => !isLong);
    if (kept.length === this.#closures.length && this.penaltyMs > 0 === hadPenalty) return undefined;
    this.#closures = kept;
    return 'changed';
  }

  /** @param statedMs the wait that the partner states; 0 without one */
  recordRefused(call: CountedCall, jitterMs: number, statedMs = 0): void {
    this.#statedMs = statedMs;
    const before = this.lastAccepted;
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
      closure.repeats++;
      if (call.at <= closure.refusedByLimitAt + (this.#penalty.known?.mostMs ?? Infinity)) return;
      closure.refusedByLimitAt = call.at;
      closure.repeats = 0;
      keepEach(closure.byLimit.refused, refused, Math.min);
      return;
    }
    // A refusal with no call before it does not come from calls of this process.
    if (refused.every((count) => count === 0)) return;
    this.#isClosed = true;
    this.#add({ refused, accepted: accepted ?? new Float32Array(refused.length) }, call.at);
  }

  /** A call was refused that was sent before the first refusal of the closure was known. */
  recordLateRefusal(call: CountedCall, jitterMs: number): void {
    const closure = this.#closures.at(-1);
    if (!this.#isClosed || closure === undefined || call.at <= closure.firstRefusedAt) return;
    closure.lastRefusedAt = Math.max(closure.lastRefusedAt, call.at);
    keepEach(closure.refused, this.#bank.countMost(call, jitterMs), Math.min);
  }

  /** A closure that no counter explains would only prevent a choice. */
  restore(closure: Closure, at: number): void {
    if (closure.refused.some((count) => count > 0)) this.#add(closure, at);
  }

  /** A call was accepted above the capacity of the chosen counter. */
  recordExcess(call: CountedCall, jitterMs: number): void {
    const counts = this.#bank.countLeast(call, jitterMs);
    for (const { accepted } of this.#closures) keepEach(accepted, counts, Math.max);
  }

  /** These had another cause. */
  drop(closures: readonly Closure[]): void {
    this.#closures = this.#closures.filter((one) => !closures.includes(one) && !closures.includes(one.byLimit));
  }

  /** @param since instant from which calls were made under another limit */
  forget(since: number): void {
    this.#closures = [];
    this.#isClosed = false;
    this.#bank.startEpoch(since);
  }

  #add({ refused, accepted }: Closure, at: number): void {
    this.#closures.push({
      refused,
      accepted,
      byLimit: { refused: refused.slice(), accepted },
      firstRefusedAt: at,
      lastRefusedAt: at,
      refusedByLimitAt: at,
      repeats: 0,
      isLong: false,
    });
    if (this.#closures.length > KEPT_FIRST + KEPT_NEWEST) this.#closures.splice(KEPT_FIRST, 1);
  }

  #recordEnd({ refusedByLimitAt, lastRefusedAt, repeats }: OpenClosure, at: number, jitterMs: number): void {
    // A stated wait is as good as probes in vain; a single repeat comes as late as the first response.
    const closedUntil = Math.max(lastRefusedAt, Math.min(at, refusedByLimitAt + this.#statedMs));
    const isEvidence = repeats >= MIN_REPEATS || this.penaltyMs > 0 || closedUntil > lastRefusedAt;
    this.#penalty.record(
      {
        leastMs: isEvidence ? closedUntil - refusedByLimitAt - jitterMs : 0,
        mostMs: at - refusedByLimitAt + jitterMs,
      },
      { leastMs: closedUntil - this.#wasOpenAt, mostMs: at - this.#wasClosedAt },
    );
    this.#wasClosedAt = closedUntil;
    this.#wasOpenAt = at;
  }
}

function keepEach(into: Float32Array, other: Float32Array, keep: (one: number, other: number) => number): void {
  for (const [index, value] of into.entries()) into[index] = keep(value, other[index] ?? value);
}
