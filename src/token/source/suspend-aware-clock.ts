/**
 * The clock for token lifetimes: monotonic time plus the time that only the wall clock saw. Linux stops the monotonic
 * clock while the machine is suspended; the wall clock runs on, but can be set back. The larger advance of the two
 * counts, so that a lifetime may end early after a clock change, and never late.
 */
import type { Clock } from '../../platform/clock.ts';

/** The wall clock is read after the monotonic one: a smaller difference is no jump. */
const JITTER_MS = 50;

/**
 * Never goes back. Read it regularly: it sees a jump only between two readings, and a clock set back and a suspend between
 * the same two readings cancel each other out.
 */
export class SuspendAwareClock {
  readonly #clock: Pick<Clock, 'now' | 'wallNow'>;
  /** Wall time minus monotonic time at the last jump. */
  #offsetMs: number;
  #suspendedMs = 0;

  constructor(clock: Pick<Clock, 'now' | 'wallNow'>) {
    this.#clock = clock;
    this.#offsetMs = clock.wallNow() - clock.now();
  }

  /**
   * Milliseconds since an arbitrary start.
   * @param now what the monotonic clock has just given. Default: it is read
   */
  now(now = this.#clock.now()): number {
    const jumpMs = this.#clock.wallNow() - now - this.#offsetMs;
    return Math.abs(jumpMs) > JITTER_MS ? this.#readAfterJump() : now + this.#suspendedMs;
  }

  /** Reads both clocks again: the monotonic reading may have been handed on late. */
  #readAfterJump(): number {
    const now = this.#clock.now();
    const jumpMs = this.#clock.wallNow() - now - this.#offsetMs;
    if (Math.abs(jumpMs) > JITTER_MS) {
      this.#offsetMs += jumpMs;
      this.#suspendedMs += Math.max(0, jumpMs);
    }
    return now + this.#suspendedMs;
  }
}
