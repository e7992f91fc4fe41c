import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Heap } from '../../../src/throttle/queue/heap.ts';

interface Entry {
  key: number;
}

it('has the least key first while keys change and entries come and go', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(9), fc.nat(20), fc.boolean()), { maxLength: 200 }), (steps) => {
      const heap = new Heap<Entry>((one, other) => one.key < other.key);
      const entries = Array.from({ length: 10 }, (): Entry => ({ key: 0 }));
      const inside = new Set<Entry>();
      for (const [index, key, belongs] of steps) {
        const entry = entries[index]!;
        entry.key = key;
        heap.update(entry, belongs);
        if (belongs) inside.add(entry);
        else inside.delete(entry);
        expect(heap.first?.key).toBe(inside.size === 0 ? undefined : Math.min(...[...inside].map((each) => each.key)));
      }
    }),
  );
});
