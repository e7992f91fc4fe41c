/**
 * Who expires next: a binary heap over instants with removal by position, so that one timer serves any number of waiters.
 * It sets no timer and rejects nothing itself.
 */

/** What an entry carries for the heap. The heap writes `expirySlot`; nobody else does. */
export interface Expiring {
  /** Monotonic instant; fixed while the entry is in the heap. */
  readonly expiresAt: number;
  /** Position in the heap; -1 outside. */
  expirySlot: number;
}

/** Entries by `expiresAt`, earliest first. O(log n) to add and remove, O(1) to look. */
export class ExpiryHeap<T extends Expiring> {
  readonly #entries: T[] = [];

  get earliest(): T | undefined {
    return this.#entries[0];
  }

  add(entry: T): void {
    this.#settle(entry, this.#entries.length);
  }

  /** Does nothing when the entry is not in the heap. */
  remove(entry: T): void {
    const slot = entry.expirySlot;
    if (slot < 0) return;
    entry.expirySlot = -1;
    const last = this.#entries.pop();
    if (last !== undefined && last !== entry) this.#settle(last, slot);
  }

  /** Puts `entry` into the free place `slot`, or wherever above or below it belongs. */
  #settle(entry: T, slot: number): void {
    const risen = this.#rise(entry, slot);
    this.#place(entry, risen === slot ? this.#sink(entry, slot) : risen);
  }

  #rise(entry: T, from: number): number {
    let slot = from;
    while (slot > 0) {
      const parentSlot = (slot - 1) >> 1;
      const parent = this.#entries[parentSlot];
      if (parent === undefined || parent.expiresAt <= entry.expiresAt) break;
      this.#place(parent, slot);
      slot = parentSlot;
    }
    return slot;
  }

  #sink(entry: T, from: number): number {
    for (let slot = from; ;) {
      const left = this.#entries[2 * slot + 1];
      const right = this.#entries[2 * slot + 2];
      const child = right !== undefined && left !== undefined && right.expiresAt < left.expiresAt ? right : left;
      if (child === undefined || child.expiresAt >= entry.expiresAt) return slot;
      const childSlot = child.expirySlot;
      this.#place(child, slot);
      slot = childSlot;
    }
  }

  #place(entry: T, slot: number): void {
    this.#entries[slot] = entry;
    entry.expirySlot = slot;
  }
}
