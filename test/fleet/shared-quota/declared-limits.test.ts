/** Declared limits of a fleet in virtual time, kept by the script in a real Redis, before an upstream that counts exactly. */
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ReceivedCall } from '../../../src/throttle/declared/call-match.ts';
import type { DeclaredLimit } from '../../../src/throttle/declared/declared-limit.ts';
import { periodMs } from '../../../src/throttle/declared/limit-window.ts';
import { startRedis } from '../../support/redis.ts';
import { roundsOf } from '../../support/rounds.ts';
import { exactLimiter } from '../../throttle/simulation.ts';
import { FleetSimulation, SimulatedRedis, SimulationClock } from './fleet-simulation.ts';

function limit(calls: number, per: string, terms: Partial<DeclaredLimit> = {}): DeclaredLimit {
  const name = `${String(calls)}-per-${per}`;
  const common = { window: 'sliding', timeZone: 'UTC', countsRefused: true, spread: 'none', reserve: 0 } as const;
  return { ...common, name, calls, per, ...terms };
}

interface Fleet {
  readonly clock: SimulationClock;
  readonly redis: SimulatedRedis;
  readonly fleet: FleetSimulation;
  /** Calls of the first limit that count, as one replica sees it. */
  readonly used: (replica: number) => number;
}

interface FleetTerms {
  readonly limits: readonly DeclaredLimit[];
  readonly perSecond: number;
  readonly replicas?: number;
  readonly seed?: number;
  readonly call?: ReceivedCall;
}

async function openFleets(): Promise<(terms: FleetTerms) => Promise<Fleet>> {
  const server = await startRedis();
  let keys = 0;
  return async ({ limits, perSecond, replicas = 4, seed = 1, call }) => {
    const clock = new SimulationClock();
    const redis = await SimulatedRedis.open(server.url, clock);
    onTestFinished(() => redis.close());
    const counting = limits.filter(({ match }) => match?.methods?.includes(call?.method ?? '') ?? true);
    const common = { limiter: exactLimiter(counting), load: { perSecond }, limits, call, callsAfterMs: 500 };
    const key = `limits-${String(keys++)}`;
    const fleet = new FleetSimulation({ redis, clock, replicas, seed, key, ...common });
    const used = (replica: number): number => fleet.throttles[replica]?.state().limits?.[0]?.used ?? NaN;
    return { clock, redis, fleet, used };
  };
}

async function openFleet(terms: FleetTerms): Promise<Fleet> {
  return (await openFleets())(terms);
}

test('four replicas at three times the load use the tighter of two limits, and exceed none', async () => {
  const { clock, fleet } = await openFleet({ limits: [limit(100, '10s'), limit(450, '1m')], perSecond: 22.5 });
  await clock.runUntil(360_500);
  fleet.stop();
  const { accepted, refused } = fleet.count(60_500, 360_500);
  expect(fleet.count(0, 360_500).refused).toBe(refused);
  expect(refused).toBe(0);
  expect(accepted / 5 / 450).toBeGreaterThan(0.97);
});

describe('a limit of operations', () => {
  const POST = { method: 'POST', target: '/tenants/7/policies' };

  test.each([
    ['of 10 s', limit(100, '10s', { match: { methods: ['POST'] } }), 0.97],
    ['of 1 s', limit(12, '1s', { match: { methods: ['POST'] } }), 0.6],
    ['of 10 s with a count for each tenant', limit(100, '10s', { match: { path: '/tenants/*' }, each: true }), 0.97],
  ])('%s holds for all replicas together', async (_, terms, usedPart) => {
    const { clock, fleet, used } = await openFleet({ limits: [terms], perSecond: 22.5, call: POST });
    await clock.runUntil(180_500);
    fleet.stop();
    const { accepted } = fleet.count(60_500, 180_500);
    expect(fleet.count(0, 180_500).refused).toBe(0);
    expect((accepted * periodMs(terms.per)) / 120_000 / terms.calls).toBeGreaterThan(usedPart);
    expect(used(0)).toBeGreaterThan(0);
  });

  test('holds back no call of others, and does not limit the rate of all', async () => {
    const limits = [limit(2, '1s', { match: { methods: ['POST'] } })];
    const { clock, fleet } = await openFleet({ limits, perSecond: 22.5, call: { ...POST, method: 'GET' } });
    await clock.runUntil(60_500);
    fleet.stop();
    expect(fleet.arrivals.length / 60).toBeGreaterThan(19);
  });
});

describe('a limit per day', () => {
  const DAY = limit(4000, '1d', { window: 'calendar' });

  test('holds while Redis is away for an hour, and what was called meanwhile is counted afterwards', async () => {
    const { clock, redis, fleet, used } = await openFleet({ limits: [DAY], perSecond: 0.5 });
    await clock.runUntil(1_800_000);
    redis.crash();
    await clock.runUntil(3_600_000);
    expect(fleet.count(1_800_000, 3_600_000).accepted).toBeGreaterThan(800);
    await clock.runUntil(5_400_000);
    await redis.restart(3_000, true);
    await clock.runUntil(5_430_000);
    const { accepted, refused } = fleet.count(0, 5_430_000);
    expect(refused).toBe(0);
    expect(used(0) - accepted).toBeGreaterThanOrEqual(-4);
    expect(used(0) - accepted).toBeLessThanOrEqual(4 * 80);
    // All of it is used, and nothing beyond.
    await clock.runUntil(12_000_000);
    fleet.stop();
    const end = fleet.count(0, 12_000_000);
    expect(end.refused).toBe(0);
    expect(end.accepted).toBeGreaterThan(3900);
  });

  test('holds where Redis has lost its data', async () => {
    const { clock, redis, fleet, used } = await openFleet({ limits: [DAY], perSecond: 2 });
    await clock.runUntil(1_200_000);
    redis.crash();
    await clock.runUntil(1_260_000);
    await redis.restart(3_000);
    await clock.runUntil(1_290_000);
    expect(used(0)).toBeGreaterThanOrEqual(fleet.count(0, 1_290_000).accepted - 4);
    await clock.runUntil(3_000_000);
    fleet.stop();
    const end = fleet.count(0, 3_000_000);
    expect(end.refused).toBe(0);
    expect(end.accepted).toBeGreaterThan(3400);
  });

  test('counts one leased block too many for each replica that crashed, at most', async () => {
    const { clock, fleet, used } = await openFleet({ limits: [DAY], perSecond: 2 });
    await clock.runUntil(600_000);
    fleet.stopReplica(1);
    fleet.stopReplica(2);
    await clock.runUntil(640_000);
    fleet.stop();
    const { accepted } = fleet.count(0, 640_000);
    expect(used(0) - accepted).toBeGreaterThanOrEqual(0);
    expect(used(0) - accepted).toBeLessThanOrEqual(3 * 80);
  });
});

const fault = fc.record({
  afterMs: fc.integer({ min: 0, max: 8_000 }),
  kind: fc.constantFrom('loses replies', 'dies', 'all lose Redis', 'all lose Redis and its data'),
  replica: fc.integer({ min: 0, max: 3 }),
});

test('no limit is exceeded, whichever replies are lost, and whichever replicas die', async () => {
  const createFleet = await openFleets();
  const limits = fc.record({
    calls: fc.integer({ min: 5, max: 200 }),
    per: fc.constantFrom('5s', '10s', '1m'),
    window: fc.constantFrom('sliding', 'calendar'),
    reserve: fc.integer({ min: 0, max: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(
      limits,
      fc.array(fault, { maxLength: 6 }),
      fc.nat(),
      async ({ calls, per, ...terms }, faults, seed) => {
        const declared = [limit(3 * calls, '1d'), limit(calls, per, terms)];
        const perSecond = (3 * calls * 1000) / periodMs(per);
        const { clock, redis, fleet, used } = await createFleet({ limits: declared, perSecond, seed });
        const lossy = new Map<string, number>();
        redis.losesReply = ({ id }) => {
          const left = lossy.get(id) ?? 0;
          lossy.set(id, left - 1);
          return left > 0 && left % 2 === 0;
        };
        let dead = 0;
        let at = 3_000;
        await clock.runUntil(at);
        for (const { afterMs, kind, replica } of faults) {
          at += afterMs;
          await clock.runUntil(at);
          if (kind === 'loses replies') lossy.set(`replica-0${String(replica)}`, 20);
          else if (kind === 'dies' && replica > 0) {
            fleet.stopReplica(replica);
            dead++;
          } else if (kind.startsWith('all')) {
            redis.crash();
            await clock.runUntil(at + 3_000);
            await redis.restart(1_000, kind === 'all lose Redis');
            // What a replica that dies before this has called in the meantime is lost.
            at += 6_000;
            await clock.runUntil(at);
          }
        }
        fleet.stopLoad();
        await clock.runUntil(at + 300_000);
        fleet.stop();
        const { accepted, refused } = fleet.count(0, Infinity);
        expect(refused).toBe(0);
        expect(used(0)).toBeGreaterThanOrEqual(accepted);
        const lostData = faults.filter(({ kind }) => kind.endsWith('data')).length;
        if (lostData === 0) expect(used(0) - accepted).toBeLessThanOrEqual(dead * Math.max(1, 0.02 * 3 * calls + 1));
      },
    ),
    { numRuns: roundsOf({ check: 10, soak: 50 }) },
  );
});
