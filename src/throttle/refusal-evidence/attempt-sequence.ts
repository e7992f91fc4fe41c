/**
 * Brings the results of attempts into the order in which the attempts were sent (pure): several are under way at once, and a limiter
 * counts them as they arrive. Bounded: the oldest attempt without a result is given up when the ring is full.
 */

/** Attempts that may be under way or wait for an older one. */
const CAPACITY = 1024;
const PENDING = 0;
const UNKNOWN = 1;

/** One attempt that has ended. */
export interface SequencedAttempt {
  /** Monotonic milliseconds. */
  readonly sentAt: number;
  /** From the send to the response head, milliseconds. */
  readonly latencyMs: number;
  /** What `end` was given. */
  readonly code: number;
  readonly endpoint: number;
  readonly isRetry: boolean;
}

export class AttemptSequence {
  readonly #sentAt = new Float64Array(CAPACITY);
  readonly #latencyMs = new Float64Array(CAPACITY);
  readonly #codes = new Uint16Array(CAPACITY);
  readonly #endpoints = new Uint8Array(CAPACITY);
  readonly #isRetry = new Uint8Array(CAPACITY);
  #next = 0;
  #oldest = 0;

  /** @returns the number of the attempt, for `end` */
  start(now: number, isRetry: boolean): number {
    if (this.#next - this.#oldest === CAPACITY) this.#giveUpOldest();
    const index = this.#next % CAPACITY;
    this.#sentAt[index] = now;
    this.#codes[index] = PENDING;
    this.#isRetry[index] = isRetry ? 1 : 0;
    return this.#next++;
  }

  /** @param code at least 2 @returns the latency, milliseconds */
  end(attempt: number, now: number, code: number, endpoint: number): number {
    if (attempt < this.#oldest) return 0;
    const index = attempt % CAPACITY;
    if (this.#codes[index] !== PENDING) return 0;
    const latencyMs = now - (this.#sentAt[index] ?? now);
    this.#latencyMs[index] = latencyMs;
    this.#codes[index] = code;
    this.#endpoints[index] = endpoint;
    return latencyMs;
  }

  /** The oldest attempt, if it has ended; it is removed. */
  take(): SequencedAttempt | undefined {
    while (this.#oldest < this.#next) {
      const index = this.#oldest % CAPACITY;
      const code = this.#codes[index] ?? PENDING;
      if (code === PENDING) return undefined;
      this.#oldest++;
      if (code === UNKNOWN) continue;
      return {
        sentAt: this.#sentAt[index] ?? 0,
        latencyMs: this.#latencyMs[index] ?? 0,
        code,
        endpoint: this.#endpoints[index] ?? 0,
        isRetry: this.#isRetry[index] === 1,
      };
    }
    return undefined;
  }

  /** As `take`, where the attempts themselves are of no interest. */
  discardEnded(): void {
    while (this.#oldest < this.#next && this.#codes[this.#oldest % CAPACITY] !== PENDING) this.#oldest++;
  }

  #giveUpOldest(): void {
    const index = this.#oldest % CAPACITY;
    if (this.#codes[index] === PENDING) this.#codes[index] = UNKNOWN;
    this.#oldest++;
  }
}
