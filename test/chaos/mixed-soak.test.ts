/** The long run, a short form of `npm run soak:mixed`. */
import { expect, it } from 'vitest';
import { findGrowth, runMixedSoak } from './mixed-soak.ts';

it('5000 requests, one in a hundred of which the upstream fails: all end, and nothing piles up', async () => {
  const { looks, outcomes, faults, altered } = await runMixedSoak(5000, () => undefined);
  expect(findGrowth(looks)).toEqual([]);
  expect(altered).toEqual([]);
  expect(Object.values(outcomes).reduce((sum, count) => sum + count, 0)).toBe(5000);
  expect(faults).toBeGreaterThan(20);
  // A fault shows at most once: as a 502, 503, 504 or a cut.
  expect(outcomes['200']).toBeGreaterThanOrEqual(5000 - faults);
});

it('growth is found where there is some', () => {
  const look = (requests: number, rssMiB: number, descriptors: number) => ({
    requests,
    rssMiB,
    descriptors,
    seconds: 1,
  });
  expect(findGrowth([look(1, 100, 90), look(5, 120, 90), look(10, 130, 95)])).toEqual([]);
  expect(findGrowth([look(1, 100, 90), look(5, 120, 90), look(10, 200, 200)])).toHaveLength(2);
  expect(findGrowth([look(1, 100, 90)])).toHaveLength(1);
});
