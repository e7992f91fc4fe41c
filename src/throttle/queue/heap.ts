/**
 * What stands first: a binary heap whose entries know their own slots, so that each can be taken out, or moved when its key
 * has changed. Which key that is, the heap's order says.
 */

/** How entries stand to each other, and where each keeps its slot in this heap: -1 outside. The heap alone writes the slot. */
export interface HeapOrder<T> {
  precedes(one: T, other: T): boolean;
  getIndex(entry: T): number;
  setIndex(entry: T, slot: number): void;
}

/** Entries in an order. O(log n) to add, move and remove, O(1) to look. Entries of equal keys come in no set order. */
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
    const slot = this.#order.getIndex(entry);
    if (slot < 0) return;
    this.#order.setIndex(entry, -1);
    const last = this.#entries.pop();
    if (last !== undefined && last !== entry) this.#reposition(last, slot);
  }

  /** Adds the entry, moves it to where its changed key belongs, or removes it, so that it is inside if it `belongs`. */
  update(entry: T, belongs: boolean): void {
    const slot = this.#order.getIndex(entry);
    if (!belongs) this.remove(entry);
    else if (slot < 0) this.add(entry);
    else this.#reposition(entry, slot);
  }

  /** Puts `entry` into the free place `slot`, or wherever above or below it belongs. */
  #reposition(entry: T, slot: number): void {
    const risen = this.#siftUp(entry, slot);
    this.#place(entry, risen === slot ? this.#siftDown(entry, slot) : risen);
  }

  #siftUp(entry: T, from: number): number {
    let slot = from;
    while (slot > 0) {
      const parentSlot = (slot - 1) >> 1;
      const parent = this.#entries[parentSlot];
      if (parent === undefined || !this.#order.precedes(entry, parent)) break;
      this.#place(parent, slot);
      slot = parentSlot;
    }
    return slot;
  }

  #siftDown(entry: T, from: number): number {
    for (let slot = from; ;) {
      const left = this.#entries[2 * slot + 1];
      const right = this.#entries[2 * slot + 2];
      const child = right !== undefined && left !== undefined && this.#order.precedes(right, left) ? right : left;
      if (child === undefined || !this.#order.precedes(child, entry)) return slot;
      const childSlot = this.#order.getIndex(child);
      this.#place(child, slot);
      slot = childSlot;
    }
  }

  #place(entry: T, slot: number): void {
    this.#entries[slot] = entry;
    this.#order.setIndex(entry, slot);
  }
}
