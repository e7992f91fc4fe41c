/** The rules of the board: of the one over a real Redis, and of the one that other tests use in its place. */
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
import { MemoryBoard } from '../../token/store/memory-board.ts';
import { openClient } from '../harness.ts';

/** A board and its time. */
interface StoreUnderTest {
  readonly board: SharedTokenStore;
  pass(ms: number): Promise<void>;
}

async function createRedisStore(): Promise<StoreUnderTest> {
  const redis = await startRedis();
  const { client } = openClient({ url: redis.url });
  // The server's own clock waits for nobody. Keys end by it all the same, a minute after what they hold.
  let nowMs = Date.now();
  const runPatiently: RedisScriptClient['runWithLongerTimeout'] = ({ source }, key, args) => {
    const time = `{${Math.floor(nowMs / 1000)}, ${(nowMs % 1000) * 1000}}`;
    return client.runWithLongerTimeout(defineScript(source.replace("redis.call('TIME')", time)), key, args);
  };
  const pass = (ms: number): Promise<void> => {
    nowMs += ms;
    return Promise.resolve();
  };
  return {
    board: createRedisTokenStore({ whenReady: () => client.whenReady(), runWithLongerTimeout: runPatiently }, 'test'),
    pass,
  };
}

function createMemoryStore(): Promise<StoreUnderTest> {
  const clock = new ManualClock();
  return Promise.resolve({ board: new MemoryBoard(clock), pass: (ms) => clock.advance(ms) });
}

const CLAIM: ClaimRequest = {
  owner: 'a',
  leaseMs: 5000,
  excludedMark: undefined,
  isRefused: false,
  minRemainingShare: 0.1,
};

const kindOf = async (claim: Promise<ClaimResult | undefined>): Promise<string | undefined> => (await claim)?.kind;

/** Has `owner` claim and post a token. */
async function publishToken(
  board: SharedTokenStore,
  owner: string,
  given: Partial<PublishRequest> = {},
): Promise<boolean | undefined> {
  const claim = await board.claim('n', { ...CLAIM, owner, excludedMark: 'old mark', isRefused: true });
  if (claim?.kind !== 'yours') throw new Error(`not for ${owner} to ask, but ${String(claim?.kind)}`);
  const { storeNow } = claim;
  const posting = { owner, sealed: `by ${owner}`, mark: `mark ${owner}`, lifetimeMs: 60_000, ...given };
  return board.publish('n', { ...posting, expiresAt: given.expiresAt ?? storeNow + posting.lifetimeMs });
}

describe.each([
  ['over Redis', createRedisStore],
  ['in memory', createMemoryStore],
] as const)('a board %s', (_, open) => {
  async function ready(): Promise<StoreUnderTest> {
    const setting = await open();
    expect(await setting.board.whenReady()).toBe(true);
    return setting;
  }

  test('lets one ask, and the others wait', async () => {
    const { board } = await ready();
    expect(await board.claim('n', CLAIM)).toEqual({ kind: 'yours', storeNow: expect.any(Number) as number });
    expect(await board.claim('n', { ...CLAIM, owner: 'b' })).toEqual({ kind: 'taken', owner: 'a' });
    expect(await kindOf(board.claim('another name', { ...CLAIM, owner: 'b' }))).toBe('yours');
  });

  test('hands a posted token to all, with what is left of its life', async () => {
    const { board, pass } = await ready();
    expect(await publishToken(board, 'a')).toBe(true);
    await pass(20);
    for (const owner of ['a', 'b']) {
      const claim = await board.claim('n', { ...CLAIM, owner });
      expect(claim).toMatchObject({ kind: 'found', sealed: 'by a' });
      expect(claim).toHaveProperty('leftMs', expect.closeTo(59_800, -3));
    }
  });

  test('does not hand out the token that is to be replaced, and keeps it unless it was refused', async () => {
    const { board } = await ready();
    await publishToken(board, 'a');
    const replacing = { ...CLAIM, owner: 'b', excludedMark: 'mark a' };
    expect(await kindOf(board.claim('n', replacing))).toBe('yours');
    expect(await kindOf(board.claim('n', { ...CLAIM, owner: 'c' }))).toBe('found');
    expect(await kindOf(board.claim('n', { ...replacing, isRefused: true }))).toBe('yours');
    expect(await kindOf(board.claim('n', { ...CLAIM, owner: 'c' }))).toBe('taken');
  });

  test('takes off exactly the token that was refused', async () => {
    const { board } = await ready();
    await publishToken(board, 'a');
    const late = { ...CLAIM, owner: 'b', excludedMark: 'mark of an older one', isRefused: true };
    expect(await kindOf(board.claim('n', late))).toBe('found');
  });

  test('does not hand out what has too little of its life left', async () => {
    const { board, pass } = await ready();
    await publishToken(board, 'a', { lifetimeMs: 200 });
    expect(await kindOf(board.claim('n', { ...CLAIM, owner: 'b', minRemainingShare: 0.5 }))).toBe('found');
    await pass(120);
    expect(await kindOf(board.claim('n', { ...CLAIM, owner: 'b', minRemainingShare: 0.5 }))).toBe('yours');
  });

  test('gives the lease on when it ends, and as long as it is kept up does not', async () => {
    const { board, pass } = await ready();
    const short = { ...CLAIM, leaseMs: 200 };
    await board.claim('n', short);
    await pass(120);
    await board.claim('n', short);
    await pass(120);
    expect(await kindOf(board.claim('n', { ...short, owner: 'b' }))).toBe('taken');
    await pass(100);
    expect(await kindOf(board.claim('n', { ...short, owner: 'b' }))).toBe('yours');
    expect(await kindOf(board.claim('n', short))).toBe('taken');
  });

  test('takes nothing from one whose lease has gone to another', async () => {
    const { board, pass } = await ready();
    await board.claim('n', { ...CLAIM, leaseMs: 1 });
    await pass(10);
    await board.claim('n', { ...CLAIM, owner: 'b' });
    const posting = { owner: 'a', sealed: 'late', mark: 'm', expiresAt: Number.MAX_SAFE_INTEGER, lifetimeMs: 1000 };
    expect(await board.publish('n', posting)).toBe(false);
    expect(await board.publishFailure('n', 'a', 'late', 1000)).toBe(false);
    expect(await board.releaseLease('n', 'a')).toBe(false);
    expect(await kindOf(board.claim('n', { ...CLAIM, owner: 'c' }))).toBe('taken');
  });

  test('takes a token whose lease has ended and went to nobody', async () => {
    const { board, pass } = await ready();
    const claim = await board.claim('n', { ...CLAIM, leaseMs: 1 });
    await pass(10);
    const expiresAt = (claim?.kind === 'yours' ? claim.storeNow : 0) + 60_000;
    expect(await board.publish('n', { owner: 'a', sealed: 's', mark: 'm', expiresAt, lifetimeMs: 60_000 })).toBe(true);
    expect(await kindOf(board.claim('n', { ...CLAIM, owner: 'c' }))).toBe('found');
  });

  test('takes no token that has ended', async () => {
    const { board } = await ready();
    expect(await publishToken(board, 'a', { expiresAt: 1 })).toBe(false);
  });

  test('gives the lease on at once when it is given back', async () => {
    const { board } = await ready();
    await board.claim('n', CLAIM);
    expect(await board.releaseLease('n', 'a')).toBe(true);
    expect(await kindOf(board.claim('n', { ...CLAIM, owner: 'b' }))).toBe('yours');
  });

  test('holds the others back after a failure, not the one who failed', async () => {
    const { board, pass } = await ready();
    await board.claim('n', CLAIM);
    expect(await board.publishFailure('n', 'a', 'sealed failure', 150)).toBe(true);
    expect(await kindOf(board.claim('n', CLAIM))).toBe('yours');
    await board.publishFailure('n', 'a', 'sealed failure', 150);
    const told = await board.claim('n', { ...CLAIM, owner: 'b' });
    expect(told).toMatchObject({ kind: 'failed', sealed: 'sealed failure' });
    expect(told).toHaveProperty('leftMs', expect.closeTo(140, -2));
    await pass(160);
    expect(await kindOf(board.claim('n', { ...CLAIM, owner: 'b' }))).toBe('yours');
  });

  test('lets another, who was held back, ask before the one who failed does so again', async () => {
    const { board, pass } = await ready();
    await board.claim('n', CLAIM);
    await board.publishFailure('n', 'a', 'sealed failure', 150);
    await board.claim('n', { ...CLAIM, owner: 'b' });
    await pass(160);
    expect(await board.claim('n', CLAIM)).toMatchObject({ kind: 'failed' });
    expect(await kindOf(board.claim('n', { ...CLAIM, owner: 'b' }))).toBe('yours');
    await board.releaseLease('n', 'b');
    await pass(160);
    expect(await kindOf(board.claim('n', CLAIM))).toBe('yours');
  });

  test('forgets a failure with the token that follows it', async () => {
    const { board } = await ready();
    await board.claim('n', CLAIM);
    await board.publishFailure('n', 'a', 'sealed failure', 60_000);
    expect(await publishToken(board, 'a')).toBe(true);
    const replacing = { ...CLAIM, owner: 'b', excludedMark: 'mark a' };
    expect(await kindOf(board.claim('n', replacing))).toBe('yours');
  });

  test('discards exactly the text that could not be read', async () => {
    const { board } = await ready();
    await publishToken(board, 'a');
    expect(await board.discardUnreadable('n', 'something else')).toBe(false);
    expect(await board.discardUnreadable('n', 'by a')).toBe(true);
    expect(await kindOf(board.claim('n', CLAIM))).toBe('yours');
    await board.publishFailure('n', 'a', 'sealed failure', 60_000);
    expect(await board.discardUnreadable('n', 'sealed failure')).toBe(true);
    expect(await kindOf(board.claim('n', { ...CLAIM, owner: 'b' }))).toBe('yours');
  });
});

describe('in Redis', () => {
  test('one key holds it all, under the prefix, and goes when nothing in it counts', async () => {
    const redis = await startRedis();
    const { client } = openClient({ url: redis.url });
    await client.whenReady();
    const board = createRedisTokenStore(client, 'our:prefix');
    await publishToken(board, 'a', { lifetimeMs: 30_000 });
    expect(await redis.command('KEYS', '*')).toEqual(['our:prefix:token:n']);
    const left = (await redis.command('PTTL', 'our:prefix:token:n')) as number;
    // More than the minute that is added to the end of what it holds.
    expect(left).toBeGreaterThan(60_000);
    expect(left).toBeLessThanOrEqual(90_000);
  });

  test('time is the server’s', async () => {
    const redis = await startRedis();
    const { client } = openClient({ url: redis.url });
    await client.whenReady();
    const before = Date.now();
    const claim = await createRedisTokenStore(client, 'test').claim('n', CLAIM);
    const boardNow = claim?.kind === 'yours' ? claim.storeNow : 0;
    expect(boardNow).toBeGreaterThanOrEqual(before - 1);
    expect(boardNow).toBeLessThanOrEqual(Date.now() + 1);
  });

  test('a user needs no more rights than the documentation lists', async () => {
    const rights = '~bearer-sidecar:* +ping +select +eval +evalsha +time +hmget +hget +hset +hdel +pexpireat';
    const user = ['--user', 'sidecar', 'on', '>sesame-2', ...rights.split(' ')];
    const redis = await startRedis({ args: user, url: (port) => `redis://sidecar:sesame-2@127.0.0.1:${port}/2` });
    const { client, connectionEvents } = openClient({ url: redis.url });
    await client.whenReady();
    const board = createRedisTokenStore(client, 'bearer-sidecar');
    expect(await publishToken(board, 'a')).toBe(true);
    expect(await board.discardUnreadable('n', 'by a')).toBe(true);
    await board.claim('n', CLAIM);
    expect(await board.publishFailure('n', 'a', 'sealed failure', 1000)).toBe(true);
    expect(await kindOf(board.claim('n', { ...CLAIM, owner: 'b' }))).toBe('failed');
    await board.claim('another name', CLAIM);
    expect(await board.releaseLease('another name', 'a')).toBe(true);
    expect(await createRedisTokenStore(client, 'elsewhere').claim('n', CLAIM)).toBeUndefined();
    expect(connectionEvents()).toEqual(['joined', expect.stringContaining('does not permit')]);
  });

  test('what somebody else keeps under a name of ours is left as it is', async () => {
    const redis = await startRedis();
    const { client, connectionEvents } = openClient({ url: redis.url });
    await client.whenReady();
    await redis.command('SET', 'test:token:n', 'theirs');
    expect(await createRedisTokenStore(client, 'test').claim('n', CLAIM)).toBeUndefined();
    expect(await redis.command('GET', 'test:token:n')).toBe('theirs');
    expect(connectionEvents()).toEqual(['joined', expect.stringMatching(/holds something else .* \(WRONGTYPE\)/)]);
  });
});
