/** Limits that answers speak of, in every form that is read: kept to from the first answer on, and used up. */
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
    'at 1.5 times the limit loses next to nothing, and is not refused: %j',
    async (limiter) => {
      const { goodput, refusals } = await play({ limiter, hint });
      expect(goodput).toBeGreaterThan(0.97);
      expect(refusals).toBeLessThanOrEqual(1);
    },
  );
});

it.each([FIXED, SLIDING, BUCKET])('under the limit nobody waits: %j', async (limiter) => {
  const { refusals, waitP50Ms, goodput } = await play({ limiter, hint: 'ratelimit', load: 0.8 });
  expect([refusals, waitP50Ms]).toEqual([0, 0]);
  expect(goodput).toBeGreaterThan(0.99);
});

it('a day’s quota that is used up turns callers away at once, with a time to come again', async () => {
  const limiter: LimiterRule = { kind: 'fixed-window', calls: 500, windowMs: 86_400_000 };
  const load = { perSecond: 5 };
  const { record, turnedAway, refusals } = await play({ limiter, hint: 'ratelimit', load, durationMs: 3_600_000 });
  expect(record.acceptedAt).toHaveLength(500);
  expect(refusals).toBeLessThanOrEqual(12);
  expect(turnedAway.length).toBeGreaterThan(10_000);
  expect(Math.min(...turnedAway)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...turnedAway)).toBeLessThanOrEqual(300_000);
});

describe('four replicas that do not know of one another', () => {
  it('find out how much of what is left is theirs', async () => {
    const { goodput, refusedShare } = await play({
      limiter: FIXED,
      hint: 'ratelimit',
      replicas: 4,
      durationMs: 600_000,
    });
    expect(goodput).toBeGreaterThan(0.95);
    expect(refusedShare).toBeLessThan(0.02);
  });

  it('are refused even less when each is told its share', async () => {
    const { goodput, refusedShare } = await play({ limiter: FIXED, hint: 'ratelimit', replicas: 4, share: 4 });
    expect(goodput).toBeGreaterThan(0.9);
    expect(refusedShare).toBeLessThan(0.01);
  });
});
