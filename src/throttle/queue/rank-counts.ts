/** How many requests stand at each rank, from 1, of their callers' queues: a binary indexed tree (Fenwick 1994), O(log n) for each operation. */

export class RankCounts {
  /** Index `i` sums up the ranks from `i - lowestBit(i) + 1` to `i`; the last index is a power of two. */
  readonly #sums: number[] = [0, 0];

  add(rank: number): void {
    while (rank >= this.#sums.length) this.#grow();
    this.#addAt(rank, 1);
  }

  remove(rank: number): void {
    this.#addAt(rank, -1);
  }

  /** Counts of `rank` and all ranks before it. */
  countUpTo(rank: number): number {
    let count = 0;
    for (let index = Math.min(rank, this.#sums.length - 1); index > 0; index -= lowestBit(index))
      count += this.#sums[index] ?? 0;
    return count;
  }

  #addAt(rank: number, by: number): void {
    for (let index = rank; index < this.#sums.length; index += lowestBit(index))
      this.#sums[index] = (this.#sums[index] ?? 0) + by;
  }

  /** Doubles the size. The new last index sums up all ranks, as the old one did; the new ones between are still empty. */
  #grow(): void {
    const last = this.#sums.length - 1;
    const all = this.#sums[last] ?? 0;
    for (let index = last + 1; index < 2 * last; index++) this.#sums.push(0);
    this.#sums.push(all);
  }
}

function lowestBit(index: number): number {
  return index & -index;
}
