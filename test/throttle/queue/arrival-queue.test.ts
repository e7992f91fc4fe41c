import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ArrivalQueue } from '../../../src/throttle/queue/arrival-queue.ts';

interface Entry {
  readonly arrivalNumber: number;
}

it('keeps the order of arrival under any mix of insertions and removals', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(60), fc.boolean()), { maxLength: 200 }), (steps) => {
      const queue = new ArrivalQueue<Entry>();
      const inside = new Map<number, Entry>();
      for (const [age, insert] of steps) {
        const present = inside.get(age);
        if (insert && present === undefined) {
          const entry: Entry = { arrivalNumber: age };
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
  const [queue, other] = [new ArrivalQueue<Entry>(), new ArrivalQueue<Entry>()];
  const entry: Entry = { arrivalNumber: 1 };
  other.insert(entry);
  expect(queue.remove(entry)).toBe(false);
  expect(other.size).toBe(1);
});
