import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RankCounts } from '../../../src/throttle/queue/rank-counts.ts';

it('counts the same as a walk along all queues, however they grow and shrink', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(5), fc.boolean()), { maxLength: 300 }), (steps) => {
      const ranks = new RankCounts();
      const lengths = [0, 0, 0, 0, 0, 0];
      for (const [line, grows] of steps) {
        const length = lengths[line]!;
        if (grows) ranks.add(length + 1);
        else if (length > 0) ranks.remove(length);
        lengths[line] = grows ? length + 1 : Math.max(0, length - 1);
        for (const rank of [0, 1, 2, 3, 7, 64, 1000]) {
          const expected = lengths.reduce((sum, each) => sum + Math.min(each, rank), 0);
          expect(ranks.countUpTo(rank)).toBe(expected);
        }
      }
    }),
  );
});
