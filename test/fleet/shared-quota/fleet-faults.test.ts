/**
 * Four replicas and a Redis that fails under load, in virtual time over the script in a real Redis: their parts of the rate together are
 * never more than the rate, and what they have learned before holds afterwards. test/bench/fleet-faults.ts measures the same in real time.
 */
import { describe, expect, onTestFinished, test } from 'vitest';
import { bucketLimiter, windowLimiter, seeded, type Limiter } from '../../throttle/simulation.ts';
import { startRedis, type Redis } from '../../support/redis.ts';
import { FleetSimulation, SimulationClock, SimulatedRedis } from './fleet-simulation.ts';

const QUOTA = 40;
const BURST = 5;
const REPLICAS = 4;
const FAILS_MS = 40_000;
/** After the end of a fault the rate is measured in this time. */
const RECOVERED_MS = [25_000, 35_000] as const;

interface FailingRedis {
  readonly server: Redis;
  readonly redis: SimulatedRedis;
}

interface Fault {
  readonly name: string;
  begin(failing: FailingRedis): unknown;
  end(failing: FailingRedis): unknown;
}

const setMaxMemory = ({ server }: FailingRedis, bytes: number): Promise<unknown> =>
  server.command('CONFIG', 'SET', 'maxmemory', String(bytes));

function refuseWrites(name: string, acceptedShare: number): Fault {
  return {
    name,
    begin(failing) {
      const random = seeded(1);
      failing.redis.beforeScript = () => setMaxMemory(failing, random() < acceptedShare ? 0 : 1);
    },
    end(failing) {
      failing.redis.beforeScript = undefined;
      return setMaxMemory(failing, 0);
    },
  };
}

const NO_MEMORY = refuseWrites('Redis has no memory left for writes', 0);
const FEW_WRITES = refuseWrites('Redis refuses 49 of 50 writes', 0.02);
const FAULTS: readonly Fault[] = [
  NO_MEMORY,
  FEW_WRITES,
  refuseWrites('Redis refuses nine of ten writes', 0.1),
  {
    name: 'Redis is a read-only replica',
    begin: ({ server }) => server.command('REPLICAOF', '127.0.0.1', '1'),
    end: ({ server }) => server.command('REPLICAOF', 'NO', 'ONE'),
  },
  { name: 'all keys are deleted', begin: ({ server }) => server.command('FLUSHALL'), end: () => undefined },
  { name: 'Redis is restarted', begin: ({ redis }) => redis.crash(), end: ({ redis }) => redis.restart(3_000) },
  {
    name: 'replies are late',
    begin: ({ redis }) => {
      redis.isSlow = true;
    },
    end: ({ redis }) => {
      redis.isSlow = false;
    },
  },
];

interface FaultRun {
  readonly fault: Fault;
  readonly rate: number | 'auto';
  readonly limiter?: Limiter;
  readonly replicas?: number;
  readonly failsAt?: number;
  readonly seed?: number;
}

async function runFault(run: FaultRun) {
  const { fault, rate, limiter = bucketLimiter(QUOTA, 20), failsAt = 20_000, seed = 1, replicas = REPLICAS } = run;
  const server = await startRedis();
  const clock = new SimulationClock();
  const redis = await SimulatedRedis.open(server.url, clock);
  const common = { redis, clock, replicas, load: { perSecond: QUOTA * 1.5 } };
  const world = new FleetSimulation({ ...common, limiter, rate, burst: rate === 'auto' ? 1 : BURST, seed });
  onTestFinished(() => {
    world.stop();
    redis.close();
  });
  /** How many times the rate the parts of those that are apart have been together. */
  let largestShare = 0;
  const watchUntil = async (until: number): Promise<void> => {
    while (clock.now() < until) {
      await clock.runUntil(Math.min(until, clock.now() + 250));
      const states = world.throttles.map((one) => one.state());
      const parts = states.map((one) => (one.fleet?.state === 'apart' ? one.rate : 0));
      const known = Math.max(...states.map(({ fleet }) => fleet?.rate ?? 0));
      const sum = parts.reduce((total, part) => total + part, 0);
      if (sum > 0) largestShare = Math.max(largestShare, sum / known);
    }
  };
  await clock.runUntil(failsAt);
  await clock.hold(Promise.resolve(fault.begin({ server, redis })));
  const endsAt = failsAt + FAILS_MS;
  await watchUntil(endsAt);
  await clock.hold(Promise.resolve(fault.end({ server, redis })));
  await watchUntil(endsAt + RECOVERED_MS[1]);
  const recovered = world.count(endsAt + RECOVERED_MS[0], endsAt + RECOVERED_MS[1]);
  return {
    world,
    largestShare,
    meanwhile: world.count(failsAt, endsAt),
    recoveredShare: recovered.accepted / (QUOTA * 10),
  };
}

describe.each(FAULTS)('while $name', (fault) => {
  test('the replicas together keep to a configured rate, also at the begin and the end', async () => {
    const { world, largestShare, meanwhile, recoveredShare } = await runFault({ fault, rate: QUOTA });
    expect(largestShare).toBeLessThanOrEqual(1.001);
    // The burst, and at the begin and the end a burst of one of each.
    expect(world.largestBurst(QUOTA)).toBeLessThanOrEqual(BURST + 2 * REPLICAS);
    expect(meanwhile.sent / ((QUOTA * FAILS_MS) / 1000)).toBeGreaterThan(0.93);
    expect(recoveredShare).toBeGreaterThan(0.95);
    expect(world.failed).toBe(0);
  });

  test('the replicas together keep to a learned limit, and know it afterwards', async () => {
    const { largestShare, meanwhile, recoveredShare } = await runFault({ fault, rate: 'auto' });
    expect(largestShare).toBeLessThanOrEqual(1.001);
    expect(meanwhile.refusedShare).toBeLessThan(0.01);
    expect(recoveredShare).toBeGreaterThan(0.9);
  });
});

// What a replica learned from its own calls, or from refusals of calls that were not reported, was a twentieth of the limit.
test.each<[string, Omit<FaultRun, 'rate'>]>([
  ['a bucket of twenty', { fault: NO_MEMORY, seed: 2 }],
  ['a bucket of twenty, not known yet', { fault: NO_MEMORY, failsAt: 5_000, seed: 1 }],
  ['a bucket of three', { fault: FEW_WRITES, limiter: bucketLimiter(QUOTA, 3), seed: 3 }],
  [
    'a bucket of three, not known yet',
    { fault: FEW_WRITES, limiter: bucketLimiter(QUOTA, 3), failsAt: 5_000, seed: 3 },
  ],
  ['a bucket of three, one replica', { fault: FEW_WRITES, limiter: bucketLimiter(QUOTA, 3), replicas: 1 }],
  ['a window', { fault: NO_MEMORY, limiter: windowLimiter(QUOTA * 10, 10_000, false), seed: 2 }],
])('refusals of calls that were not reported teach nothing: %s', async (_, run) => {
  expect((await runFault({ ...run, rate: 'auto' })).recoveredShare).toBeGreaterThan(0.85);
});
