/** Retry-After in whole seconds: obeyed to its end, and no reason to learn a worse limit than without it. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { LimiterRule } from '../../bench/governor/limiters.ts';
import { seedsOf } from '../../support/rounds.ts';
import { simulate } from '../simulation.ts';
import { play } from './auto-world.ts';

const MAX_FLIGHT_MS = 5;
const SEEDS = seedsOf({ check: 1, soak: 3 });

it('no call is sent before the stated time', async () => {
  const property = fc.asyncProperty(
    fc.integer({ min: 1, max: 30 }),
    fc.integer({ min: 200, max: 5000 }),
    fc.integer({ min: 0, max: 2 }),
    fc.nat(1000),
    async (calls, windowMs, extraSeconds, seed) => {
      const arrivals: number[] = [];
      const refusals: { readonly at: number; readonly until: number }[] = [];
      let used = 0;
      let window = -1;
      await simulate({
        calls: 120,
        seed,
        limiter: (at) => {
          arrivals.push(at);
          const current = Math.floor(at / windowMs);
          if (current !== window) used = 0;
          window = current;
          if (++used <= calls) return { accepted: true };
          const seconds = Math.ceil(((window + 1) * windowMs - at) / 1000) + extraSeconds;
          refusals.push({ at, until: at + seconds * 1000 });
          return { accepted: false, fields: { 'retry-after': `${seconds}` } };
        },
      });
      for (const { at, until } of refusals)
        expect(arrivals.filter((arrival) => arrival > at + 2 * MAX_FLIGHT_MS && arrival < until)).toEqual([]);
    },
  );
  await fc.assert(property, { numRuns: 40, seed: 1 });
});

const LIMITERS: readonly LimiterRule[] = [
  { kind: 'fixed-window', calls: 100, windowMs: 10_000 },
  { kind: 'fixed-window', calls: 60, windowMs: 4_000 },
  { kind: 'token-bucket', perSecond: 10, burst: 20 },
  { kind: 'token-bucket', perSecond: 50, burst: 100 },
];

it.each(LIMITERS)('the learned limit is used as fully as without a stated wait: %j', async (limiter) => {
  const goodputs = { none: 0, 'retry-after-seconds': 0 };
  // A fast limit is learned as well from a third of the time.
  const durationMs = 'perSecond' in limiter && limiter.perSecond > 20 ? 400_000 : 1_200_000;
  for (const hint of ['none', 'retry-after-seconds'] as const) {
    for (const seed of SEEDS)
      goodputs[hint] += (await play({ limiter, hint, seed, durationMs })).goodput / SEEDS.length;
  }
  expect(goodputs['retry-after-seconds']).toBeGreaterThan(goodputs.none - 0.025);
});

it('a fast limit is not taken for one on calls in flight, which would free a slot within a round trip', async () => {
  const limiter: LimiterRule = { kind: 'token-bucket', perSecond: 200, burst: 1 };
  for (const seed of SEEDS) {
    const [throttle] = (await play({ limiter, hint: 'retry-after-seconds', seed, durationMs: 120_000 })).throttles;
    expect(throttle?.state().learned?.kind).not.toBe('concurrency');
  }
});
