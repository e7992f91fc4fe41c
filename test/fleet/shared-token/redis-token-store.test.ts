/** The contract of SharedTokenStore, for the store over a real Redis and for the one in memory that other tests use. */
import { describe, expect, test } from 'vitest';
import type { RedisScriptClient } from '../../../src/fleet/redis/script-client.ts';
import { defineScript } from '../../../src/fleet/redis/script.ts';
import { createRedisTokenStore } from '../../../src/fleet/shared-token/redis-token-store.ts';
import type {
  ClaimResult,
  ClaimRequest,
  PublishRequest,
  SharedTokenStore,
} from '../../../src/token/store/shared-token-store.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startRedis } from '../../support/redis.ts';
import { MemoryTokenStore } from '../../token/store/memory-token-store.ts';
import { openClient } from '../harness.ts';

/** A store and its clock. */
interface StoreUnderTest {
  readonly store: SharedTokenStore;
  advance(ms: number): Promise<void>;
}

async function createRedisStore(): Promise<StoreUnderTest> {
  const redis = await startRedis();
  const { client } = openClient({ url: redis.url });
  // The scripts get a virtual time instead of the server's. Keys still expire by the server's clock.
  let nowMs = Date.now();
  const runWithLongerTimeout: RedisScriptClient['runWithLongerTimeout'] = ({ source }, key, args) => {
    const time = `{${Math.floor(nowMs / 1000)}, ${(nowMs % 1000) * 1000}}`;
    return client.runWithLongerTimeout(defineScript(source.replace("redis.call('TIME')", time)), key, args);
  };
  const advance = (ms: number): Promise<void> => {
    nowMs += ms;
    return Promise.resolve();
  };
  return {
    store: createRedisTokenStore({ whenReady: () => client.whenReady(), runWithLongerTimeout }, 'test'),
    advance,
  };
}

function createMemoryStore(): Promise<StoreUnderTest> {
  const clock = new ManualClock();
  return Promise.resolve({ store: new MemoryTokenStore(clock), advance: (ms) => clock.advance(ms) });
}

const CLAIM: ClaimRequest = { owner: 'a', leaseMs: 5000, declined: undefined, isUseless: false };

const kindOf = async (claim: Promise<ClaimResult | undefined>): Promise<string | undefined> => (await claim)?.kind;

/** Lets `owner` claim the lease and publish a token. */
async function publishToken(
  store: SharedTokenStore,
  owner: string,
  given: Partial<PublishRequest> & { readonly lifetimeMs?: number } = {},
): Promise<boolean | undefined> {
  const claim = await store.claim('n', { ...CLAIM, owner, declined: 'an older text' });
  if (claim?.kind !== 'yours') throw new Error(`${owner} got ${String(claim?.kind)} instead of the lease`);
  const { lifetimeMs = 60_000, ...token } = given;
  return store.publish('n', { owner, sealed: `by ${owner}`, expiresAt: claim.storeNow + lifetimeMs, ...token });
}

describe.each([
  ['over Redis', createRedisStore],
  ['in memory', createMemoryStore],
] as const)('a store %s', (_, open) => {
  async function ready(): Promise<StoreUnderTest> {
    const opened = await open();
    expect(await opened.store.whenReady()).toBe(true);
    return opened;
  }

  test('gives the lease to one replica at a time', async () => {
    const { store } = await ready();
    expect(await store.claim('n', CLAIM)).toEqual({ kind: 'yours', storeNow: expect.any(Number) as number });
    expect(await store.claim('n', { ...CLAIM, owner: 'b' })).toEqual({ kind: 'taken', owner: 'a' });
    expect(await kindOf(store.claim('another name', { ...CLAIM, owner: 'b' }))).toBe('yours');
  });

  test('returns a published token to all, with its own time', async () => {
    const { store, advance } = await ready();
    const claim = await store.claim('n', CLAIM);
    const publishedAt = claim?.kind === 'yours' ? claim.storeNow : 0;
    expect(await publishToken(store, 'a')).toBe(true);
    await advance(20);
    for (const owner of ['a', 'b']) {
      const found = await store.claim('n', { ...CLAIM, owner });
      expect(found).toEqual({ kind: 'found', sealed: 'by a', storeNow: publishedAt + 20 });
    }
  });

  test('does not return a declined token, and removes it only if it is useless', async () => {
    const { store } = await ready();
    await publishToken(store, 'a');
    const replacing = { ...CLAIM, owner: 'b', declined: 'by a' };
    expect(await kindOf(store.claim('n', replacing))).toBe('yours');
    expect(await kindOf(store.claim('n', { ...CLAIM, owner: 'c' }))).toBe('found');
    expect(await kindOf(store.claim('n', { ...replacing, isUseless: true }))).toBe('yours');
    expect(await kindOf(store.claim('n', { ...CLAIM, owner: 'c' }))).toBe('taken');
  });

  test('removes exactly the useless token', async () => {
    const { store } = await ready();
    await publishToken(store, 'a');
    const late = { ...CLAIM, owner: 'b', declined: 'an older one', isUseless: true };
    expect(await kindOf(store.claim('n', late))).toBe('found');
    expect(await kindOf(store.claim('n', CLAIM))).toBe('found');
  });

  test('gives the lease to another replica only after it has expired', async () => {
    const { store, advance } = await ready();
    const short = { ...CLAIM, leaseMs: 200 };
    await store.claim('n', short);
    await advance(120);
    await store.claim('n', short);
    await advance(120);
    expect(await kindOf(store.claim('n', { ...short, owner: 'b' }))).toBe('taken');
    await advance(100);
    expect(await kindOf(store.claim('n', { ...short, owner: 'b' }))).toBe('yours');
    expect(await kindOf(store.claim('n', short))).toBe('taken');
  });

  test('refuses publications of a replica whose lease went to another', async () => {
    const { store, advance } = await ready();
    await store.claim('n', { ...CLAIM, leaseMs: 1 });
    await advance(10);
    await store.claim('n', { ...CLAIM, owner: 'b' });
    const expiresAt = Number.MAX_SAFE_INTEGER;
    expect(await store.publish('n', { owner: 'a', sealed: 'late', expiresAt })).toBe(false);
    expect(await store.publishFailure('n', 'a', 'late', 1000)).toBe(false);
    expect(await store.releaseLease('n', 'a')).toBe(false);
    expect(await kindOf(store.claim('n', { ...CLAIM, owner: 'c' }))).toBe('taken');
  });

  test('accepts a token whose lease has expired and went to no other replica', async () => {
    const { store, advance } = await ready();
    const claim = await store.claim('n', { ...CLAIM, leaseMs: 1 });
    await advance(10);
    const expiresAt = (claim?.kind === 'yours' ? claim.storeNow : 0) + 60_000;
    expect(await store.publish('n', { owner: 'a', sealed: 's', expiresAt })).toBe(true);
    expect(await kindOf(store.claim('n', { ...CLAIM, owner: 'c' }))).toBe('found');
  });

  test('refuses an expired token', async () => {
    const { store } = await ready();
    expect(await publishToken(store, 'a', { expiresAt: 1 })).toBe(false);
  });

  test('gives a released lease to the next claimant at once', async () => {
    const { store } = await ready();
    await store.claim('n', CLAIM);
    expect(await store.releaseLease('n', 'a')).toBe(true);
    expect(await kindOf(store.claim('n', { ...CLAIM, owner: 'b' }))).toBe('yours');
  });

  test('holds back the other replicas after a failure, not its owner', async () => {
    const { store, advance } = await ready();
    await store.claim('n', CLAIM);
    expect(await store.publishFailure('n', 'a', 'sealed failure', 150)).toBe(true);
    expect(await kindOf(store.claim('n', CLAIM))).toBe('yours');
    await store.publishFailure('n', 'a', 'sealed failure', 150);
    const claim = await store.claim('n', { ...CLAIM, owner: 'b' });
    expect(claim).toMatchObject({ kind: 'failed', sealed: 'sealed failure' });
    expect(claim).toHaveProperty('leftMs', expect.closeTo(140, -2));
    await advance(160);
    expect(await kindOf(store.claim('n', { ...CLAIM, owner: 'b' }))).toBe('yours');
  });

  test('lets a replica that was held back request before the owner of the failure does again', async () => {
    const { store, advance } = await ready();
    await store.claim('n', CLAIM);
    await store.publishFailure('n', 'a', 'sealed failure', 150);
    await store.claim('n', { ...CLAIM, owner: 'b' });
    await advance(160);
    expect(await store.claim('n', CLAIM)).toMatchObject({ kind: 'failed' });
    expect(await kindOf(store.claim('n', { ...CLAIM, owner: 'b' }))).toBe('yours');
    await store.releaseLease('n', 'b');
    await advance(160);
    expect(await kindOf(store.claim('n', CLAIM))).toBe('yours');
  });

  test('removes a failure when a token is published', async () => {
    const { store } = await ready();
    await store.claim('n', CLAIM);
    await store.publishFailure('n', 'a', 'sealed failure', 60_000);
    expect(await publishToken(store, 'a')).toBe(true);
    expect(await kindOf(store.claim('n', { ...CLAIM, owner: 'b', declined: 'by a' }))).toBe('yours');
  });

  test('acts as if a declined failure were not there, and removes it if it is useless', async () => {
    const { store } = await ready();
    await store.claim('n', CLAIM);
    await store.publishFailure('n', 'a', 'sealed failure', 60_000);
    const other = { ...CLAIM, owner: 'b' };
    expect(await kindOf(store.claim('n', { ...other, declined: 'something else', isUseless: true }))).toBe('failed');
    expect(await kindOf(store.claim('n', { ...other, declined: 'sealed failure' }))).toBe('yours');
    await store.releaseLease('n', 'b');
    expect(await kindOf(store.claim('n', other))).toBe('failed');
    expect(await kindOf(store.claim('n', { ...other, declined: 'sealed failure', isUseless: true }))).toBe('yours');
    await store.releaseLease('n', 'b');
    expect(await kindOf(store.claim('n', { ...CLAIM, owner: 'c' }))).toBe('yours');
  });
});

describe('the store in Redis', () => {
  test('uses one key under the prefix, which expires a minute after its contents', async () => {
    const redis = await startRedis();
    const { client } = openClient({ url: redis.url });
    await client.whenReady();
    const store = createRedisTokenStore(client, 'our:prefix');
    await publishToken(store, 'a', { lifetimeMs: 30_000 });
    expect(await redis.command('KEYS', '*')).toEqual(['our:prefix:token:n']);
    const left = (await redis.command('PTTL', 'our:prefix:token:n')) as number;
    expect(left).toBeGreaterThan(60_000);
    expect(left).toBeLessThanOrEqual(90_000);
  });

  test('uses the server’s time', async () => {
    const redis = await startRedis();
    const { client } = openClient({ url: redis.url });
    await client.whenReady();
    const before = Date.now();
    const claim = await createRedisTokenStore(client, 'test').claim('n', CLAIM);
    const storeNow = claim?.kind === 'yours' ? claim.storeNow : 0;
    expect(storeNow).toBeGreaterThanOrEqual(before - 1);
    expect(storeNow).toBeLessThanOrEqual(Date.now() + 1);
  });

  test('needs no more rights than the documentation lists', async () => {
    const rights = '~bearer-sidecar:* +ping +select +eval +evalsha +time +hmget +hget +hset +hdel +pexpireat';
    const user = ['--user', 'sidecar', 'on', '>sesame-2', ...rights.split(' ')];
    const redis = await startRedis({ args: user, url: (port) => `redis://sidecar:sesame-2@127.0.0.1:${port}/2` });
    const { client, connectionEvents } = openClient({ url: redis.url });
    await client.whenReady();
    const store = createRedisTokenStore(client, 'bearer-sidecar');
    expect(await publishToken(store, 'a')).toBe(true);
    expect(await kindOf(store.claim('n', { ...CLAIM, declined: 'by a', isUseless: true }))).toBe('yours');
    expect(await store.publishFailure('n', 'a', 'sealed failure', 1000)).toBe(true);
    expect(await kindOf(store.claim('n', { ...CLAIM, owner: 'b' }))).toBe('failed');
    await store.claim('another name', CLAIM);
    expect(await store.releaseLease('another name', 'a')).toBe(true);
    expect(await createRedisTokenStore(client, 'elsewhere').claim('n', CLAIM)).toBeUndefined();
    expect(connectionEvents()).toEqual(['joined', expect.stringContaining('does not permit')]);
  });

  test.each<[string, string[]]>([
    ['a text', ['value', 'x'.repeat(65_537)]],
    ['a failure', ['failure', 'x'.repeat(65_537), 'failedBy', 'b', 'failedUntil', '9e14']],
    ['an owner', ['owner', 'x'.repeat(65), 'leaseUntil', '9e14']],
    ['a lease', ['owner', 'b', 'leaseUntil', '999999999999999']],
    ['a lease that is no number', ['owner', 'b', 'leaseUntil', 'nan']],
    ['an instant', ['yieldUntil', '1e300', 'expiresAt', 'inf']],
  ])('treats %s beyond what the scripts write as absent, and loses it with the next token', async (_, fields) => {
    const redis = await startRedis();
    const { client } = openClient({ url: redis.url });
    await client.whenReady();
    const store = createRedisTokenStore(client, 'test');
    await redis.command('HSET', 'test:token:n', ...fields);
    expect(await publishToken(store, 'a')).toBe(true);
    expect(await redis.command('HKEYS', 'test:token:n')).toEqual(expect.arrayContaining(['value', 'expiresAt']));
    expect((await redis.dump()).length).toBeLessThan(200);
    expect(await store.claim('n', { ...CLAIM, owner: 'c' })).toMatchObject({ kind: 'found', sealed: 'by a' });
  });

  test('leaves a key of another application unchanged', async () => {
    const redis = await startRedis();
    const { client, connectionEvents } = openClient({ url: redis.url });
    await client.whenReady();
    await redis.command('SET', 'test:token:n', 'theirs');
    expect(await createRedisTokenStore(client, 'test').claim('n', CLAIM)).toBeUndefined();
    expect(await redis.command('GET', 'test:token:n')).toBe('theirs');
    expect(connectionEvents()).toEqual(['joined', expect.stringMatching(/holds something else .* \(WRONGTYPE\)/)]);
  });
});
