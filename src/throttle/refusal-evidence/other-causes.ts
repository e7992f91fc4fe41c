/** What refusals look like that are no limit: those from a full queue, and those by chance (pure). */

/** Accepted calls before a refusal, of which the quickest counts: endpoints differ in their latency. */
const CALLS = 8;
/** Of one refusal in the moving average. */
const WEIGHT = 0.05;
/** How many times more than the quickest of all is long. */
const MAX_TIMES_SHORTEST = 6;
/** Smaller differences say nothing. */
const RESOLUTION_MS = 20;

/** Whether a server refuses calls because its queue is full: there even the quickest of the calls accepted just before a refusal has waited long. */
export class FullQueueDetector {
  readonly #latenciesMs = new Float64Array(CALLS).fill(Infinity);
  #shortestMs: number;
  #beforeRefusalMs = 0;
  #accepted = 0;
  #refusals = 0;
  #isAfterRefused = false;

  /** @param shortestMs of the calls accepted before */
  constructor(shortestMs: number) {
    this.#shortestMs = shortestMs;
  }

  get isFull(): boolean {
    return this.#beforeRefusalMs > MAX_TIMES_SHORTEST * this.#shortestMs + RESOLUTION_MS;
  }

  add(isRefused: boolean, latencyMs: number): void {
    if (!isRefused) {
      this.#shortestMs = Math.min(this.#shortestMs, latencyMs);
      this.#latenciesMs[this.#accepted++ % CALLS] = latencyMs;
    } else if (!this.#isAfterRefused && this.#accepted >= CALLS) {
      const quickestMs = Math.min(...this.#latenciesMs);
      this.#beforeRefusalMs += (quickestMs - this.#beforeRefusalMs) * Math.max(WEIGHT, 1 / ++this.#refusals);
    }
    this.#isAfterRefused = isRefused;
  }
}

/** So many standard deviations from what chance gives, refusals do not fall on the calls by chance. */
const MIN_DEVIATIONS = 4;

/** Whether refusals fall on the calls by chance (a runs test): then a refusal follows a refusal as often as any other call. */
export class RunsTest {
  #calls = 0;
  #refused = 0;
  #refusedAfterRefused = 0;
  #isAfterRefused = false;

  add(isRefused: boolean): void {
    this.#calls++;
    if (isRefused) this.#refused++;
    if (isRefused && this.#isAfterRefused) this.#refusedAfterRefused++;
    this.#isAfterRefused = isRefused;
  }

  get isByChance(): boolean {
    const [calls, refused] = [this.#calls, this.#refused];
    const deviation = this.#refusedAfterRefused - refused ** 2 / calls;
    return deviation ** 2 < (MIN_DEVIATIONS ** 2 * (refused ** 2 * (calls - refused) ** 2)) / calls ** 3;
  }
}
