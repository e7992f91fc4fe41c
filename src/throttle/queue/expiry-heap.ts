/**
 * Who expires next: a heap over instants, so that one timer serves any number of waiters. It sets no timer and rejects nothing
 * itself.
 */
import { Heap, type HeapOrder } from './heap.ts';

/** What an entry carries for the heap. The heap writes `expirySlot`; nobody else does. */
export interface ExpiryEntry {
  /** Monotonic instant; fixed while the entry is in the heap. */
  readonly expiresAt: number;
  /** Position in the heap; -1 outside. */
  expiryHeapIndex: number;
}

const BY_EXPIRY: HeapOrder<ExpiryEntry> = {
  precedes: (one, other) => one.expiresAt < other.expiresAt,
  getIndex: (entry) => entry.expiryHeapIndex,
  setIndex: (entry, slot) => {
    entry.expiryHeapIndex = slot;
  },
};

/** Entries by `expiresAt`, earliest first. */
export class ExpiryHeap<T extends ExpiryEntry> extends Heap<T> {
  constructor() {
    super(BY_EXPIRY);
  }
}
