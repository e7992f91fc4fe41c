/** A binary heap that knows the positions of its entries, so that any of them can be removed, or moved after its key changed. */

/** O(log n) to add, move and remove. Entries with equal keys come in no particular order. */
export class Heap<T> {
  readonly #precedes: (one: T, other: T) => boolean;
  readonly #entries: T[] = [];
  readonly #positions = new Map<T, number>();

  constructor(precedes: (one: T, other: T) => boolean) {
    this.#precedes = precedes;
  }

  get first(): T | undefined {
    return this.#entries[0];
  }

  /** Does nothing when the entry is not in the heap. */
  remove(entry: T): void {
    const position = this.#positions.get(entry);
    if (position === undefined) return;
    this.#positions.delete(entry);
    const last = this.#entries.pop();
    if (last !== undefined && last !== entry) this.#reposition(last, position);
  }

  /** Adds the entry, moves it after its key changed, or removes it: it is inside afterwards if it `belongs`. */
  update(entry: T, belongs: boolean): void {
    if (belongs) this.#reposition(entry, this.#positions.get(entry) ?? this.#entries.length);
    else this.remove(entry);
  }

  /** Puts `entry` into the free position, or above or below it. */
  #reposition(entry: T, position: number): void {
    const risen = this.#siftUp(entry, position);
    this.#place(entry, risen === position ? this.#siftDown(entry, position) : risen);
  }

  #siftUp(entry: T, from: number): number {
    let position = from;
    while (position > 0) {
      const parentPosition = (position - 1) >> 1;
      const parent = this.#entries[parentPosition];
      if (parent === undefined || !this.#precedes(entry, parent)) break;
      this.#place(parent, position);
      position = parentPosition;
    }
    return position;
  }

  #siftDown(entry: T, from: number): number {
    for (let position = from; ;) {
      const left = this.#entries[2 * position + 1];
      const right = this.#entries[2 * position + 2];
      const isRight = right !== undefined && left !== undefined && this.#precedes(right, left);
      const child = isRight ? right : left;
      if (child === undefined || !this.#precedes(child, entry)) return position;
      this.#place(child, position);
      position = 2 * position + (isRight ? 2 : 1);
    }
  }

  #place(entry: T, position: number): void {
    this.#entries[position] = entry;
    this.#positions.set(entry, position);
  }
}
