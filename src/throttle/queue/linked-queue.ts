/** Entries in order of arrival with O(1) removal from anywhere: an intrusive doubly linked list. */

/** What an entry carries for its queue. Only the queue writes the links. */
export interface QueueLinks<T> {
  /** Rises with every arrival and is unique. */
  readonly arrivalNumber: number;
  older: T | undefined;
  younger: T | undefined;
  queue: object | undefined;
}

/** Oldest first. An entry is in at most one queue at a time. The fields are written here only. */
export class LinkedQueue<T extends QueueLinks<T>> {
  oldest: T | undefined;
  youngest: T | undefined;
  size = 0;

  /** O(1) at either end, otherwise a walk from the nearer end. */
  insert(entry: T): void {
    const older = this.#olderNeighbour(entry);
    const younger = older === undefined ? this.oldest : older.younger;
    entry.older = older;
    entry.younger = younger;
    entry.queue = this;
    if (older === undefined) this.oldest = entry;
    else older.younger = entry;
    if (younger === undefined) this.youngest = entry;
    else younger.older = entry;
    this.size++;
  }

  /** @returns false when the entry was not in this queue */
  remove(entry: T): boolean {
    if (entry.queue !== this) return false;
    if (entry.older === undefined) this.oldest = entry.younger;
    else entry.older.younger = entry.younger;
    if (entry.younger === undefined) this.youngest = entry.older;
    else entry.younger.older = entry.older;
    entry.older = entry.younger = undefined;
    entry.queue = undefined;
    this.size--;
    return true;
  }

  /** O(result). */
  countOlder(arrivalNumber: number): number {
    let count = 0;
    for (let entry = this.oldest; entry !== undefined && entry.arrivalNumber < arrivalNumber; entry = entry.younger)
      count++;
    return count;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let entry = this.oldest; entry !== undefined; entry = entry.younger) yield entry;
  }

  #olderNeighbour(entry: T): T | undefined {
    if (this.oldest === undefined || this.youngest === undefined) return undefined;
    // A retry is older than nearly all entries and a new arrival younger: neither may cost a walk along the whole queue.
    const fromOldest =
      entry.arrivalNumber - this.oldest.arrivalNumber < this.youngest.arrivalNumber - entry.arrivalNumber;
    return fromOldest ? lastOlder(this.oldest, entry.arrivalNumber) : firstOlder(this.youngest, entry.arrivalNumber);
  }
}

function lastOlder<T extends QueueLinks<T>>(oldest: T, arrivalNumber: number): T | undefined {
  let found: T | undefined;
  for (
    let entry: T | undefined = oldest;
    entry !== undefined && entry.arrivalNumber < arrivalNumber;
    entry = entry.younger
  )
    found = entry;
  return found;
}

function firstOlder<T extends QueueLinks<T>>(youngest: T, arrivalNumber: number): T | undefined {
  let entry: T | undefined = youngest;
  while (entry !== undefined && entry.arrivalNumber > arrivalNumber) entry = entry.older;
  return entry;
}
