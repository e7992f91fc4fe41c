/**
 * Declared limits that count the same calls (pure): such a call takes a permit of all of them, or of none. The instants of the throttle are
 * monotonic; limits count in epoch milliseconds.
 */
import type { CountedLimit, TakenPermits } from './counted-limit.ts';

/** What the limits of one throttle have in common. */
export interface LimitContext {
  /** Epoch milliseconds of a monotonic instant. */
  epochAt(now: number): number;
  /** Asks the store for permits; undefined without a store. Called at each call that finds or leaves few. */
  readonly requestPermits: (() => void) | undefined;
  /** The limits that count every call. */
  readonly forAll: LimitSet;
}

export class LimitSet {
  limits: readonly CountedLimit[];
  readonly #context: LimitContext;
  #withForAll: { readonly forAll: readonly CountedLimit[]; readonly set: LimitSet } | undefined;

  constructor(limits: readonly CountedLimit[], context: LimitContext) {
    this.limits = limits;
    this.#context = context;
  }

  /** The limits of an operation, and those of all calls as they are declared now. */
  get withForAll(): LimitSet {
    const forAll = this.#context.forAll.limits;
    if (this.#withForAll?.forAll !== forAll)
      this.#withForAll = { forAll, set: new LimitSet([...this.limits, ...forAll], this.#context) };
    return this.#withForAll.set;
  }

  /** Whether a call may go now. Asks the store where only leased permits are missing. */
  isOpen(now: number, isHigh: boolean): boolean {
    const at = this.#context.epochAt(now);
    if (this.isStoreAwaited) this.#context.requestPermits?.();
    return this.limits.every((limit) => limit.isOpen(at, isHigh));
  }

  /** No call may go before the store has leased permits. */
  get isStoreAwaited(): boolean {
    return this.limits.some(({ leased }) => leased < 1);
  }

  /** Calls that may go now; permits that are not leased yet count. */
  available(now: number, isHigh: boolean): number {
    const at = this.#context.epochAt(now);
    const left = this.limits.map((limit) => (limit.nthAt(at, 0, isHigh) > at ? 0 : limit.left(at, isHigh)));
    return Math.max(0, Math.min(...left));
  }

  /** Infinity while only the store can help. @param isHigh it may use the reserve. Default: false */
  nextAt(now: number, isHigh = false): number {
    const nextAt = this.nthAt(now, 0, isHigh);
    return nextAt <= now && this.isStoreAwaited ? Infinity : nextAt;
  }

  /** Permits that are not leased yet count. Of the calls ahead a limit of operations counts those alone that wait for it. */
  nthAt(now: number, ahead: number, isHigh = false): number {
    const at = this.#context.epochAt(now);
    return Math.max(...this.#listNthAt(at, ahead, isHigh)) - at + now;
  }

  /** The limit for which the call behind `ahead` others waits longest, for people. */
  lastToOpen(now: number, ahead: number, isHigh: boolean): string {
    const instants = this.#listNthAt(this.#context.epochAt(now), ahead, isHigh);
    const last = this.limits[instants.indexOf(Math.max(...instants))]?.terms;
    return last === undefined ? '' : `${last.name} of ${String(last.calls)} calls per ${last.per}`;
  }

  /** To be called when `isOpen` is true. */
  take(now: number): TakenPermits {
    const at = this.#context.epochAt(now);
    const taken = this.limits.map((limit) => ({ limit, expiresAt: limit.take(at) }));
    if (this.limits.some(({ leased, leaseSize }) => leased <= leaseSize / 2)) this.#context.requestPermits?.();
    return taken;
  }

  /** A call of these limits begins (1) or ends (-1) to wait. */
  addWaiting(calls: number): void {
    for (const limit of this.limits) limit.waiting += calls;
  }

  #listNthAt(at: number, ahead: number, isHigh: boolean): readonly number[] {
    return this.limits.map((limit) => limit.nthAt(at, Math.min(ahead, limit.waiting), isHigh));
  }
}
