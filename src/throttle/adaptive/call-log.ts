/**
 * The instants at which calls were made, in order (pure). It answers how many lie between two instants, which is all that a
 * limit on a time can be judged by. Bounded: the oldest are dropped first, and it knows from when on it is complete.
 */

const INITIAL_CAPACITY = 256;

/** Instants in rising order; several may be equal. */
export class CallLog {
  #instants = new Float64Array(INITIAL_CAPACITY);
  #begin = 0;
  #end = 0;
  #completeSinceAt = -Infinity;
  readonly #maxSize: number;
  readonly #maxAgeMs: number;

  /**
   * @param most instants kept at most
   * @param longestMs older ones are of no use
   */
  constructor(most: number, longestMs: number) {
    this.#maxSize = most;
    this.#maxAgeMs = longestMs;
  }

  /** Counts that begin before this instant are too low. */
  get completeSinceAt(): number {
    return this.#completeSinceAt;
  }

  get size(): number {
    return this.#end - this.#begin;
  }

  /** The instant at `index`, counted from the oldest; NaN outside. */
  at(index: number): number {
    return index >= 0 && index < this.size ? (this.#instants[this.#begin + index] ?? NaN) : NaN;
  }

  /** Notes a call. An instant before the last one counts as the last one, so that a clock that jumps back does no harm. */
  add(at: number): void {
    if (this.#end === this.#instants.length || this.#end - this.#begin >= this.#maxSize) this.#dropOldest(at);
    const last = this.#end > this.#begin ? (this.#instants[this.#end - 1] ?? at) : at;
    this.#instants[this.#end++] = Math.max(at, last);
  }

  /** Becomes a copy of the other. */
  copyFrom(other: CallLog): void {
    this.#instants = other.#instants.slice();
    this.#begin = other.#begin;
    this.#end = other.#end;
    this.#completeSinceAt = other.#completeSinceAt;
  }

  /** Takes out one call of this instant; nothing happens if there is none. */
  remove(at: number): void {
    const index = this.#begin + this.firstIndexFrom(at);
    if (index >= this.#end || this.#instants[index] !== at) return;
    this.#instants.copyWithin(index, index + 1, this.#end);
    this.#end--;
  }

  /** How many of the kept calls were made before `at`; the index of the first that was not. */
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
    if (drop > 0) this.#completeSinceAt = this.at(drop - 1);
    const kept = this.#instants.subarray(this.#begin + drop, this.#end);
    const target =
      kept.length * 2 > this.#instants.length ? new Float64Array(this.#instants.length * 2) : this.#instants;
    target.set(kept);
    this.#instants = target;
    this.#begin = 0;
    this.#end = kept.length;
  }
}
