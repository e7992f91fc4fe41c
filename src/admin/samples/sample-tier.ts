/** Samples at one interval (pure): their instants, and a column of numbers for each series. The oldest sample is replaced. */

const EARLY_MS = 500;

export class SampleTier {
  readonly intervalMs: number;
  taken = 0;
  readonly #times: Float64Array;

  constructor(intervalMs: number, length: number) {
    this.intervalMs = intervalMs;
    this.#times = new Float64Array(length);
  }

  get length(): number {
    return this.#times.length;
  }

  get slot(): number {
    return this.#slotOf(this.taken - 1);
  }

  get first(): number {
    return Math.max(0, this.taken - this.length);
  }

  /** A timer that comes a little early still takes its sample. */
  isDue(now: number): boolean {
    return this.taken === 0 || now - this.timeOf(this.taken - 1) >= this.intervalMs - EARLY_MS;
  }

  /** Begins a sample; the columns are written at `slot`. */
  begin(now: number): void {
    this.#times[this.#slotOf(this.taken++)] = now;
  }

  /** @param sample its number, from `first` to `taken` - 1 */
  timeOf(sample: number): number {
    return this.#times[this.#slotOf(sample)] ?? 0;
  }

  /** The newest sample that is not younger than `at`; -1 when all are. */
  findAt(at: number): number {
    for (let sample = this.taken - 1; sample >= this.first; sample--) if (this.timeOf(sample) <= at) return sample;
    return -1;
  }

  countSince(at: number): number {
    return this.taken - 1 - Math.max(this.first, this.findAt(at));
  }

  read(column: ArrayLike<number>, sample: number): number {
    return column[this.#slotOf(sample)] ?? 0;
  }

  growthOf(column: ArrayLike<number>, sample: number): number {
    return (this.read(column, sample) - this.read(column, sample - 1)) >>> 0;
  }

  #slotOf(sample: number): number {
    return sample % this.length;
  }
}
