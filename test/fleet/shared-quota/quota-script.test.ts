/** The script of the quota store, in a real Redis whose clock is handed in. */
import { describe, expect, onTestFinished, test } from 'vitest';
import fc from 'fast-check';
import type { QuotaRequest } from '../../../src/fleet/shared-quota/quota-store.ts';
import { startRedis } from '../../support/redis.ts';
import { SimulationClock, SimulatedRedis } from './fleet-simulation.ts';

const START = Date.UTC(2026, 10, 1);
const BASE: QuotaRequest = {
  id: 'a',
  want: 0,
  activity: 'active',
  fixed: undefined,
  knownReplicas: 1,
  calls: '',
  refusal: undefined,
  published: undefined,
  version: 0,
  maxPauseMs: 300_000,
  isReturning: false,
  reportsReadUpTo: 0,
};

type RunExchange = (
  at: number,
  request: Partial<QuotaRequest>,
) => Promise<NonNullable<Awaited<ReturnType<SimulatedRedis['run']>>>>;

/** Stores on one Redis, each called at instants counted from the start. It ends with the test. */
async function openStores(): Promise<() => RunExchange> {
  const server = await startRedis();
  const redis = await SimulatedRedis.open(server.url, new SimulationClock());
  onTestFinished(() => redis.close());
  let keys = 0;
  return () => {
    const key = `quota-${String(keys++)}`;
    return async (at, request) => {
      const reply = await redis.run(key, { ...BASE, ...request }, START + at);
      if (reply === undefined) throw new Error('no reply');
      return { ...reply, permitTimes: reply.permitTimes.map((slot) => slot - START) };
    };
  };
}

async function openStore(): Promise<RunExchange> {
  return (await openStores())();
}

describe('permits of a configured rate', () => {
  const stepOfChange = {
    waitMs: fc.integer({ min: 0, max: 800 }),
    replica: fc.constantFrom('a', 'b', 'c', 'd'),
    want: fc.integer({ min: 0, max: 30 }),
  };
  const step = fc.record({
    ...stepOfChange,
    isRefused: fc.boolean(),
  });

  test('never exceed burst + rate · interval, for any replicas and times', async () => {
    const createStore = await openStores();
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 12 }),
        fc.double({ min: 0.5, max: 200, noNaN: true }),
        async (steps, burst, rate) => {
          const ask = createStore();
          let slots: number[] = [];
          let at = 0;
          let epoch = 0;
          for (const { waitMs, replica, want, isRefused } of steps) {
            at += waitMs;
            const refusal = isRefused && want > 25 ? { at: START + at, statedWaitMs: undefined } : undefined;
            const reply = await ask(at, { id: replica, want, fixed: { rate, burst }, refusal });
            // A pause voids what was given away and not used yet.
            if (reply.epoch !== epoch) slots = slots.filter((slot) => slot <= at);
            ({ epoch } = reply);
            slots.push(...reply.permitTimes);
            if (reply.isFleetPaused && reply.isLeader)
              await ask(at, {
                id: replica,
                published: { rate, burst, epoch, openAt: START + at, model: '', isTentative: false },
              });
          }
          slots.sort((one, other) => one - other);
          let excess = 0;
          for (const [first, from] of slots.entries())
            for (let last = first; last < slots.length; last++)
              excess = Math.max(excess, last - first + 1 - burst - (((slots[last] ?? from) - from) * rate) / 1000);
          expect(excess).toBeLessThanOrEqual(0.01);
        },
      ),
      { numRuns: 60 },
    );
  });

  /** By how many slots an interval had more than the largest burst in force and what the fastest rate in force gives in it. */
  function largestExcess(slots: readonly number[], limits: readonly { at: number; rate: number; burst: number }[]) {
    let excess = -Infinity;
    for (const [first, from] of slots.entries())
      for (let last = first; last < slots.length; last++) {
        const to = slots[last] ?? from;
        // A slot may have been leased by a limit up to four seconds older.
        const inForce = limits.filter(
          ({ at }, index) => at <= to && (limits[index + 1]?.at ?? Infinity) >= from - 4_000,
        );
        const rate = Math.max(...inForce.map((one) => one.rate));
        const burst = Math.max(...inForce.map((one) => one.burst));
        excess = Math.max(excess, last - first + 1 - burst - ((to - from) * rate) / 1000);
      }
    return excess;
  }

  test('never exceed the highest burst + rate · interval in force while rates and bursts change', async () => {
    const createStore = await openStores();
    const change = fc.record({
      ...stepOfChange,
      rate: fc.double({ min: 0.5, max: 200, noNaN: true }),
      burst: fc.integer({ min: 1, max: 12 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 2, maxLength: 30 }), async (steps) => {
        const ask = createStore();
        const slots: number[] = [];
        const limits: { at: number; rate: number; burst: number }[] = [];
        let at = 0;
        for (const { waitMs, replica, want, rate, burst } of steps) {
          at += waitMs;
          limits.push({ at, rate, burst });
          slots.push(...(await ask(at, { id: replica, want, fixed: { rate, burst } })).permitTimes);
        }
        slots.sort((one, other) => one - other);
        expect(largestExcess(slots, limits)).toBeLessThanOrEqual(0.01);
      }),
      { numRuns: 100 },
    );
  });

  test('of rates that change are never closer than the shortest interval that held between them, and never in time that is leased', async () => {
    const createStore = await openStores();
    const change = fc.record({ ...stepOfChange, rate: fc.constantFrom(1, 5, 40, 200) });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 2, maxLength: 30 }), async (steps) => {
        const ask = createStore();
        let at = 0;
        let lastSlot = -Infinity;
        let fastest = Infinity;
        for (const { waitMs, replica, want, rate } of steps) {
          at += waitMs;
          // A rate that holds between two permits saves up for the second, also when no permit is asked for meanwhile.
          fastest = Math.max(fastest, rate);
          const { permitTimes } = await ask(at, { id: replica, want, fixed: { rate, burst: 1 } });
          for (const slot of permitTimes) {
            expect(slot - lastSlot).toBeGreaterThanOrEqual(1000 / fastest - 0.01);
            lastSlot = slot;
            fastest = rate;
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  test('start with an empty bucket, come evenly, and are leased at most four seconds ahead', async () => {
    const ask = await openStore();
    const fixed = { rate: 10, burst: 3 };
    expect((await ask(0, { want: 3, fixed })).permitTimes).toEqual([100, 200, 300]);
    // After a quiet time the burst is there.
    expect((await ask(5000, { want: 5, fixed })).permitTimes).toEqual([5000, 5000, 5000, 5100, 5200]);
    const far = await ask(5000, { id: 'b', want: 16, fixed });
    expect(far.permitTimes).toHaveLength(16);
    let last = far;
    while (last.permitTimes.length > 0) last = await ask(5000, { id: 'b', want: 16, fixed });
    expect(last.retryInMs).toBeGreaterThan(0);
    expect((await ask(5000 + last.retryInMs, { id: 'c', want: 1, fixed })).permitTimes).toHaveLength(1);
  });
});

describe('a refusal', () => {
  test('pauses all replicas until the leader ends it, and voids leased permits', async () => {
    const ask = await openStore();
    const fixed = { rate: 10, burst: 1 };
    expect(await ask(0, { id: 'a', fixed })).toMatchObject({ isLeader: true, epoch: 0, isFleetPaused: false });
    expect((await ask(10, { id: 'b', want: 4, fixed })).isLeader).toBe(false);
    const refusal = { at: START + 15, statedWaitMs: 500 };
    const refused = await ask(20, { id: 'b', fixed, refusal });
    expect(refused).toMatchObject({ epoch: 1, isFleetPaused: true, pausedUntil: START + 520 });
    await ask(320, { id: 'a', fixed });
    expect(await ask(600, { id: 'c', want: 4, fixed })).toMatchObject({ isFleetPaused: true, permitTimes: [] });
    const published = { ...fixed, epoch: 1, openAt: START + 650, model: '', isTentative: false };
    // Another than the leader ends nothing.
    expect((await ask(610, { id: 'b', fixed, published })).isFleetPaused).toBe(true);
    expect((await ask(620, { id: 'a', fixed, published })).isFleetPaused).toBe(false);
    expect((await ask(630, { id: 'c', want: 2, fixed })).permitTimes).toEqual([750, 850]);
  });

  test('of a call made before the last pause begins no other pause', async () => {
    const ask = await openStore();
    await ask(0, { fixed: { rate: 10, burst: 1 }, refusal: { at: START, statedWaitMs: undefined } });
    expect((await ask(50, { refusal: { at: START - 5, statedWaitMs: undefined } })).epoch).toBe(1);
    expect((await ask(60, { refusal: { at: START + 55, statedWaitMs: undefined } })).epoch).toBe(2);
  });
});

describe('the lead', () => {
  test('is kept by exchanges, and passes on after 0.9 s without one', async () => {
    const ask = await openStore();
    expect((await ask(0, { id: 'a' })).isLeader).toBe(true);
    expect(await ask(500, { id: 'b' })).toMatchObject({ isLeader: false, leaderLeftMs: 400 });
    await ask(700, { id: 'a' });
    expect((await ask(1590, { id: 'b' })).isLeader).toBe(false);
    expect((await ask(1610, { id: 'b' })).isLeader).toBe(true);
    expect((await ask(1620, { id: 'a' })).isLeader).toBe(false);
  });

  test('passes on after 0.5 s during a pause', async () => {
    const ask = await openStore();
    const fixed = { rate: 10, burst: 1 };
    await ask(0, { id: 'a', fixed });
    const refusal = { at: START + 15, statedWaitMs: undefined };
    expect(await ask(20, { id: 'b', fixed, refusal })).toMatchObject({ isFleetPaused: true, leaderLeftMs: 480 });
    expect((await ask(490, { id: 'b', fixed })).isLeader).toBe(false);
    expect((await ask(510, { id: 'b', fixed })).isLeader).toBe(true);
  });

  test('passes at once from a replica that is idle or leaves', async () => {
    const ask = await openStore();
    await ask(0, { id: 'a', activity: 'idle' });
    expect((await ask(10, { id: 'b', activity: 'idle' })).isLeader).toBe(false);
    expect((await ask(20, { id: 'b' })).isLeader).toBe(true);
    await expect(ask(30, { id: 'b', activity: 'leaving' })).rejects.toThrow('no reply');
    expect(await ask(40, { id: 'a' })).toMatchObject({ isLeader: true, replicaCount: 1 });
  });

  test('brings the reports of the others once, and the model of the former leader', async () => {
    const ask = await openStore();
    await ask(0, { id: 'a', published: undefined });
    await ask(10, { id: 'b', calls: '10 1 5 0;' });
    await ask(20, { id: 'c', calls: '20 1 5 0;' });
    const published = { rate: 40, burst: 2, epoch: -1, openAt: 0, model: '{"a":1}', isTentative: true };
    const read = await ask(30, { id: 'a', published });
    expect(read).toMatchObject({ reports: '10 1 5 0;20 1 5 0;', rate: 40, version: 1 });
    const { reportsReadUpTo } = read;
    expect((await ask(40, { id: 'a', version: 1, reportsReadUpTo })).reports).toBe('');
    expect(await ask(50, { id: 'b' })).toMatchObject({ model: '{"a":1}', version: 1 });
    expect(await ask(60, { id: 'b', version: 1 })).toMatchObject({ model: '' });
  });
});

describe('reports', () => {
  /** Calls as a leader that keeps up to where it has read. */
  function createReader(ask: RunExchange, id: string) {
    let reportsReadUpTo = 0;
    return async (at: number, calls = ''): Promise<string> => {
      const reply = await ask(at, { id, calls, reportsReadUpTo });
      expect(reply.isLeader).toBe(true);
      ({ reportsReadUpTo } = reply);
      return reply.reports;
    };
  }

  test('of a replica that begins to lead, and of the leader, are read with the others', async () => {
    const ask = await openStore();
    await ask(0, { id: 'a', activity: 'idle', calls: '1 1 5 0;' });
    await ask(10, { id: 'b', calls: '2 1 5 0;' });
    // The former leader does not know yet that it was displaced.
    await ask(20, { id: 'a', activity: 'idle', calls: '3 1 5 0;' });
    const read = createReader(ask, 'b');
    expect(await read(30, '4 1 5 0;')).toBe('1 1 5 0;2 1 5 0;3 1 5 0;4 1 5 0;');
    expect(await read(40)).toBe('');
  });

  test('are read again by the next leader, and once by a leader whose reply was lost or that leads again', async () => {
    const ask = await openStore();
    const [readAsA, readAsB] = [createReader(ask, 'a'), createReader(ask, 'b')];
    expect(await readAsA(0, 'one;')).toBe('one;');
    // Its reply is lost.
    await ask(300, { id: 'a', calls: 'two;', reportsReadUpTo: 0 });
    expect(await readAsA(600)).toBe('two;');
    expect(await readAsB(2000, 'three;')).toBe('one;two;three;');
    expect(await readAsA(4000)).toBe('three;');
    expect(await readAsB(6000)).toBe('');
  });

  test('that were read are kept for the next leader up to a bounded length', async () => {
    const ask = await openStore();
    const read = createReader(ask, 'a');
    const report = (index: number): string => `${String(index).padStart(99, '0')};`;
    for (let index = 0; index < 80; index++) await read(index, report(index));
    const { reportsKeptFrom } = await ask(80, { id: 'a' });
    expect(await ask(90, { id: 'a' })).toMatchObject({ reportsKeptFrom });
    for (let index = 80; index < 400; index++) await read(index, report(index));
    const { reports, reportsReadUpTo, reportsKeptFrom: nowKeptFrom } = await ask(5_000, { id: 'b' });
    expect(nowKeptFrom).toBe(reportsReadUpTo - reports.length);
    expect(nowKeptFrom).toBeGreaterThan(reportsKeptFrom);
    expect(reports.length).toBeGreaterThanOrEqual(8_000);
    expect(reports.length).toBeLessThanOrEqual(16_000);
    expect(reports.endsWith(report(399))).toBe(true);
  });
});

test('counts a replica for ten seconds after its last exchange', async () => {
  const ask = await openStore();
  await ask(0, { id: 'a' });
  await ask(1000, { id: 'c' });
  expect(await ask(9000, { id: 'b' })).toMatchObject({ replicaCount: 3, oldestReportAt: START });
  expect(await ask(10_500, { id: 'b' })).toMatchObject({ replicaCount: 2, oldestReportAt: START + 1000 });
});

test('gives the first replica only its own part after a loss of data', async () => {
  const ask = await openStore();
  const fixed = { rate: 40, burst: 1 };
  let at = 0;
  let given = 0;
  while (at < 2000) {
    const { permitTimes, retryInMs } = await ask(at, { id: 'a', knownReplicas: 4, want: 16, fixed });
    given += permitTimes.length;
    at += Math.max(10, retryInMs);
  }
  // A quarter of 40 a second, and a little ahead.
  expect(given).toBeGreaterThan(15);
  expect(given).toBeLessThanOrEqual(20 + 5);
});

test('ranks the replicas by name, and the leader last', async () => {
  const ask = await openStore();
  for (const id of ['b', 'a', 'd', 'c']) await ask(0, { id });
  const ranks: Record<string, number> = {};
  for (const id of ['a', 'b', 'c', 'd']) ranks[id] = (await ask(100, { id })).rank;
  expect(ranks).toEqual({ a: 0, c: 1, d: 2, b: 3 });
});

test('leases a tentative rate only one second ahead', async () => {
  const ask = await openStore();
  const published = { rate: 4, burst: 1, epoch: -1, openAt: 0, model: '' };
  await ask(0, { published: { ...published, isTentative: true } });
  const { permitTimes, isTentative } = await ask(0, { want: 16 });
  expect(isTentative).toBe(true);
  expect(permitTimes.at(-1)).toBeLessThanOrEqual(1_000);
  await ask(0, { published: { ...published, isTentative: false } });
  expect((await ask(0, { want: 16 })).permitTimes.at(-1)).toBeGreaterThan(3_000);
});
