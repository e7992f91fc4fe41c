/** The instants of calls in rising order, and how many lie between two instants (pure). Bounded: the oldest are dropped first. */

const INITIAL_CAPACITY = 256;

export class CallLog {
  /** Instants that are kept. Written here only. */
  size = 0;
  #instants = new Float64Array(INITIAL_CAPACITY);
  #begin = 0;
  #end = 0;
  readonly #maxSize: number;
  readonly #maxAgeMs: number;

  /**
   * @param maxSize instants that are kept
   * @param maxAgeMs older ones are dropped when the log needs room
   */
  constructor(maxSize: number, maxAgeMs: number) {
    this.#maxSize = maxSize;
    this.#maxAgeMs = maxAgeMs;
  }

  /** The instant at `index`, where 0 is the oldest; NaN out of range. */
  at(index: number): number {
    return index >= 0 && index < this.size ? (this.#instants[this.#begin + index] ?? NaN) : NaN;
  }

  /** An instant before the last one is raised to it: a clock that jumps back does no harm. */
  add(at: number): void {
    if (this.#end === this.#instants.length || this.size >= this.#maxSize) this.#dropOldest(at);
    const last = this.size > 0 ? (this.#instants[this.#end - 1] ?? at) : at;
    this.#instants[this.#end++] = Math.max(at, last);
    this.size++;
  }

  /** Removes one call of this instant, if there is one. */
  remove(at: number): void {
    const index = this.#begin + this.firstIndexFrom(at);
    if (index >= this.#end || this.#instants[index] !== at) return;
    // Most calls end in the order in which they began.
    if (index === this.#begin) this.#begin++;
    else this.#instants.copyWithin(index, index + 1, this.#end--);
    this.size--;
  }

  /** Index of the first call at or after `at`, which is the number of calls before it. */
  firstIndexFrom(at: number): number {
    let low = this.#begin;
    let high = this.#end;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#instants[middle] ?? Infinity) < at) low = middle + 1;
      else high = middle;
    }
    return low - this.#begin;
  }

  /** Calls with `from` ≤ instant < `to`. */
  count(from: number, to: number): number {
    return Math.max(0, this.firstIndexFrom(to) - this.firstIndexFrom(from));
  }

  #dropOldest(now: number): void {
    const tooOld = this.firstIndexFrom(now - this.#maxAgeMs);
    const tooMany = this.size >= this.#maxSize ? this.size - this.#maxSize + (this.#maxSize >>> 2) : 0;
    const drop = Math.max(tooOld, tooMany);
    const kept = this.#instants.subarray(this.#begin + drop, this.#end);
    const target =
      kept.length * 2 > this.#instants.length ? new Float64Array(this.#instants.length * 2) : this.#instants;
    target.set(kept);
    this.#instants = target;
    this.#begin = 0;
    this.#end = this.size = kept.length;
  }
}
