/**
 * Tells a limit from a server that refuses calls because its queue is full (pure): there even the quickest of the calls accepted just before
 * a refusal has waited long.
 */

/** Accepted calls before a refusal, of which the quickest counts: endpoints differ in their latency. */
const CALLS = 8;
/** Of one refusal in the moving average. */
const WEIGHT = 0.05;
/** How many times more than the quickest of all is long. */
const MAX_TIMES_LOWEST = 6;
/** Smaller differences say nothing. */
const RESOLUTION_MS = 20;

export class QueueDetector {
  readonly #latenciesMs = new Float64Array(CALLS).fill(Infinity);
  #lowestMs: number;
  #beforeRefusalMs = 0;
  #accepted = 0;
  #refusals = 0;
  #isAfterRefused = false;

  /** @param lowestMs of the calls accepted before */
  constructor(lowestMs: number) {
    this.#lowestMs = lowestMs;
  }

  /** Of any accepted call. */
  get lowestMs(): number {
    return this.#lowestMs;
  }

  /** Whether refusals come from a full queue, as far as is known. */
  get isQueueing(): boolean {
    return this.#beforeRefusalMs > MAX_TIMES_LOWEST * this.#lowestMs + RESOLUTION_MS;
  }

  addAccepted(latencyMs: number): void {
    this.#isAfterRefused = false;
    this.#lowestMs = Math.min(this.#lowestMs, latencyMs);
    this.#latenciesMs[this.#accepted++ % CALLS] = latencyMs;
  }

  addRefused(): void {
    if (this.#isAfterRefused || this.#accepted < CALLS) return;
    this.#isAfterRefused = true;
    const quickestMs = Math.min(...this.#latenciesMs);
    this.#beforeRefusalMs += (quickestMs - this.#beforeRefusalMs) * Math.max(WEIGHT, 1 / ++this.#refusals);
  }
}
