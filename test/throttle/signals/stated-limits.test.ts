/** Stated limits in every form: obeyed from the first response on, and fully used. */
import { describe, expect, it } from 'vitest';
import type { HintStyle } from '../../bench/governor/hints.ts';
import type { LimiterRule } from '../../bench/governor/limiters.ts';
import { play } from '../adaptive/auto-world.ts';

const FIXED: LimiterRule = { kind: 'fixed-window', calls: 100, windowMs: 10_000 };
const SLIDING: LimiterRule = { kind: 'sliding-log', calls: 600, windowMs: 60_000 };
const BUCKET: LimiterRule = { kind: 'token-bucket', perSecond: 10, burst: 20 };

const STYLES: readonly HintStyle[] = [
  'ratelimit',
  'ratelimit-combined',
  'ratelimit-separate',
  'x-ratelimit-delta',
  'x-ratelimit-epoch-s',
  'x-ratelimit-epoch-ms',
];

describe.each(STYLES)('%s', (hint) => {
  it.each([FIXED, SLIDING, BUCKET])(
    'load 1.5: uses the limit almost fully, with at most one refusal: %j',
    async (limiter) => {
      const { goodput, refusals } = await play({ limiter, hint });
      expect(goodput).toBeGreaterThan(0.97);
      expect(refusals).toBeLessThanOrEqual(1);
    },
  );
});

it.each([FIXED, SLIDING, BUCKET])('load 0.8: no call waits or is refused: %j', async (limiter) => {
  const { refusals, waitP50Ms, goodput } = await play({ limiter, hint: 'ratelimit', load: 0.8 });
  expect([refusals, waitP50Ms]).toEqual([0, 0]);
  expect(goodput).toBeGreaterThan(0.99);
});

it('rejects callers at once with Retry-After when the quota of a day is used up', async () => {
  const limiter: LimiterRule = { kind: 'fixed-window', calls: 500, windowMs: 86_400_000 };
  const load = { perSecond: 5 };
  const { record, rejected, refusals } = await play({ limiter, hint: 'ratelimit', load, durationMs: 3_600_000 });
  expect(record.acceptedAt).toHaveLength(500);
  expect(refusals).toBeLessThanOrEqual(12);
  expect(rejected.length).toBeGreaterThan(10_000);
  expect(Math.min(...rejected)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...rejected)).toBeLessThanOrEqual(300_000);
});

describe('four replicas without a fleet', () => {
  it('learn how much of the remaining quota they can use', async () => {
    const { goodput, refusedShare } = await play({
      limiter: FIXED,
      hint: 'ratelimit',
      replicas: 4,
      durationMs: 600_000,
    });
    expect(goodput).toBeGreaterThan(0.95);
    expect(refusedShare).toBeLessThan(0.02);
  });

  it('are refused less with throttle.share', async () => {
    const { goodput, refusedShare } = await play({ limiter: FIXED, hint: 'ratelimit', replicas: 4, share: 4 });
    expect(goodput).toBeGreaterThan(0.9);
    expect(refusedShare).toBeLessThan(0.01);
  });
});
