/**
 * Calls that count for a limit, by the instant at which they stop to count (pure). The instants are few: the steps of a sliding window, or
 * the ends of two calendar windows. Instants are epoch milliseconds.
 */

/** When calls stop to count, and how many. */
export type CountEntry = readonly [expiresAt: number, calls: number];

/** Beyond this number the earliest are merged, and count longer. */
const MAX_ENTRIES = 200;

export class CountedCalls {
  /** Rises with each change. */
  version = 0;
  /** Ascending. */
  #entries: [number, number][] = [];
  #total = 0;

  constructor(entries: readonly CountEntry[] = []) {
    for (const [expiresAt, calls] of entries) this.add(expiresAt, calls);
  }

  /** @param calls negative where a count is taken back */
  add(expiresAt: number, calls: number): void {
    const entries = this.#entries;
    let index = entries.length;
    while (index > 0 && (entries[index - 1]?.[0] ?? 0) > expiresAt) index--;
    const same = entries[index - 1];
    if (same?.[0] === expiresAt) same[1] += calls;
    else entries.splice(index, 0, [expiresAt, calls]);
    this.#total += calls;
    this.version++;
    const [first, second] = entries;
    if (entries.length <= MAX_ENTRIES || first === undefined || second === undefined) return;
    second[1] += first[1];
    entries.shift();
  }

  /** Calls stop to count at other instants, in the same order. */
  moveEnds(move: (expiresAt: number) => number): void {
    const entries = this.#entries;
    this.#entries = [];
    this.#total = 0;
    for (const [expiresAt, calls] of entries) this.add(move(expiresAt), calls);
  }

  countAt(at: number): number {
    let expired = 0;
    for (const [expiresAt, calls] of this.#entries) {
      if (expiresAt > at) break;
      this.#total -= calls;
      expired++;
    }
    if (expired > 0) {
      this.#entries.splice(0, expired);
      this.version++;
    }
    return this.#total;
  }

  /** What still counts at `at`, in the order in which it ends; valid until the next call of a method. */
  entriesAt(at: number): readonly CountEntry[] {
    this.countAt(at);
    return this.#entries;
  }
}
