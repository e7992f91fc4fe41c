/**
 * The clock that token lives are measured on: monotonic time plus the time that only the wall clock saw. The monotonic
 * clock of Linux stands still while a machine is suspended; the wall clock does not, yet it can be set back. Of the two
 * advances the larger one counts, so a life may end early by a clock set forward, and never late.
 */
import type { Clock } from '../../platform/clock.ts';

/** The two clocks are read one after the other and tick differently: less than this between them is no jump. */
const JITTER_MS = 50;

/**
 * Never goes back. It knows of a jump only what the wall clock showed between two readings: a clock set back and a suspend
 * with no reading in between cancel each other out, so it is to be read now and then.
 */
export class SuspendAwareClock {
  readonly #clock: Pick<Clock, 'now' | 'wallNow'>;
  /** Wall time less monotonic time, as of the last jump. */
  #offsetMs: number;
  #suspendedMs = 0;

  constructor(clock: Pick<Clock, 'now' | 'wallNow'>) {
    this.#clock = clock;
    this.#offsetMs = clock.wallNow() - clock.now();
  }

  /** Milliseconds since an arbitrary start. */
  now(): number {
    const now = this.#clock.now();
    const jumpMs = this.#clock.wallNow() - now - this.#offsetMs;
    if (Math.abs(jumpMs) > JITTER_MS) {
      this.#offsetMs += jumpMs;
      this.#suspendedMs += Math.max(0, jumpMs);
    }
    return now + this.#suspendedMs;
  }
}
