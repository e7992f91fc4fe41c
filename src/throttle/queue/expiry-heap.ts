/** Tickets by the end of their waits, so that one timer serves any number of them. It sets no timer itself. */
import { Heap, type HeapOrder } from './heap.ts';

/** What an entry carries for the heap. */
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

/** Entries by `expiresAt`, earliest first. */
export class ExpiryHeap<T extends ExpiryEntry> extends Heap<T> {
  constructor() {
    super(BY_EXPIRY);
  }
}
