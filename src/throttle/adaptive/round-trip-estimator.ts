/** Estimates the network jitter from the round-trip times (pure; mean and mean deviation as in RFC 6298 §2). */

const MIN_JITTER_MS = 2;
const MAX_JITTER_MS = 100;
/** Mean deviations of the round trip that count as jitter. */
const JITTER_DEVIATIONS = 3;

export class RoundTripEstimator {
  /** Smoothed; NaN before the first response. */
  meanMs = NaN;
  #deviationMs = 0;

  get jitterMs(): number {
    return Math.min(MAX_JITTER_MS, Math.max(MIN_JITTER_MS, JITTER_DEVIATIONS * this.#deviationMs));
  }

  addSample(ms: number): void {
    if (Number.isNaN(this.meanMs)) {
      this.meanMs = ms;
      this.#deviationMs = ms / 4;
      return;
    }
    this.#deviationMs += (Math.abs(ms - this.meanMs) - this.#deviationMs) / 16;
    this.meanMs += (ms - this.meanMs) / 16;
  }
}
