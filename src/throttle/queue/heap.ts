/** A binary heap whose entries know their positions, so that any of them can be removed, or moved after its key changed. */

/** The order of the entries, and where each keeps its position in this heap: -1 outside. Only the heap sets it. */
export interface HeapOrder<T> {
  precedes(one: T, other: T): boolean;
  getIndex(entry: T): number;
  setIndex(entry: T, index: number): void;
}

/** O(log n) to add, move and remove. Entries with equal keys come in no particular order. */
export class Heap<T> {
  readonly #order: HeapOrder<T>;
  readonly #entries: T[] = [];

  constructor(order: HeapOrder<T>) {
    this.#order = order;
  }

  get first(): T | undefined {
    return this.#entries[0];
  }

  add(entry: T): void {
    this.#reposition(entry, this.#entries.length);
  }

  /** Does nothing when the entry is not in the heap. */
  remove(entry: T): void {
    const index = this.#order.getIndex(entry);
    if (index < 0) return;
    this.#order.setIndex(entry, -1);
    const last = this.#entries.pop();
    if (last !== undefined && last !== entry) this.#reposition(last, index);
  }

  /** Adds the entry, moves it after its key changed, or removes it: it is inside afterwards if it `belongs`. */
  update(entry: T, belongs: boolean): void {
    const index = this.#order.getIndex(entry);
    if (!belongs) this.remove(entry);
    else if (index < 0) this.add(entry);
    else this.#reposition(entry, index);
  }

  /** Puts `entry` into the free position, or above or below it. */
  #reposition(entry: T, index: number): void {
    const risen = this.#siftUp(entry, index);
    this.#place(entry, risen === index ? this.#siftDown(entry, index) : risen);
  }

  #siftUp(entry: T, from: number): number {
    let index = from;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = this.#entries[parentIndex];
      if (parent === undefined || !this.#order.precedes(entry, parent)) break;
      this.#place(parent, index);
      index = parentIndex;
    }
    return index;
  }

  #siftDown(entry: T, from: number): number {
    for (let index = from; ;) {
      const left = this.#entries[2 * index + 1];
      const right = this.#entries[2 * index + 2];
      const child = right !== undefined && left !== undefined && this.#order.precedes(right, left) ? right : left;
      if (child === undefined || !this.#order.precedes(child, entry)) return index;
      const childIndex = this.#order.getIndex(child);
      this.#place(child, index);
      index = childIndex;
    }
  }

  #place(entry: T, index: number): void {
    this.#entries[index] = entry;
    this.#order.setIndex(entry, index);
  }
}

export interface ExpiryEntry {
  /** Monotonic instant; fixed while the entry is in the heap. */
  readonly expiresAt: number;
  /** Position in the heap, which writes it; -1 outside. */
  expiryHeapIndex: number;
}

const BY_EXPIRY: HeapOrder<ExpiryEntry> = {
  precedes: (one, other) => one.expiresAt < other.expiresAt,
  getIndex: (entry) => entry.expiryHeapIndex,
  setIndex: (entry, index) => {
    entry.expiryHeapIndex = index;
  },
};

/** Entries by `expiresAt`, earliest first: one timer serves any number of waits. */
export class ExpiryHeap<T extends ExpiryEntry> extends Heap<T> {
  constructor() {
    super(BY_EXPIRY);
  }
}
