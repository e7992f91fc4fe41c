/**
 * Evidence for a least interval between accepted calls (pure), as of nginx's limit_req without a burst: calls sooner after an accepted one
 * are refused, later ones are accepted. Random faults and outages have no such border. Bounded: the last calls are kept.
 */

/** Calls that are examined together. */
const SAMPLES = 512;
/** Part of the calls that may lie on the wrong side of the border: the network changes intervals by a few milliseconds. */
const MAX_WRONG_SHARE = 0.03;
/**
 * Calls must lie close to the border on both sides, since evenly sent calls are apart by one interval or by two for any cause of refusals: this
 * part of the border on each side, in so many ranges with so many calls each.
 */
const NEAR = 0.25;
const RANGES = 3;
const MIN_IN_RANGE = 4;
/** Two borders from different calls agree when they differ by no more. */
const AGREEMENT = 0.1;

/** A least interval between accepted calls, with the figures. */
export interface GapFigures {
  readonly windowMs: number;
  /** Calls that were examined. */
  readonly windows: number;
  readonly acceptedPerWindow: 1;
  /** Part of the calls within the interval that was refused, and of the calls after it. */
  readonly shareAtHighRate: number;
  readonly shareAtLowRate: number;
}

export class GapEvidence {
  readonly #gaps = new Float64Array(SAMPLES);
  readonly #isRefused = new Uint8Array(SAMPLES);
  #count = 0;
  #lastAcceptedAt: number | undefined;
  #candidate: number | undefined;

  /** @returns true when enough calls are there for `evaluate` */
  add(sentAt: number, isRefused: boolean): boolean {
    if (this.#lastAcceptedAt !== undefined) {
      this.#gaps[this.#count] = sentAt - this.#lastAcceptedAt;
      this.#isRefused[this.#count++] = isRefused ? 1 : 0;
    }
    if (!isRefused) this.#lastAcceptedAt = sentAt;
    return this.#count === SAMPLES;
  }

  /** Begins anew. The figures when calls before and now show the same border; otherwise undefined. */
  evaluate(isTroubled: boolean): GapFigures | undefined {
    this.#count = 0;
    const found = isTroubled ? undefined : this.#findBorder();
    const before = this.#candidate;
    this.#candidate = found?.windowMs;
    const isConfirmed = found !== undefined && before !== undefined && isClose(found.windowMs, before);
    return isConfirmed ? { ...found, windows: 2 * SAMPLES } : undefined;
  }

  #findBorder(): GapFigures | undefined {
    const order = Array.from(this.#gaps.keys()).sort((a, b) => this.#gapAt(a) - this.#gapAt(b));
    const refused = this.#isRefused.reduce((sum, one) => sum + one, 0);
    // All below the border are refused and all above it are accepted, but for the wrong ones.
    let [wrong, fewestWrong, place] = [refused, Infinity, 0];
    for (const [index, sample] of order.entries()) {
      if (wrong < fewestWrong) [fewestWrong, place] = [wrong, index];
      wrong += this.#isRefused[sample] === 1 ? -1 : 1;
    }
    if (fewestWrong > MAX_WRONG_SHARE * SAMPLES || place === 0) return undefined;
    const border = (this.#gapAt(order[place - 1] ?? 0) + this.#gapAt(order[place] ?? 0)) / 2;
    if (!this.#isDenseAround(border)) return undefined;
    const refusedBelow = order.slice(0, place).reduce((sum, sample) => sum + (this.#isRefused[sample] ?? 0), 0);
    return {
      ...{ windowMs: Math.round(border), windows: SAMPLES, acceptedPerWindow: 1 },
      shareAtHighRate: refusedBelow / place,
      shareAtLowRate: (refused - refusedBelow) / (SAMPLES - place),
    };
  }

  #isDenseAround(border: number): boolean {
    const ranges = new Float64Array(2 * RANGES);
    for (const gap of this.#gaps) {
      const range = Math.floor((gap / border - (1 - NEAR)) * (RANGES / NEAR));
      if (range >= 0 && range < ranges.length) ranges[range] = (ranges[range] ?? 0) + 1;
    }
    return ranges.every((calls) => calls >= MIN_IN_RANGE);
  }

  #gapAt(sample: number): number {
    return this.#gaps[sample] ?? 0;
  }
}

function isClose(one: number, other: number): boolean {
  return Math.abs(one / other - 1) <= AGREEMENT;
}
