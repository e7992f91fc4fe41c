/** POSTs with idempotency keys over connections that break, a short form of `npm run soak:keys`. */
import { describe, expect, it } from 'vitest';
import { runIdempotencyKeys } from './idempotency-keys.ts';

const POSTS = 600;

describe.each(['api', 'haproxy'] as const)(
  'POSTs to an API that honours keys, where connections are broken by the %s',
  (breaker) => {
    it.each([1, 2])('are carried out once, and fewer fail than without keys: seed %i', async (seed) => {
      const run = { seed, posts: POSTS, breaker, faultShare: 0.08 };
      const without = await runIdempotencyKeys({ ...run, isOn: false });
      const withKeys = await runIdempotencyKeys({ ...run, isOn: true });
      expect(without).toMatchObject({ executedTwice: 0, falselyDone: 0 });
      expect(withKeys).toMatchObject({ executedTwice: 0, falselyDone: 0, counts: { keyless: 0, mismatched: 0 } });
      // There were faults, and repeats of calls that had been carried out or were under way.
      expect(without.failed).toBeGreaterThan(POSTS / 50);
      expect(withKeys.counts.replayed).toBeGreaterThan(0);
      expect(withKeys.failed).toBeLessThan(without.failed / 2);
    });
  },
);

it('an API that reads no keys carries calls out twice: the count finds them', async () => {
  const run = { seed: 1, posts: POSTS, isOn: true, breaker: 'api', faultShare: 0.08 } as const;
  const { executedTwice } = await runIdempotencyKeys({ ...run, isHonoured: false });
  expect(executedTwice).toBeGreaterThan(0);
});
