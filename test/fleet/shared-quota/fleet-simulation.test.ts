/** Fleets of throttles in virtual time, over the script as it is: what they learn together, and what they do without Redis. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { bucketLimiter, windowLimiter } from '../../throttle/simulation.ts';
import { startRedis } from '../../support/redis.ts';
import { seedsOf } from '../../support/rounds.ts';
import { measureStart } from './fleet-start.ts';
import { FleetSimulation, SimulationClock, SimulatedRedis, type FleetSimulationOptions } from './fleet-simulation.ts';

const QUOTA = 40;

async function create(options: Omit<FleetSimulationOptions, 'redis' | 'clock' | 'load'>) {
  const server = await startRedis();
  const clock = new SimulationClock();
  const redis = await SimulatedRedis.open(server.url, clock);
  const world = new FleetSimulation({ ...options, redis, clock, load: { perSecond: QUOTA * 1.5 } });
  onTestFinished(() => {
    world.stop();
    redis.close();
  });
  return { world, clock, redis };
}

describe.each([
  ['a bucket of 20 that refills at 40/s', () => bucketLimiter(QUOTA, 20)],
  ['400 in 10 s', () => windowLimiter(QUOTA * 10, 10_000, false)],
])('%s', (_, limiter) => {
  test.each([1, 4, 16])('is kept by %i replicas, evenly and with few commands', async (replicas) => {
    const { world, clock, redis } = await create({ replicas, limiter: limiter() });
    await clock.runUntil(40_000);
    const { commands } = redis;
    await clock.runUntil(120_000);
    const { accepted, refusedShare, jain } = world.count(40_000, 120_000);
    expect(accepted / (80 * QUOTA)).toBeGreaterThan(0.93);
    expect(refusedShare).toBeLessThan(0.008);
    expect(jain).toBeGreaterThan(0.975);
    expect((redis.commands - commands) / accepted).toBeLessThan(0.27);
    expect(world.failed).toBe(0);
  });
});

test('never tries a rate far above what its replicas had accepted', async () => {
  const { world, clock } = await create({ replicas: 16, limiter: windowLimiter(QUOTA * 10, 10_000, false) });
  let highest = 0;
  for (let at = 500; at <= 60_000; at += 500) {
    await clock.runUntil(at);
    const known = world.throttles.map((one) => one.state().fleet?.rate ?? 0).filter(Number.isFinite);
    highest = Math.max(highest, ...known);
  }
  expect(highest).toBeGreaterThan(QUOTA / 2);
  expect(highest).toBeLessThan(QUOTA * 5);
});

test('every replica says since when the limit is known', async () => {
  const { world, clock } = await create({ replicas: 3, limiter: windowLimiter(QUOTA * 10, 10_000, false) });
  await clock.runUntil(60_000);
  const since = world.throttles.map((one) => (one.state().learned?.since ?? 0) - clock.wallNow() + clock.now());
  for (const at of since) {
    expect(at).toBeGreaterThan(1_000);
    expect(at).toBeLessThan(60_000);
  }
});

test('learns of a pause by exchanges when no updates are pushed', async () => {
  const { world, clock, redis } = await create({ replicas: 4, limiter: bucketLimiter(QUOTA, 20) });
  redis.dropsUpdates = true;
  await clock.runUntil(60_000);
  const { accepted, refusedShare } = world.count(20_000, 60_000);
  expect(accepted / (40 * QUOTA)).toBeGreaterThan(0.65);
  expect(refusedShare).toBeLessThan(0.05);
});

test('keeps what was learned when the leader dies and another follows', async () => {
  const { world, clock } = await create({ replicas: 4, limiter: bucketLimiter(QUOTA, 20) });
  await clock.runUntil(20_000);
  const leader = world.throttles.findIndex((one) => one.state().fleet?.isLeader);
  world.stopReplica(leader);
  await clock.runUntil(25_000);
  const next = world.throttles.findIndex((one, index) => index !== leader && one.state().fleet?.isLeader === true);
  expect(next).toBeGreaterThanOrEqual(0);
  expect(world.throttles[next]?.state().fleet?.rate).toBeGreaterThan(20);
  await clock.runUntil(60_000);
  expect(world.count(25_000, 60_000).refusedShare).toBeLessThan(0.03);
});

describe('Redis killed for 30 s under load', () => {
  test('never exceeds a configured rate, and uses it fully at once afterwards', async () => {
    const { world, clock, redis } = await create({
      replicas: 4,
      limiter: () => ({ accepted: true }),
      rate: QUOTA,
      burst: 5,
    });
    await clock.runUntil(20_000);
    redis.crash();
    await clock.runUntil(50_000);
    await redis.restart(3000);
    await clock.runUntil(80_000);
    // 4: each replica's own burst of one, while they are apart. 1: jitter on the way.
    expect(world.largestBurst(QUOTA)).toBeLessThanOrEqual(5 + 4 + 1);
    expect(world.count(25_000, 50_000).sent / (25 * QUOTA)).toBeGreaterThan(0.97);
    expect(world.count(55_000, 80_000).sent / (25 * QUOTA)).toBeGreaterThan(0.97);
    expect(world.failed).toBe(0);
  });

  test.each([
    ['a bucket', bucketLimiter(QUOTA, 20)],
    ['a window', windowLimiter(QUOTA * 10, 10_000, false)],
  ])('keeps a learned limit: %s', async (_, limiter) => {
    const { world, clock, redis } = await create({ replicas: 16, limiter });
    await clock.runUntil(40_000);
    redis.crash();
    await clock.runUntil(70_000);
    const apart = world.count(40_000, 70_000);
    expect(apart.refusedShare).toBeLessThan(0.01);
    expect(apart.accepted / (30 * QUOTA)).toBeGreaterThan(0.8);
    await redis.restart(3000);
    await clock.runUntil(75_000);
    expect(world.throttles.map((one) => one.state().fleet?.state)).toEqual(Array(16).fill('joined'));
    await clock.runUntil(100_000);
    expect(world.count(70_000, 100_000).refusedShare).toBeLessThan(0.02);
    expect(world.failed).toBe(0);
  });
});

test.each([1, 3, 10])(
  'three replicas before a bucket of %i reach half of a hidden rate within 18 s, and keep it',
  async (burst) => {
    const server = await startRedis();
    for (const seed of seedsOf({ check: 1, soak: 3 })) {
      const start = await measureStart(server.url, { loop: 'closed', burst, replicas: 3, seed, seconds: 40 });
      expect(start.halfRateMs).toBeLessThan(18_000);
      expect(start.lowestShare).toBeGreaterThan(0.5);
    }
  },
);
