/** A partner that refuses a share of the calls at any rate: no limit is inferred from it for long. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LimiterRule } from '../../bench/governor/limiters.ts';
import { play, type Play } from './auto-world.ts';

const MINUTE = 60_000;
/** Where its own rate is never reached. */
const NO_LIMIT: LimiterRule = { kind: 'token-bucket', perSecond: 10_000, burst: 10_000 };
const WINDOW: LimiterRule = { kind: 'sliding-log', calls: 100, windowMs: 10_000 };

/** Accepted and refused calls of each five minutes after the first five. */
async function playFiveMinutes(played: Play) {
  const { record } = await play(played);
  const from = [...Array(Math.floor(record.conditions.durationMs / (5 * MINUTE))).keys()].slice(1);
  const count = (instants: readonly number[], at: number): number =>
    instants.filter((instant) => instant >= at && instant < at + 5 * MINUTE).length;
  return from.map((index) => ({
    arrived: count(record.arrivals, index * 5 * MINUTE),
    accepted: count(record.acceptedAt, index * 5 * MINUTE),
    refused: count(record.refusedAt, index * 5 * MINUTE),
  }));
}

describe('refusals at any rate', () => {
  it('cost no more than a plain client loses, at drawn shares and loads', async () => {
    const share = fc.double({ min: 0.02, max: 0.3, noNaN: true });
    const perSecond = fc.integer({ min: 3, max: 20 });
    const seed = fc.integer({ min: 1, max: 1000 });
    await fc.assert(
      fc.asyncProperty(share, perSecond, seed, async (spuriousShare, load, drawn) => {
        const conditions = { limiter: NO_LIMIT, load: { perSecond: load }, spuriousShare, durationMs: 20 * MINUTE };
        const parts = await playFiveMinutes({ ...conditions, seed: drawn });
        for (const { arrived, accepted } of parts) expect(accepted / arrived).toBeGreaterThan(0.9);
      }),
      { numRuns: 8, seed: 7, endOnFailure: true },
    );
  });

  it.each([0.05, 0.1, 0.25])('leave a limit that is reached as well in use: %d', async (spuriousShare) => {
    for (const seed of [1, 2]) {
      const parts = await playFiveMinutes({ limiter: WINDOW, load: 1.5, spuriousShare, seed, durationMs: 30 * MINUTE });
      const accepted = parts.reduce((sum, part) => sum + part.accepted, 0);
      const refused = parts.reduce((sum, part) => sum + part.refused, 0);
      expect(accepted / (parts.length * 3000)).toBeGreaterThan(0.85);
      expect(refused / (accepted + refused)).toBeLessThan(spuriousShare + 0.1);
    }
  });

  it('are found within three minutes where half of all calls are refused from the first second', async () => {
    for (const seed of [1, 2, 3, 4, 5, 6]) {
      const conditions = { limiter: NO_LIMIT, load: { perSecond: 20 }, spuriousShare: 0.5, durationMs: 5 * MINUTE };
      const { record } = await play({ ...conditions, seed });
      const accepted = record.acceptedAt.filter((at) => at >= 3 * MINUTE).length;
      expect(accepted / (20 * 120)).toBeGreaterThan(0.8);
    }
  });

  it('are not taken for chance where a limit is the cause: a lowered limit is hardly exceeded', async () => {
    const lowered: LimiterRule = {
      kind: 'steps',
      steps: [
        { fromMs: 0, limiter: WINDOW },
        { fromMs: 10 * MINUTE, limiter: { kind: 'sliding-log', calls: 30, windowMs: 10_000 } },
      ],
    };
    for (const seed of [1, 2, 3]) {
      const parts = await playFiveMinutes({ limiter: lowered, load: { perSecond: 15 }, seed, durationMs: 40 * MINUTE });
      for (const { accepted, refused } of parts.slice(2)) {
        expect(refused / (accepted + refused)).toBeLessThan(0.03);
        expect(accepted / 900).toBeGreaterThan(0.9);
      }
    }
  });
});
