/** A restart within the window of a learned limit: the calls that were made count on, each for about as long as it would have. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Governor } from '../../../src/throttle/pacing/governor.ts';
import type { LimiterRule } from '../../bench/governor/limiters.ts';
import { play, type Play } from './auto-world.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const LIMIT = { kind: 'window', windowMs: HOUR_MS, limit: 1000, rate: 1000 / 3600, margin: 1, used: 0 };

describe('a known limit of 1000 calls per hour', () => {
  const limiters: LimiterRule[] = [
    { kind: 'fixed-window', calls: 1000, windowMs: HOUR_MS, phaseMs: 0 },
    { kind: 'sliding-log', calls: 1000, windowMs: HOUR_MS },
  ];
  const hours = (limiter: LimiterRule): Play => ({
    ...{ limiter, durationMs: 4 * HOUR_MS, load: 1.44, startsMs: 0 },
    restored: { version: 1, wallAt: 0, governor: LIMIT },
  });

  it.each(limiters)('is used up after a restart, wherever that falls: %j', async (limiter) => {
    for (const minutes of [50, 70, 95, 125, 170]) {
      const { goodput, refusedShare } = await play({ ...hours(limiter), restartsMs: [minutes * MINUTE_MS] });
      expect([minutes, goodput]).toEqual([minutes, expect.closeTo(1, 1.5)]);
      expect(refusedShare).toBeLessThan(0.015);
    }
  });

  it.each(limiters)(
    'is used up and not exceeded by a process that restarts every five minutes: %j',
    async (limiter) => {
      const restartsMs = Array.from({ length: 44 }, (_, at) => (at + 1) * 5 * MINUTE_MS);
      const { goodput, refusedShare, throttles } = await play({ ...hours(limiter), restartsMs });
      expect(goodput).toBeGreaterThan(0.97);
      expect(refusedShare).toBeLessThan(0.02);
      expect(throttles.at(-1)?.state().learned).toMatchObject({ kind: 'window' });
    },
  );
});

function createGovernor(): Governor {
  const terms = { rate: 'auto', burst: 1, maxInFlight: 64, maxStreams: 100, maxPauseMs: 300_000 } as const;
  return new Governor({ ...terms, random: () => 0.5 });
}

interface Snapshot {
  readonly windowMs: number;
  readonly used: number;
  readonly usedInTenths: readonly number[];
}

const snapshotOf = (governor: Governor, now: number): Snapshot =>
  JSON.parse(JSON.stringify(governor.ratePolicy.learner?.snapshot(now))) as Snapshot;

/** Another process at the same instant; its clock begins anew. */
function restart(governor: Governor, now: number): Governor {
  const next = createGovernor();
  next.restore(now, snapshotOf(governor, now), 0);
  return next;
}

/** Calls per second of an hour, as bursts with pauses between them. */
const BURSTS = fc.array(fc.tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 0, max: 6 * MINUTE_MS })), {
  minLength: 5,
  maxLength: 25,
});

describe('the calls of a window', () => {
  it('are restored with their number in each tenth of it, again and again at one instant', () => {
    fc.assert(
      fc.property(BURSTS, (bursts) => {
        let governor = createGovernor();
        governor.restore(0, LIMIT, 0);
        let now = 0;
        for (const [calls, pauseMs] of bursts) {
          for (let call = 0; call < calls; call++) governor.take((now += 10), false);
          now += pauseMs;
        }
        governor = restart(governor, now);
        const first = snapshotOf(governor, now);
        for (let count = 0; count < 20; count++) governor = restart(governor, now);
        expect(snapshotOf(governor, now)).toEqual(first);
      }),
      { numRuns: 50 },
    );
  });

  it('are each moved by a tenth of it at most by each restart', () => {
    fc.assert(
      fc.property(BURSTS, (bursts) => {
        let governor = createGovernor();
        governor.restore(0, LIMIT, 0);
        const calls: number[] = [];
        let now = 0;
        for (const [restarts, [count, pauseMs]] of bursts.slice(0, 8).entries()) {
          for (let call = 0; call < count; call++) {
            calls.push((now += 10));
            governor.take(now, false);
          }
          now += 2 * pauseMs;
          governor = restart(governor, now);
          const { used, windowMs } = snapshotOf(governor, now);
          const moved = 0.1 * (restarts + 1);
          expect(used).toBeGreaterThanOrEqual(calls.filter((at) => at >= now - (1 - moved) * windowMs).length);
          expect(used).toBeLessThanOrEqual(calls.filter((at) => at >= now - (1 + moved) * windowMs).length);
        }
      }),
      { numRuns: 50 },
    );
  });
});
