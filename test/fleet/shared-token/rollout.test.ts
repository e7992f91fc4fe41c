/**
 * Replicas of this version beside replicas whose shared tokens have the format `bst1`. The two have records of their own: each version
 * sends one token request, in any order, and neither takes or changes what the other one stored.
 */
import { expect, test } from 'vitest';
import { BST1_CLAIM, BST1_FIELDS, BST1_KEY, BST1_PUBLISH, BST1_WRITTEN_AT } from './bst1-record.ts';
import { HostileFleet, openHostileRedis } from './hostile-fleet.ts';
import type { HostileRedis } from './hostile-fleet.ts';

const LIFETIME_MS = 3_600_000;

/** A replica of the former version: its scripts as they were. */
class FormerReplica {
  readonly #redis: HostileRedis;
  readonly #now: () => number;
  requests = 0;

  constructor(redis: HostileRedis, now: () => number) {
    this.#redis = redis;
    this.#now = now;
  }

  /** Takes the stored token, or requests one and stores it. @returns the stored text */
  async obtain(): Promise<unknown> {
    const [kind, sealed] = (await this.#run(BST1_CLAIM, 'former', 3000, '', 0, 0.1)) as unknown[];
    if (kind === 'found') return sealed;
    if (kind !== 'yours') throw new Error(`the former version got ${String(kind)}`);
    this.requests++;
    const text = `bst1.${'A'.repeat(100)}`;
    await this.#run(BST1_PUBLISH, 'former', text, 'mark', this.#now() + LIFETIME_MS, LIFETIME_MS);
    return text;
  }

  #run(script: string, ...args: (string | number)[]): Promise<unknown> {
    const time = `{${Math.floor(this.#now() / 1000)}, ${(this.#now() % 1000) * 1000}}`;
    const source = script.replace("redis.call('TIME')", time);
    return this.#redis.send(['EVAL', source, '1', BST1_KEY, ...args.map(String)]);
  }
}

async function open(): Promise<{ hostile: HostileFleet; former: FormerReplica }> {
  const redis = await openHostileRedis();
  const hostile = new HostileFleet(redis);
  hostile.redisSkewMs = BST1_WRITTEN_AT;
  return { hostile, former: new FormerReplica(redis, () => hostile.redisNow) };
}

test('each version sends one request, and finds its own token again after the other one ran', async () => {
  const { hostile, former } = await open();
  const stored = await former.obtain();
  await hostile.start(4);
  expect(await former.obtain()).toBe(stored);
  await hostile.start(4);
  await hostile.call();
  expect({ now: hostile.fleet.requests, former: former.requests }).toEqual({ now: 1, former: 1 });
  expect(hostile.refused).toBe(0);
  expect(new Set(hostile.fleet.values())).toEqual(new Set(['token-1']));
});

test('a token of the former version is neither taken nor changed', async () => {
  const { hostile, former } = await open();
  const record = new Map([[BST1_KEY, new Map(BST1_FIELDS)]]);
  await hostile.write(record);
  await hostile.start(2);
  hostile.isAccepted = (value) => value !== 'token-1';
  await hostile.call();
  expect(hostile.fleet.requests).toBe(2);
  expect((await hostile.read()).get(BST1_KEY)).toEqual(record.get(BST1_KEY));
  expect(await former.obtain()).toBe(record.get(BST1_KEY)?.get('value'));
});

test('a text of the former version in the record of this one costs one request and a warning', async () => {
  const { hostile } = await open();
  await hostile.start(1);
  const [[key] = []] = [...(await hostile.read())];
  if (key === undefined) throw new Error('no record');
  await hostile.write(new Map([[key, new Map(BST1_FIELDS)]]));
  await hostile.start(2);
  expect(hostile.fleet.values()).toEqual(['token-1', 'token-2', 'token-2']);
  const warnings = hostile.fleet.replicas.flatMap(({ events }) => events.filter(({ kind }) => kind === 'warning'));
  expect(warnings.length).toBeLessThanOrEqual(2);
});

test('two versions over eight lifetimes send two requests each lifetime', async () => {
  const { hostile, former } = await open();
  await hostile.start(4);
  for (let quarter = 0; quarter < 32; quarter++) {
    await hostile.advance(LIFETIME_MS / 4);
    await former.obtain();
    await hostile.call();
  }
  expect(hostile.refused).toBe(0);
  // The first of four refreshes is due at about three quarters of each lifetime.
  expect(hostile.fleet.requests).toBeLessThanOrEqual(8 / 0.7 + 1);
  expect(former.requests).toBeLessThanOrEqual(8 / 0.7 + 1);
});
