/** Virtual time for simulations: runs timer after timer until none is left, with only the turns of promises in between. */
import type { Cancel, Clock, Timer, TimerTarget } from '../../src/platform/clock.ts';
import { Heap } from '../../src/throttle/queue/heap.ts';

class PendingTimer {
  readonly expiresAt: number;
  readonly run: () => void;

  constructor(at: number, run: () => void) {
    this.expiresAt = at;
    this.run = run;
  }
}

export class SteppingClock implements Clock {
  #now = 0;
  readonly #timers = new Heap<PendingTimer>((one, other) => one.expiresAt < other.expiresAt);

  now(): number {
    return this.#now;
  }

  wallNow(): number {
    return this.#now + Date.UTC(2026, 10, 1);
  }

  after(delayMs: number, run: () => void): Cancel {
    return this.exactlyAt(this.#now + Math.max(0, delayMs), run);
  }

  startTimer(delayMs: number, target: TimerTarget): Timer {
    return { cancel: this.after(delayMs, () => target.onTimer()) };
  }

  exactlyAt(at: number, run: () => void): Cancel {
    const timer = new PendingTimer(Math.max(at, this.#now), run);
    this.#timers.update(timer, true);
    return () => this.#timers.remove(timer);
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.after(delayMs, resolve));
  }

  /** Ends when no timer is left, or when virtual time has passed `untilMs`. */
  async runUntilIdle(untilMs = Infinity): Promise<void> {
    for (;;) {
      // The microtask queue runs dry before an immediate.
      await new Promise((resolve) => setImmediate(resolve));
      const timer = this.#timers.first;
      if (timer === undefined || timer.expiresAt > untilMs) return;
      this.#timers.remove(timer);
      this.#now = timer.expiresAt;
      timer.run();
    }
  }
}
