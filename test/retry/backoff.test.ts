/** The bounds of the full-jitter backoff. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { fullJitterMs } from '../../src/retry/policy.ts';

it('doubles its longest wait from 100 ms up to 10 s', () => {
  const almostOne = 1 - Number.EPSILON;
  const longest = [1, 2, 3, 4, 7, 8, 9, 100].map((retry) => Math.round(fullJitterMs(retry, almostOne)));
  expect(longest).toEqual([100, 200, 400, 800, 6400, 10_000, 10_000, 10_000]);
});

it('spreads over everything from nothing to the step', () => {
  expect(fullJitterMs(5, 0)).toBe(0);
  expect(fullJitterMs(3, 0.5)).toBe(200);
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (retry, chance) => {
        const waitMs = fullJitterMs(retry, chance);
        expect(waitMs).toBeGreaterThanOrEqual(0);
        expect(waitMs).toBeLessThan(10_000);
      },
    ),
  );
});
