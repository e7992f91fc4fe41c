/** The script's part for declared limits, in a real Redis whose clock is handed in. */
import { describe, expect, onTestFinished, test } from 'vitest';
import fc from 'fast-check';
import type { LimitReport } from '../../../src/throttle/declared/counted-limit.ts';
import type { QuotaReply, QuotaRequest } from '../../../src/fleet/shared-quota/quota-store.ts';
import { startRedis, type Redis } from '../../support/redis.ts';
import { SimulationClock, SimulatedRedis } from './fleet-simulation.ts';

const START = Date.UTC(2026, 10, 1);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const END = START + DAY_MS;
const KEY = 'day 1d calendar UTC';

interface Report extends Partial<LimitReport> {
  readonly sequence?: number;
  readonly reportsKnown?: boolean;
}

type Exchange = (
  at: number,
  id: string,
  report: Report,
  request?: Partial<QuotaRequest>,
) => Promise<QuotaReply | undefined>;

async function openStores(): Promise<{ server: Redis; createStore: () => { key: string; exchange: Exchange } }> {
  const server = await startRedis();
  const redis = await SimulatedRedis.open(server.url, new SimulationClock());
  onTestFinished(() => redis.close());
  let keys = 0;
  const createStore = () => {
    const key = `quota-${String(keys++)}`;
    const exchange: Exchange = (at, id, { sequence = 1, reportsKnown = false, ...report }, request) => {
      const whole = { isNew: false, isOfOperation: false };
      const limit = {
        ...whole,
        key: KEY,
        calls: 100,
        counts: [],
        held: 0,
        want: 0,
        reserve: 0,
        leased: 0,
        known: [],
        ...report,
      };
      const declared = { sequence, reportsKnown, limits: [{ heldUntil: END, ...limit }] };
      const common = { want: 0, activity: 'active', fixed: undefined, knownReplicas: 1, calls: '' } as const;
      const none = { refusal: undefined, published: undefined, version: 0, isReturning: false, reportsReadUpTo: 0 };
      return redis.run(key, { id, ...common, ...none, maxPauseMs: 300_000, declared, ...request }, START + at);
    };
    return { key, exchange };
  };
  return { server, createStore };
}

async function openStore() {
  const { server, createStore } = await openStores();
  return { server, ...createStore() };
}

const used = (reply: QuotaReply | undefined): number | undefined =>
  reply?.grants?.[0]?.counts.reduce((sum, [, calls]) => sum + calls, 0);
const granted = (reply: QuotaReply | undefined): number | undefined => reply?.grants?.[0]?.granted;

describe('permits', () => {
  test('are leased in ever smaller blocks, and never beyond what is left', async () => {
    const { exchange } = await openStore();
    await exchange(0, 'b', {});
    const blocks: number[] = [];
    for (let held = 0, at = 0; ; at += 10) {
      const block = granted(await exchange(at, 'a', { held, want: 1000 })) ?? NaN;
      if (block === 0) break;
      blocks.push(block);
      held += block;
    }
    expect(blocks.slice(0, 4)).toEqual([25, 18, 14, 10]);
    expect(blocks.reduce((sum, block) => sum + block, 0)).toBe(100);
    expect(blocks.at(-1)).toBe(1);
    expect(await exchange(500, 'b', { want: 1 })).toMatchObject({ grants: [{ granted: 0, heldByOthers: 100 }] });
  });

  test('are not leased from the reserve, unless a request of high priority waits', async () => {
    const { exchange } = await openStore();
    const counts = [[END, 90]] as const;
    expect(granted(await exchange(0, 'a', { counts, reserve: 10, want: 5 }))).toBe(0);
    expect(granted(await exchange(1, 'a', { counts, reserve: 0, want: 5 }))).toBe(5);
  });

  test('are asked for again when the next call stops to count', async () => {
    const { exchange } = await openStore();
    const counts = [
      [START + 700, 60],
      [START + 900, 40],
    ] as const;
    expect(await exchange(0, 'a', { counts, want: 5 })).toMatchObject({ grantsRetryInMs: 701 });
    expect(await exchange(695, 'a', { sequence: 2, want: 5 })).toMatchObject({ grantsRetryInMs: 20 });
    expect(granted(await exchange(701, 'a', { sequence: 3, want: 5 }))).toBe(5);
  });
});

describe('a report', () => {
  test('that is repeated counts once, also when an older one comes after it', async () => {
    const { exchange } = await openStore();
    const counts = [[END, 7]] as const;
    await exchange(0, 'a', { counts });
    expect(used(await exchange(1, 'a', { counts }))).toBe(7);
    expect(used(await exchange(2, 'a', { sequence: 2, counts: [[END, 3]] }))).toBe(10);
    await exchange(3, 'a', { counts });
    expect(used(await exchange(4, 'b', {}))).toBe(10);
  });

  test('that another one has overtaken counts nothing, and one that only seems to have been does in the end', async () => {
    const { exchange } = await openStore();
    for (const sequence of [1, 2, 3]) await exchange(sequence, 'a', { sequence, counts: [[END, 1]] });
    const overtaken = { sequence: 1, counts: [[END, 1]], want: 1 } as const;
    expect(await exchange(5_000, 'a', overtaken)).toMatchObject({ grants: undefined, grantsRetryInMs: 100 });
    expect(used(await exchange(5_001, 'b', {}))).toBe(3);
    const repeated = await exchange(10_004, 'a', overtaken);
    expect([used(repeated), granted(repeated)]).toEqual([4, 1]);
  });

  test('takes back what it had counted until a later instant', async () => {
    const { exchange } = await openStore();
    await exchange(0, 'a', { counts: [[START + 900, 2]] });
    const moved = await exchange(1, 'a', {
      sequence: 2,
      counts: [
        [START + 900, -1],
        [START + 800, 1],
      ],
    });
    expect(moved?.grants?.[0]?.counts).toEqual([
      [START + 800, 1],
      [START + 900, 1],
    ]);
  });

  test('whose counts the store has lost is given again with all that is known, and the larger count holds', async () => {
    const { server, key, exchange } = await openStore();
    await exchange(0, 'a', { counts: [[END, 40]] });
    await server.command('DEL', key);
    await exchange(1, 'b', { sequence: 9, counts: [[END, 5]], known: [[END, 30]], reportsKnown: true });
    const lost = { sequence: 2, counts: [[END, 2]], known: [[END, 40]], held: 3, want: 5 } as const;
    expect(await exchange(2, 'a', lost)).toMatchObject({ grants: undefined, grantsRetryInMs: 20 });
    expect(used(await exchange(3, 'b', { sequence: 10 }))).toBe(35);
    expect(await exchange(4, 'b', { sequence: 11 })).toMatchObject({ grants: [{ heldByOthers: 3 }] });
    const counted = await exchange(5, 'a', { ...lost, reportsKnown: true });
    expect([used(counted), granted(counted)]).toEqual([42, 5]);
  });
});

describe('the permits of a replica', () => {
  test('that is gone count as used, once', async () => {
    const { exchange } = await openStore();
    await exchange(0, 'a', { held: 6 });
    expect(await exchange(10_000, 'b', {})).toMatchObject({ grants: [{ heldByOthers: 6, counts: [] }] });
    for (const at of [10_001, 20_000, 620_000])
      expect(await exchange(at, 'b', {})).toMatchObject({ grants: [{ heldByOthers: 0, counts: [[END, 6]] }] });
  });

  test('that leaves are free, and its last calls count', async () => {
    const { server, key, exchange } = await openStore();
    await exchange(0, 'a', { held: 6 });
    const leaving = { sequence: 2, counts: [[END, 4]], held: 1 } as const;
    expect(await exchange(1, 'a', leaving, { activity: 'leaving' })).toBeUndefined();
    expect(await exchange(2, 'b', {})).toMatchObject({ grants: [{ heldByOthers: 0, counts: [[END, 5]] }] });
    expect(await server.command('HEXISTS', key, 'held:a')).toBe(0);
  });

  test('count for all until those that return are back, who keep to their parts', async () => {
    const { exchange } = await openStore();
    for (const id of ['a', 'b']) await exchange(0, id, { held: 5 });
    const back = { knownReplicas: 2, isReturning: true };
    expect(await exchange(HOUR_MS, 'a', { sequence: 2, held: 2, want: 9, counts: [[END, 30]] }, back)).toMatchObject({
      grants: undefined,
      grantsRetryInMs: 100,
    });
    const again = { sequence: 2, held: 1, want: 9, counts: [[END, 30]] } as const;
    expect(await exchange(HOUR_MS + 9, 'a', again, { knownReplicas: 2 })).toMatchObject({ grants: undefined });
    await exchange(HOUR_MS + 20, 'b', { sequence: 2, counts: [[END, 20]] }, back);
    await exchange(HOUR_MS + 30, 'b', { sequence: 2, counts: [[END, 20]] }, { knownReplicas: 2 });
    const all = await exchange(HOUR_MS + 40, 'a', again, { knownReplicas: 2 });
    expect([used(all), granted(all)]).toEqual([50, 9]);
  });
});

test('the hash is kept for as long as its calls count, and as before without declared limits', async () => {
  const { server, key, exchange } = await openStore();
  await exchange(0, 'a', {}, { declared: undefined });
  expect(Number(await server.command('PTTL', key))).toBeLessThanOrEqual(600_000);
  await exchange(1, 'a', {});
  expect(Number(await server.command('PTTL', key))).toBeGreaterThan(DAY_MS);
  await exchange(2, 'a', { key: 'other', heldUntil: START + 2 * DAY_MS, counts: [[START + 5, 1]] });
  expect(await server.command('HEXISTS', key, 'limit:other')).toBe(1);
  await exchange(DAY_MS + 1, 'a', { sequence: 2, heldUntil: END + DAY_MS });
  expect(await server.command('HEXISTS', key, 'limit:other')).toBe(0);
});

test('foreign content of the fields stops no replica for longer than the limit lasts, and stays bounded', async () => {
  const { server, createStore } = await openStores();
  const number = fc.oneof(
    fc.integer({ min: -5, max: 2_000_000 }).map(String),
    fc.integer({ min: -HOUR_MS, max: 70 * DAY_MS }).map((ms) => String(START + ms)),
    fc.constantFrom('nan', '-1', '1e308', 'inf', '9'.repeat(30), '9'.repeat(400), '', '\n', '\t', KEY),
  );
  const words = fc.array(number, { maxLength: 12 }).map((parts) => parts.join(' '));
  const lines = fc.array(fc.tuple(words, fc.constantFrom(`\t${KEY}\n`, '\tother\n', '\n', '')), { maxLength: 4 });
  const replica = fc
    .tuple(number, fc.integer({ min: 0, max: 120 }))
    .map(([at, sequence]) => `${at} ${String(sequence)}\n`);
  const held = fc.tuple(fc.oneof(replica, fc.constant('')), lines).map((parts) => parts.flat(2).join(''));
  const long = fc.constantFrom('1 1 '.repeat(50_000), `${String(START + 1)} 1 `.repeat(400), 'x'.repeat(300_000));
  const content = fc.record({
    [`limit:${KEY}`]: fc.oneof(words, long),
    'held:a': held,
    'held:z': fc.oneof(held, long),
  });
  const heldUntil = START + 60_000;
  await fc.assert(
    fc.asyncProperty(content, async (fields) => {
      const { key, exchange } = createStore();
      await server.command('HSET', key, ...Object.entries(fields).flat());
      let sequence = 1;
      let isGranted = false;
      for (let at = 0; at <= 700_000; at += 20_000) {
        const reply = await exchange(at, 'a', { want: 1, sequence, heldUntil: heldUntil + at });
        for (const grant of reply?.grants ?? [])
          for (const one of [grant.granted, grant.heldByOthers, ...grant.counts.flat()])
            expect(one).toBeGreaterThanOrEqual(0);
        if (reply?.grants !== undefined) sequence++;
        if ((granted(reply) ?? 0) > 0) isGranted = true;
        else expect(reply?.grantsRetryInMs).toBeGreaterThanOrEqual(20);
      }
      expect(isGranted).toBe(true);
      expect(Number(await server.command('MEMORY', 'USAGE', key))).toBeLessThan(20_000);
    }),
    { numRuns: 60 },
  );
});
