/** The undocumented limit of the simulated API, a token bucket. It shares no code with the throttle: a common fault would not show. */
import type { Clock } from '../platform/clock.ts';

export interface HiddenLimitOptions {
  /** More than 0; decimals allowed. */
  readonly permitsPerSecond: number;
  /** Most permits saved up; at least 1. */
  readonly burst: number;
}

const ROUNDING = 1e-9;

export class HiddenLimit {
  readonly #clock: Clock;
  readonly #options: HiddenLimitOptions;
  #permits: number;
  #updatedAt: number;

  constructor(clock: Clock, options: HiddenLimitOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#permits = options.burst;
    this.#updatedAt = clock.now();
  }

  /**
   * Spends one permit, if there is one.
   * @returns undefined, or for a call that is refused the `Retry-After`: seconds, rounded up, so that a client that waits that long is not
   * refused again
   */
  take(): number | undefined {
    const { permitsPerSecond, burst } = this.#options;
    const now = this.#clock.now();
    this.#permits = Math.min(burst, this.#permits + ((now - this.#updatedAt) / 1000) * permitsPerSecond);
    this.#updatedAt = now;
    // At least 1, since 0 means no wait.
    if (this.#permits < 1 - ROUNDING) return Math.max(1, Math.ceil((1 - this.#permits) / permitsPerSecond - ROUNDING));
    this.#permits = Math.max(0, this.#permits - 1);
    return undefined;
  }
}
