/**
 * Limiters that count calls in windows: fixed ones by the server's clock or from the first call, a sliding log, the sliding
 * counter that guesses the log from two fixed windows, and a window that slides by slots. Each may count refused calls as well.
 */
import { type Allowance, type LimiterModel, TOLERANCE_MS } from './limiter-model.ts';

/** So many calls in so much time. */
export interface WindowQuota {
  readonly calls: number;
  readonly windowMs: number;
  /** Refused calls use the quota up too. Default false. */
  readonly countsRefused?: boolean;
  /** How far the server's clock is ahead of ours; windows start at multiples of their length by that clock. Default 0. */
  readonly phaseMs?: number;
}

abstract class Windowed implements LimiterModel {
  readonly windowMs: number;
  /** Two windows that meet may both be used up in no time. */
  readonly burst: number;
  protected readonly calls: number;
  protected readonly phaseMs: number;
  readonly #countsRefused: boolean;

  constructor(quota: WindowQuota) {
    this.calls = quota.calls;
    this.windowMs = quota.windowMs;
    this.phaseMs = quota.phaseMs ?? 0;
    this.#countsRefused = quota.countsRefused ?? false;
    this.burst = 2 * quota.calls;
  }

  abstract nextAt(at: number): number;
  abstract allowance(at: number): Allowance;
  abstract take(at: number): void;

  refuse(at: number): void {
    if (this.#countsRefused) this.take(at);
  }

  rateAt(): number {
    return this.calls / this.windowMs;
  }

  capacity(fromMs: number, toMs: number): number {
    return (toMs - fromMs) * this.rateAt();
  }
}

/** Windows one after another by the server's clock. */
export class FixedWindow extends Windowed {
  #window = -Infinity;
  #used = 0;

  nextAt(at: number): number {
    return this.#usedAt(at) < this.calls ? at : this.#endOf(at);
  }

  take(at: number): void {
    this.#used = this.#usedAt(at) + 1;
    this.#window = this.#windowAt(at);
  }

  allowance(at: number): Allowance {
    return { remaining: Math.max(0, this.calls - this.#usedAt(at)), resetAt: this.#endOf(at) };
  }

  #usedAt(at: number): number {
    return this.#windowAt(at) === this.#window ? this.#used : 0;
  }

  #endOf(at: number): number {
    return (this.#windowAt(at) + 1) * this.windowMs - this.phaseMs;
  }

  #windowAt(at: number): number {
    return Math.floor((at + this.phaseMs) / this.windowMs);
  }
}

/** A window that the first call opens; the first call after its end opens the next. */
export class FirstCallWindow extends Windowed {
  #endsAt = -Infinity;
  #used = 0;

  nextAt(at: number): number {
    return at >= this.#endsAt || this.#used < this.calls ? at : this.#endsAt;
  }

  take(at: number): void {
    if (at >= this.#endsAt) {
      this.#endsAt = at + this.windowMs;
      this.#used = 0;
    }
    this.#used++;
  }

  allowance(at: number): Allowance {
    if (at >= this.#endsAt) return { remaining: this.calls, resetAt: at + this.windowMs };
    return { remaining: Math.max(0, this.calls - this.#used), resetAt: this.#endsAt };
  }
}

/** Keeps the instant of every call of the last window. */
export class SlidingLog extends Windowed {
  override readonly burst: number;
  /** Ring of the last `calls` counted instants: whether the oldest of them has left decides. */
  readonly #ring: Float64Array;
  #next = 0;

  constructor(quota: WindowQuota) {
    super(quota);
    this.burst = quota.calls;
    this.#ring = new Float64Array(quota.calls).fill(-Infinity);
  }

  nextAt(at: number): number {
    return Math.max(at, (this.#ring[this.#next] ?? 0) + this.windowMs);
  }

  take(at: number): void {
    this.#ring[this.#next] = at;
    this.#next = (this.#next + 1) % this.calls;
  }

  allowance(at: number): Allowance {
    const oldest = this.#oldestSince(at - this.windowMs);
    const remaining = oldest === undefined ? this.calls : this.calls - this.#countFrom(oldest);
    return { remaining, resetAt: oldest === undefined ? at + this.windowMs : this.#at(oldest) + this.windowMs };
  }

  /** Position, counted from the oldest kept, of the first instant after `since`. */
  #oldestSince(since: number): number | undefined {
    let low = 0;
    let high = this.calls;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#at(middle) > since) high = middle;
      else low = middle + 1;
    }
    return low === this.calls ? undefined : low;
  }

  #countFrom(position: number): number {
    return this.calls - position;
  }

  #at(position: number): number {
    return this.#ring[(this.#next + position) % this.calls] ?? 0;
  }
}

/** Counts per fixed window and takes as much of the one before as still reaches into the last `windowMs`. */
export class SlidingCounter extends Windowed {
  #window = -Infinity;
  #before = 0;
  #used = 0;

  nextAt(at: number): number {
    const { window, before, used } = this.#countsAt(at);
    if (this.#weighted(at) + 1 <= this.calls) return at;
    const startsAt = window * this.windowMs - this.phaseMs;
    const free = this.calls - 1 - used;
    // In this window, once enough of the one before has slid out ...
    if (free >= 0) return startsAt + (1 - free / before) * this.windowMs;
    // ... or in the next, of which this one is then the one before.
    return startsAt + (2 - (this.calls - 1) / used) * this.windowMs;
  }

  take(at: number): void {
    const { window, before, used } = this.#countsAt(at);
    this.#window = window;
    this.#before = before;
    this.#used = used + 1;
  }

  allowance(at: number): Allowance {
    const remaining = Math.max(0, Math.floor(this.calls - this.#weighted(at) + TOLERANCE_MS * this.rateAt()));
    return { remaining, resetAt: (this.#countsAt(at).window + 1) * this.windowMs - this.phaseMs };
  }

  #weighted(at: number): number {
    const { window, before, used } = this.#countsAt(at);
    const gone = (at + this.phaseMs) / this.windowMs - window;
    return before * (1 - gone) + used;
  }

  #countsAt(at: number): { readonly window: number; readonly before: number; readonly used: number } {
    const window = Math.floor((at + this.phaseMs) / this.windowMs);
    if (window === this.#window) return { window, before: this.#before, used: this.#used };
    return { window, before: window === this.#window + 1 ? this.#used : 0, used: 0 };
  }
}

/** A window that slides by one slot at a time. */
export interface SlotQuota extends WindowQuota {
  /** Parts of the window, of which the current one is the last. */
  readonly slots: number;
}

/** Counts per slot, and adds up the last slots. */
export class SlottedWindow extends Windowed {
  readonly #slots: number;
  readonly #slotMs: number;
  #used: { readonly slot: number; count: number }[] = [];

  constructor(quota: SlotQuota) {
    super(quota);
    this.#slots = quota.slots;
    this.#slotMs = quota.windowMs / quota.slots;
  }

  nextAt(at: number): number {
    return this.#countIn(this.#slotAt(at)) < this.calls ? at : this.#countFallsBelow(this.calls, at);
  }

  take(at: number): void {
    const slot = this.#slotAt(at);
    const last = this.#used.at(-1);
    this.#used = this.#used.filter((used) => used.slot > slot - this.#slots);
    if (last?.slot === slot) last.count++;
    else this.#used.push({ slot, count: 1 });
  }

  allowance(at: number): Allowance {
    const count = this.#countIn(this.#slotAt(at));
    const resetAt = this.#countFallsBelow(Math.max(1, count), at);
    return { remaining: Math.max(0, this.calls - count), resetAt };
  }

  /** Start of the first later slot with fewer calls in its window. */
  #countFallsBelow(count: number, at: number): number {
    let slot = this.#slotAt(at) + 1;
    while (this.#countIn(slot) >= count) slot++;
    return slot * this.#slotMs - this.phaseMs;
  }

  /** Calls in the window of which this slot is the last. */
  #countIn(slot: number): number {
    return this.#used.reduce((sum, used) => (used.slot > slot - this.#slots ? sum + used.count : sum), 0);
  }

  #slotAt(at: number): number {
    return Math.floor((at + this.phaseMs + TOLERANCE_MS) / this.#slotMs);
  }
}
