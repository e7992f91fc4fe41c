/** Entries in order of arrival, although a retry comes back among younger ones. O(log n), and a move of the entries behind. */
export class ArrivalQueue<T extends { readonly arrivalNumber: number }> {
  readonly #entries: T[] = [];

  get oldest(): T | undefined {
    return this.#entries[0];
  }

  get youngest(): T | undefined {
    return this.#entries.at(-1);
  }

  get size(): number {
    return this.#entries.length;
  }

  insert(entry: T): void {
    this.#entries.splice(this.countOlder(entry.arrivalNumber), 0, entry);
  }

  /** @returns false when the entry was not in this queue */
  remove(entry: T): boolean {
    const index = this.countOlder(entry.arrivalNumber);
    if (this.#entries[index] !== entry) return false;
    this.#entries.splice(index, 1);
    return true;
  }

  countOlder(arrivalNumber: number): number {
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#entries[middle]?.arrivalNumber ?? Infinity) < arrivalNumber) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  [Symbol.iterator](): Iterator<T> {
    return this.#entries.values();
  }
}
