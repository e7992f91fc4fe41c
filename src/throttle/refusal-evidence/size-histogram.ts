/** Counts blocks by their number of accepted calls, with and without refusals (pure). Bounded: eight classes for each doubling. */
const CLASSES = 160;
const PER_DOUBLING = 8;
/** Fewer blocks give no share. */
const MIN_BLOCKS = 5;

export class SizeHistogram {
  readonly #blocks = new Float64Array(CLASSES);
  readonly #refusing = new Float64Array(CLASSES);

  add(accepted: number, isRefusing: boolean): void {
    const index = classOf(accepted);
    this.#blocks[index] = (this.#blocks[index] ?? 0) + 1;
    if (isRefusing) this.#refusing[index] = (this.#refusing[index] ?? 0) + 1;
  }

  /** The part of the blocks with `from` to `to` accepted calls that had refusals; undefined where there are fewer than five. */
  refusingShare(from: number, to: number): number | undefined {
    let [blocks, refusing] = [0, 0];
    const last = to === Infinity ? CLASSES - 1 : classOf(to) - 1;
    for (let index = classOf(from); index <= last; index++) {
      blocks += this.#blocks[index] ?? 0;
      refusing += this.#refusing[index] ?? 0;
    }
    return blocks < MIN_BLOCKS ? undefined : refusing / blocks;
  }
}

/** 0 for none. */
function classOf(accepted: number): number {
  return accepted < 1 ? 0 : Math.min(CLASSES - 1, 1 + Math.floor(PER_DOUBLING * Math.log2(accepted)));
}
