/** How much arrivals at the upstream differ from departures here, judged by the round trip (pure; RFC 6298 §2 in form). */

const MIN_JITTER_MS = 2;
const MAX_JITTER_MS = 100;

/** Mean and mean deviation of the time to an answer. */
export class RoundTripEstimator {
  #meanMs = NaN;
  #deviationMs = 0;
  readonly #jitterDeviations: number;

  /** @param deviations mean deviations that count as jitter */
  constructor(deviations: number) {
    this.#jitterDeviations = deviations;
  }

  /** What to allow for, milliseconds. */
  get jitterMs(): number {
    return Math.min(MAX_JITTER_MS, Math.max(MIN_JITTER_MS, this.#jitterDeviations * this.#deviationMs));
  }

  addSample(ms: number): void {
    if (Number.isNaN(this.#meanMs)) {
      this.#meanMs = ms;
      this.#deviationMs = ms / 4;
      return;
    }
    this.#deviationMs += (Math.abs(ms - this.#meanMs) - this.#deviationMs) / 16;
    this.#meanMs += (ms - this.#meanMs) / 16;
  }
}
