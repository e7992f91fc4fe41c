/**
 * How many stand first in their lines, how many second, and so on, and how many stand at some rank or a better one: a binary
 * indexed tree (Fenwick 1994), so that neither arrivals nor questions cost a walk along the lines.
 */

/** Counts by rank, from 1. O(log n) each. */
export class RankCounts {
  /** Slot `i` sums up the ranks from `i - lowestBit(i) + 1` to `i`; the last slot's number is a power of two. */
  readonly #sums: number[] = [0, 0];

  add(rank: number): void {
    while (rank >= this.#sums.length) this.#grow();
    this.#addAt(rank, 1);
  }

  /** Takes back one `add`. */
  remove(rank: number): void {
    this.#addAt(rank, -1);
  }

  /** How many stand at `rank` or before it. */
  countUpTo(rank: number): number {
    let count = 0;
    for (let slot = Math.min(rank, this.#sums.length - 1); slot > 0; slot -= lowestBit(slot))
      count += this.#sums[slot] ?? 0;
    return count;
  }

  #addAt(rank: number, by: number): void {
    for (let slot = rank; slot < this.#sums.length; slot += lowestBit(slot))
      this.#sums[slot] = (this.#sums[slot] ?? 0) + by;
  }

  /** Doubles. The new last slot sums up all ranks, as the old one did; those between them are still empty. */
  #grow(): void {
    const last = this.#sums.length - 1;
    const all = this.#sums[last] ?? 0;
    for (let slot = last + 1; slot < 2 * last; slot++) this.#sums.push(0);
    this.#sums.push(all);
  }
}

function lowestBit(slot: number): number {
  return slot & -slot;
}
