/**
 * Virtual time: a binary heap of timers that run in order, with only promise turns in between. Our throttle, the simulated network
 * and the peers' setTimeout use it.
 */
import type { Cancel, Clock, Timer, TimerTarget } from '../../../src/platform/clock.ts';
import { DAY_STARTS_AT } from './limiters.ts';

/** A timer of the heap; cancelling it empties `run`. */
interface PendingTimer {
  readonly at: number;
  readonly order: number;
  readonly skipsSettling: boolean;
  run: (() => void) | undefined;
}

export class VirtualClock implements Clock {
  #now = 0;
  #order = 0;
  readonly #heap: PendingTimer[] = [];
  readonly #startsMs: number;

  /** @param startsMs the time of day at the start */
  constructor(startsMs = 0) {
    this.#startsMs = startsMs;
  }

  now(): number {
    return this.#now;
  }

  wallNow(): number {
    return this.#now + this.#startsMs + DAY_STARTS_AT;
  }

  after(delayMs: number, run: () => void): Cancel {
    return this.exactlyAt(this.#now + delayMs, run);
  }

  startTimer(delayMs: number, target: TimerTarget): Timer {
    return { cancel: this.after(delayMs, () => target.onTimer()) };
  }

  exactlyAt(at: number, run: () => void): Cancel {
    const timer = this.#add(at, run, false);
    return () => {
      timer.run = undefined;
    };
  }

  /** As `exactlyAt`, for callbacks that settle no promise. */
  runWithoutSettlingAt(at: number, run: () => void): void {
    this.#add(at, run, true);
  }

  sleepUntil(at: number): Promise<void> {
    return new Promise((resolve) => {
      this.#add(at, resolve, false);
    });
  }

  /** Runs all timers up to that instant; promises settle before, in between and after. */
  async runUntil(untilMs: number): Promise<void> {
    await settle();
    for (let timer = this.#pop(untilMs); timer !== undefined; timer = this.#pop(untilMs)) {
      const { run } = timer;
      if (run === undefined) continue;
      this.#now = timer.at;
      run();
      if (!timer.skipsSettling) await settle();
    }
    this.#now = Math.max(this.#now, untilMs);
  }

  #add(at: number, run: () => void, isQuiet: boolean): PendingTimer {
    const timer: PendingTimer = {
      at: at > this.#now ? at : this.#now,
      order: this.#order++,
      skipsSettling: isQuiet,
      run,
    };
    const heap = this.#heap;
    let slot = heap.length;
    heap.push(timer);
    while (slot > 0) {
      const parent = heap[(slot - 1) >> 1];
      if (parent === undefined || !isBefore(timer, parent)) break;
      heap[slot] = parent;
      slot = (slot - 1) >> 1;
    }
    heap[slot] = timer;
    return timer;
  }

  #pop(untilMs: number): PendingTimer | undefined {
    const heap = this.#heap;
    const first = heap[0];
    if (first === undefined || first.at > untilMs) return undefined;
    const last = heap.pop();
    if (last !== undefined && last !== first) this.#sink(last);
    return first;
  }

  #sink(timer: PendingTimer): void {
    const heap = this.#heap;
    let slot = 0;
    for (;;) {
      let below = 2 * slot + 1;
      let child = heap[below];
      if (child === undefined) break;
      const right = heap[below + 1];
      if (right !== undefined && isBefore(right, child)) {
        child = right;
        below++;
      }
      if (!isBefore(child, timer)) break;
      heap[slot] = child;
      slot = below;
    }
    heap[slot] = timer;
  }
}

function isBefore(a: PendingTimer, b: PendingTimer): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/**
 * Resolves when every promise chain has settled: a `nextTick` callback that is queued from a promise turn runs only when no promise turn
 * is left.
 */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    process.nextTick(resolve);
  });
}
