/** A clock that tests move by hand. */
import type { Cancel, Clock, Timer, TimerTarget } from '../../src/platform/clock.ts';

interface PendingTimer {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

export class ManualClock implements Clock {
  #nowMs = 0;
  #wallOffsetMs: number;
  #order = 0;
  readonly #timers = new Set<PendingTimer>();

  /** @param wallStartMs epoch milliseconds at monotonic 0 */
  constructor(wallStartMs = Date.UTC(2026, 10, 1)) {
    this.#wallOffsetMs = wallStartMs;
  }

  now(): number {
    return this.#nowMs;
  }

  wallNow(): number {
    return this.#nowMs + this.#wallOffsetMs;
  }

  after(delayMs: number, run: () => void): Cancel {
    return this.exactlyAt(this.#nowMs + Math.max(0, delayMs), run);
  }

  startTimer(delayMs: number, target: TimerTarget): Timer {
    return { cancel: this.after(delayMs, () => target.onTimer()) };
  }

  exactlyAt(at: number, run: () => void): Cancel {
    const timer: PendingTimer = { at: Math.max(at, this.#nowMs), order: this.#order++, run };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** The wall clock alone jumps (NTP step); negative goes back. */
  stepWall(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Moves time, running what falls due in order; promises settle before, between and after. */
  async advance(byMs: number): Promise<void> {
    const until = this.#nowMs + byMs;
    await settle();
    for (let next = this.#next(until); next !== undefined; next = this.#next(until)) {
      this.#timers.delete(next);
      this.#nowMs = next.at;
      next.run();
      await settle();
    }
    this.#nowMs = until;
    await settle();
  }

  #next(until: number): PendingTimer | undefined {
    let first: PendingTimer | undefined;
    for (const timer of this.#timers) {
      if (timer.at > until) continue;
      if (first === undefined || timer.at < first.at || (timer.at === first.at && timer.order < first.order))
        first = timer;
    }
    return first;
  }
}

/** Lets promise chains run dry without moving time. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}
