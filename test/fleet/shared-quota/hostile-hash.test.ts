/** The hash of a quota with any content, in a real Redis whose clock is handed in: written by others, by a former version, or by another clock. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import fc from 'fast-check';
import type { QuotaReply, QuotaRequest } from '../../../src/fleet/shared-quota/quota-store.ts';
import { startRedis, type Redis } from '../../support/redis.ts';
import { EXCHANGE_SCRIPT, SimulationClock, SimulatedRedis } from './fleet-simulation.ts';

const START = Date.UTC(2026, 10, 1);
const HOUR_MS = 3_600_000;
const HORIZON_MS = 4_000;
const REPLICA_TIMEOUT_MS = 10_000;
const MAX_PAUSE_MS = 20_000;
const FORMER_SCRIPT = readFileSync(join(import.meta.dirname, 'former', 'quota-format-1.lua'), 'utf8');
const BASE: QuotaRequest = {
  id: 'a',
  want: 0,
  activity: 'active',
  fixed: undefined,
  knownReplicas: 2,
  calls: '',
  refusal: undefined,
  published: undefined,
  version: 0,
  maxPauseMs: MAX_PAUSE_MS,
  isReturning: false,
  reportsReadUpTo: 0,
};

interface Limit {
  readonly rate: number;
  readonly burst: number;
}

/** One hash, and the permits that were leased from it. */
class Quota {
  readonly key: string;
  readonly #redis: SimulatedRedis;
  readonly #limit: Limit;
  /** Instants after the start of permits that are not void. */
  permits: number[] = [];
  #epoch = 0;

  constructor(redis: SimulatedRedis, key: string, limit: Limit) {
    this.#redis = redis;
    this.key = key;
    this.#limit = limit;
  }

  async ask(at: number, request: Partial<QuotaRequest>, script = EXCHANGE_SCRIPT): Promise<QuotaReply> {
    const whole = { ...BASE, fixed: this.#limit, want: 4, ...request };
    const reply = await this.#redis.run(this.key, whole, START + at, script);
    if (reply === undefined) throw new Error('no reply');
    if (reply.epoch !== this.#epoch) this.permits = this.permits.filter((permit) => permit <= at);
    this.#epoch = reply.epoch;
    this.permits.push(...reply.permitTimes.map((permit) => permit - START));
    return reply;
  }

  /** As a leader whose probe was accepted. */
  async endPause(at: number, { id, epoch }: { id: string; epoch: number }, script = EXCHANGE_SCRIPT): Promise<void> {
    const published = { ...this.#limit, epoch, openAt: START + at, model: '', isTentative: false };
    await this.ask(at, { id, want: 0, published }, script);
  }

  /** By how many permits an interval had more than the burst and what the rate gives in it. */
  get excess(): number {
    const { rate, burst } = this.#limit;
    const permits = this.permits.toSorted((one, other) => one - other);
    let excess = -Infinity;
    for (const [first, from] of permits.entries())
      for (let last = first; last < permits.length; last++)
        excess = Math.max(excess, last - first + 1 - burst - (((permits[last] ?? from) - from) * rate) / 1000);
    return excess;
  }
}

async function openRedis(): Promise<{ server: Redis; createQuota: (limit: Limit) => Quota }> {
  const server = await startRedis();
  const redis = await SimulatedRedis.open(server.url, new SimulationClock());
  onTestFinished(() => redis.close());
  let keys = 0;
  return { server, createQuota: (limit) => new Quota(redis, `quota-${String(keys++)}`, limit) };
}

/** Two replicas ask whenever a permit may be there. @returns when the first one may be used */
async function waitForPermit(quota: Quota, until: number): Promise<number> {
  for (let at = 0; at <= until;) {
    let waitMs = 1_000;
    for (const id of ['a', 'b']) {
      const reply = await quota.ask(at, { id });
      const [first] = reply.permitTimes;
      if (first !== undefined) return first - START;
      const leftMs = reply.pausedUntil - START - at;
      if (reply.isFleetPaused && reply.isLeader && leftMs <= 0) await quota.endPause(at, { id, epoch: reply.epoch });
      if (!reply.isFleetPaused) waitMs = Math.max(1, reply.retryInMs);
    }
    at += waitMs;
  }
  return Infinity;
}

const FIELDS = [
  ...[
    'rate',
    'burst',
    'tat',
    'epoch',
    'held',
    'pausedAt',
    'pausedUntil',
    'leader',
    'leaderUntil',
    'leaderIdle',
    'born',
  ],
  ...['expected', 'lostAt', 'tentative', 'mail', 'model', 'version', 'r:a', 'r:z', 'r:', 'of-a-later-version'],
];
const LONG_NAME = `r:${'x'.repeat(200_000)}`;
const value = fc.oneof(
  fc.integer({ min: -2 * HOUR_MS, max: 2 * HOUR_MS }).map((ms) => String(START + ms)),
  fc.constantFrom(
    'nan',
    '-nan',
    'inf',
    '-inf',
    '1e308',
    '-1',
    '0',
    '1',
    '',
    '0x7f',
    'a',
    'b',
    ' ',
    '1 2',
    '9'.repeat(40),
  ),
  fc.double().map(String),
  fc.string({ maxLength: 20 }),
  fc.constantFrom('1'.repeat(200_000), 'x'.repeat(200_000), '1 1 1 1;'.repeat(20_000)),
);
const content = fc.uniqueArray(fc.tuple(fc.constantFrom(...FIELDS, LONG_NAME), value), {
  minLength: 1,
  maxLength: FIELDS.length,
  selector: ([field]) => field,
});
const limit = fc.record({
  rate: fc.double({ min: 0.05, max: 200, noNaN: true }),
  burst: fc.integer({ min: 1, max: 8 }),
});

describe('a configured rate', () => {
  test('is leased again within the longest pause, for any content of the hash, and never exceeded', async () => {
    const { server, createQuota } = await openRedis();
    await fc.assert(
      fc.asyncProperty(content, limit, async (fields, { rate, burst }) => {
        const quota = createQuota({ rate, burst });
        await server.command('HSET', quota.key, ...fields.flat());
        const longestMs = MAX_PAUSE_MS + REPLICA_TIMEOUT_MS + HORIZON_MS + ((burst + 1) * 2000) / rate;
        const first = await waitForPermit(quota, longestMs);
        expect(first).toBeLessThanOrEqual(longestMs);
        for (let step = 1; step <= 20; step++) await quota.ask(first + (step * 700) / rate, { id: 'b', want: 9 });
        expect(quota.excess).toBeLessThanOrEqual(0.01);
        expect(Number(await server.command('MEMORY', 'USAGE', quota.key))).toBeLessThan(10_000);
      }),
      { numRuns: 150 },
    );
  });

  test.each<[string, (key: string) => string[]]>([
    ['a string', (key) => ['SET', key, 'x']],
    ['a list', (key) => ['RPUSH', key, 'x']],
    [
      'a hash of 5 000 replicas',
      (key) => ['HSET', key, ...Array.from({ length: 5_000 }, (_, i) => [`r:${i}`, '1']).flat()],
    ],
  ])('is leased at once where the key holds %s', async (_, command) => {
    const { server, createQuota } = await openRedis();
    const quota = createQuota({ rate: 40, burst: 1 });
    await server.command(...command(quota.key));
    expect(await waitForPermit(quota, 5_000)).toBeLessThanOrEqual(400);
    expect(await server.command('TYPE', quota.key)).toBe('hash');
  });

  test('is leased within seconds after a failover to a server whose clock is an hour behind', async () => {
    const { createQuota } = await openRedis();
    const quota = createQuota({ rate: 40, burst: 5 });
    for (let at = HOUR_MS; at < HOUR_MS + 3_000; at += 500)
      for (const id of ['a', 'b']) await quota.ask(at, { id, want: 16 });
    await quota.ask(HOUR_MS + 3_000, { id: 'b', refusal: { at: START + HOUR_MS + 3_000, statedWaitMs: 2_000 } });
    const paused = await quota.ask(HOUR_MS + 5_100, { id: 'a' });
    await quota.endPause(HOUR_MS + 5_100, { id: 'a', epoch: paused.epoch });
    expect(await waitForPermit(quota, 60_000)).toBeLessThanOrEqual(HORIZON_MS + 6 * 25);
  });
});

describe('replicas of this and of the former version on one hash', () => {
  const step = fc.record({
    waitMs: fc.integer({ min: 0, max: 1_500 }),
    id: fc.constantFrom('a', 'b', 'c'),
    want: fc.integer({ min: 0, max: 16 }),
    isFormer: fc.boolean(),
    isReturning: fc.boolean(),
    isRefused: fc.integer({ min: 0, max: 9 }).map((one) => one === 0),
  });

  test('keep one rate together, change the version back and forth, and go on after every pause', async () => {
    const { createQuota } = await openRedis();
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), limit, async (steps, { rate, burst }) => {
        const quota = createQuota({ rate, burst });
        let at = 0;
        for (const { waitMs, id, want, isFormer, isReturning, isRefused } of steps) {
          at += waitMs;
          const script = isFormer ? FORMER_SCRIPT : EXCHANGE_SCRIPT;
          const refusal = isRefused ? { at: START + at, statedWaitMs: 500 } : undefined;
          const reply = await quota.ask(at, { id, want, knownReplicas: 3, isReturning, refusal }, script);
          if (reply.isFleetPaused && reply.isLeader) await quota.endPause(at, { id, epoch: reply.epoch }, script);
        }
        expect(quota.excess).toBeLessThanOrEqual(0.01);
        const granted = async (script: string): Promise<boolean> => {
          const from = at;
          while (at < from + 60_000) {
            for (const id of ['a', 'b', 'c']) {
              const reply = await quota.ask(at, { id, want: 1, knownReplicas: 3 }, script);
              if (reply.permitTimes.length > 0) return true;
              if (reply.isFleetPaused && reply.isLeader) await quota.endPause(at, { id, epoch: reply.epoch }, script);
            }
            at += 500;
          }
          return false;
        };
        for (const script of [FORMER_SCRIPT, EXCHANGE_SCRIPT, FORMER_SCRIPT]) expect(await granted(script)).toBe(true);
      }),
      { numRuns: 80 },
    );
  });

  test('pass on reports, the limit and the model', async () => {
    const { createQuota } = await openRedis();
    for (const [leading, following] of [
      [FORMER_SCRIPT, EXCHANGE_SCRIPT],
      [EXCHANGE_SCRIPT, FORMER_SCRIPT],
    ] as const) {
      const quota = createQuota({ rate: 40, burst: 1 });
      await quota.ask(0, { id: 'a', fixed: undefined }, leading);
      await quota.ask(10, { id: 'b', fixed: undefined, calls: '10 1 5 0;' }, following);
      const published = { rate: 40, burst: 2, epoch: -1, openAt: 0, model: '{"a":1}', isTentative: true };
      expect(await quota.ask(20, { id: 'a', fixed: undefined, published }, leading)).toMatchObject({
        reports: '10 1 5 0;',
        replicaCount: 2,
      });
      const learned = { rate: 40, burst: 2, model: '{"a":1}', version: 1, isLeader: false };
      expect(await quota.ask(30, { id: 'b', fixed: undefined }, following)).toMatchObject(learned);
      // Its lease has ended.
      expect(await quota.ask(1_500, { id: 'b', fixed: undefined }, following)).toMatchObject({ isLeader: true });
    }
  });
});
