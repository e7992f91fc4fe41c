import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ExpiryHeap } from '../../../src/throttle/queue/heap.ts';
import { LinkedQueue, type QueueLinks } from '../../../src/throttle/queue/linked-queue.ts';

class Entry implements QueueLinks<Entry> {
  older: Entry | undefined;
  younger: Entry | undefined;
  queue: object | undefined;
  expiryHeapIndex = -1;
  readonly arrivalNumber: number;
  readonly expiresAt: number;

  constructor(age: number, expiresAt = 0) {
    this.arrivalNumber = age;
    this.expiresAt = expiresAt;
  }
}

it('keeps the order of arrival under any mix of insertions and removals', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(60), fc.boolean()), { maxLength: 200 }), (steps) => {
      const queue = new LinkedQueue<Entry>();
      const inside = new Map<number, Entry>();
      for (const [age, insert] of steps) {
        const present = inside.get(age);
        if (insert && present === undefined) {
          const entry = new Entry(age);
          inside.set(age, entry);
          queue.insert(entry);
        } else if (!insert && present !== undefined) {
          expect(queue.remove(present)).toBe(true);
          expect(queue.remove(present)).toBe(false);
          inside.delete(age);
        }
        const expected = [...inside.keys()].sort((a, b) => a - b);
        expect([...queue].map((entry) => entry.arrivalNumber)).toEqual(expected);
        expect(queue.size).toBe(expected.length);
        expect(queue.oldest?.arrivalNumber).toBe(expected[0]);
        expect(queue.countOlder(30)).toBe(expected.filter((other) => other < 30).length);
      }
    }),
  );
});

it('does not remove an entry of another queue', () => {
  const [queue, other] = [new LinkedQueue<Entry>(), new LinkedQueue<Entry>()];
  const entry = new Entry(1);
  other.insert(entry);
  expect(queue.remove(entry)).toBe(false);
  expect(other.size).toBe(1);
});

it('names the earliest expiry under any mix of additions and removals', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(30), fc.boolean()), { maxLength: 200 }), (steps) => {
      const heap = new ExpiryHeap<Entry>();
      const inside: Entry[] = [];
      for (const [number, add] of steps) {
        if (add) {
          const entry = new Entry(0, number);
          inside.push(entry);
          heap.add(entry);
        } else {
          const [entry] = inside.splice(number % Math.max(1, inside.length), 1);
          if (entry !== undefined) heap.remove(entry);
        }
        const expected = inside.length === 0 ? undefined : Math.min(...inside.map((entry) => entry.expiresAt));
        expect(heap.first?.expiresAt).toBe(expected);
      }
    }),
  );
});
