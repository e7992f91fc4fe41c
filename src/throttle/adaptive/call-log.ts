/**
 * The instants at which calls were made, in order (pure). It answers how many lie between two instants, which is all that a
 * limit on a time can be judged by. Bounded: the oldest are dropped first, and it knows from when on it is complete.
 */

const FIRST_SIZE = 256;

/** Instants in rising order; several may be equal. */
export class CallLog {
  #at = new Float64Array(FIRST_SIZE);
  #begin = 0;
  #end = 0;
  #completeSince = -Infinity;
  readonly #most: number;
  readonly #longestMs: number;

  /**
   * @param most instants kept at most
   * @param longestMs older ones are of no use
   */
  constructor(most: number, longestMs: number) {
    this.#most = most;
    this.#longestMs = longestMs;
  }

  /** Counts that begin before this instant are too low. */
  get completeSince(): number {
    return this.#completeSince;
  }

  get size(): number {
    return this.#end - this.#begin;
  }

  /** The instant at `index`, counted from the oldest; NaN outside. */
  at(index: number): number {
    return index >= 0 && index < this.size ? (this.#at[this.#begin + index] ?? NaN) : NaN;
  }

  /** Notes a call. An instant before the last one counts as the last one, so that a clock that jumps back does no harm. */
  add(at: number): void {
    if (this.#end === this.#at.length || this.size >= this.#most) this.#makeRoom(at);
    const last = this.#end > this.#begin ? (this.#at[this.#end - 1] ?? at) : at;
    this.#at[this.#end++] = Math.max(at, last);
  }

  /** Takes out one call of this instant; nothing happens if there is none. */
  remove(at: number): void {
    const index = this.#begin + this.indexOf(at);
    if (index >= this.#end || this.#at[index] !== at) return;
    this.#at.copyWithin(index, index + 1, this.#end);
    this.#end--;
  }

  /** How many of the kept calls were made before `at`; the index of the first that was not. */
  indexOf(at: number): number {
    let low = this.#begin;
    let high = this.#end;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#at[middle] ?? Infinity) < at) low = middle + 1;
      else high = middle;
    }
    return low - this.#begin;
  }

  /** Calls with `from` ≤ instant < `to`. */
  count(from: number, to: number): number {
    return Math.max(0, this.indexOf(to) - this.indexOf(from));
  }

  #makeRoom(now: number): void {
    const tooOld = this.indexOf(now - this.#longestMs);
    const tooMany = this.size >= this.#most ? this.size - this.#most + (this.#most >>> 2) : 0;
    const drop = Math.max(tooOld, tooMany);
    if (drop > 0) this.#completeSince = this.at(drop - 1);
    const kept = this.#at.subarray(this.#begin + drop, this.#end);
    const target = kept.length * 2 > this.#at.length ? new Float64Array(this.#at.length * 2) : this.#at;
    target.set(kept);
    this.#at = target;
    this.#begin = 0;
    this.#end = kept.length;
  }
}
