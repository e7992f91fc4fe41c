/** When a connection is opened anew, in virtual time. */
import { describe, expect, test } from 'vitest';
import { RedisFault } from '../../../src/fleet/redis/redis-fault.ts';
import type { RedisConnection } from '../../../src/fleet/redis/redis-connection.ts';
import { ReconnectingConnection } from '../../../src/fleet/redis/reconnecting-connection.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const REFUSED = new RedisFault('refused the connection (ECONNREFUSED)');

/** A connection that ends when it is told to. */
class FakeConnection implements RedisConnection {
  readonly #end = Promise.withResolvers<RedisFault>();
  readonly ended = this.#end.promise;
  isDestroyed = false;

  send(): Promise<unknown> {
    return Promise.resolve([]);
  }

  subscribe(): Promise<void> {
    return Promise.resolve();
  }

  destroy(): void {
    this.isDestroyed = true;
  }

  break(): void {
    this.#end.resolve(new RedisFault('cut the connection (ECONNRESET)'));
  }
}

function create(random = 0.5) {
  const clock = new ManualClock();
  const openedAt: number[] = [];
  const links: FakeConnection[] = [];
  const told: string[] = [];
  const state = { isAway: false };
  const standing = new ReconnectingConnection({
    open: () => {
      openedAt.push(clock.now());
      if (state.isAway) return Promise.reject(REFUSED);
      const link = new FakeConnection();
      links.push(link);
      return Promise.resolve(link);
    },
    clock,
    random: () => random,
    onConnected: () => told.push('up'),
    onDisconnected: ({ message }) => told.push(message),
  });
  const gaps = () => openedAt.slice(1).map((at, index) => at - (openedAt[index] ?? 0));
  return { clock, standing, links, told, state, gaps };
}

describe('a standing connection', () => {
  test('is opened once, however often it is begun', async () => {
    const { clock, standing, links, told } = create();
    standing.start();
    standing.start();
    await clock.advance(10_000);
    expect(standing.current).toBe(links[0]);
    expect([links.length, told]).toEqual([1, ['up']]);
  });

  test('that cannot be had is tried with growing pauses, of two seconds at most', async () => {
    for (const [random, factor] of [
      [0, 0.5],
      [0.999_999, 1],
    ] as const) {
      const { clock, standing, state, gaps } = create(random);
      state.isAway = true;
      standing.start();
      await clock.advance(10_000);
      const expected = [200, 400, 800, 1600, 2000, 2000].map((ms) => ms * factor);
      expect(gaps().slice(0, 6)).toEqual(expected.map((ms) => expect.closeTo(ms, 0) as number));
    }
  });

  test('that ends is opened anew soon, and each end is told once', async () => {
    const { clock, standing, links, told } = create();
    standing.start();
    await clock.advance(5000);
    links[0]?.break();
    await clock.advance(0);
    expect(standing.current).toBeUndefined();
    await clock.advance(200);
    expect(standing.current).toBe(links[1]);
    expect(told).toEqual(['up', 'cut the connection (ECONNRESET)', 'up']);
  });

  test('that is dropped as soon as it is up, time and again, is no better than one that cannot be had', async () => {
    const { clock, standing, links, gaps } = create(0.999_999);
    standing.start();
    for (let count = 1; count <= 6; count++) {
      while (links.length < count) await clock.advance(50);
      await clock.advance(0);
      const link = links[count - 1];
      if (link) standing.drop(link, REFUSED);
      expect(link?.isDestroyed).toBe(true);
    }
    expect(gaps()[4]).toBeGreaterThanOrEqual(1900);
  });

  test('is tried with short pauses again after it has held', async () => {
    const { clock, standing, links, state, gaps } = create(0.999_999);
    state.isAway = true;
    standing.start();
    await clock.advance(8000);
    state.isAway = false;
    await clock.advance(5000);
    const tries = gaps().length;
    links[0]?.break();
    await clock.advance(150);
    expect(gaps()).toHaveLength(tries + 1);
  });

  test('that is dropped late is not dropped twice', async () => {
    const { clock, standing, links, told } = create();
    standing.start();
    await clock.advance(0);
    const [first] = links;
    first?.break();
    await clock.advance(500);
    if (first) standing.drop(first, REFUSED);
    expect(standing.current).toBe(links[1]);
    expect(told).toEqual(['up', 'cut the connection (ECONNRESET)', 'up']);
  });

  test('that is closed stays so, also if it was being opened', async () => {
    const { clock, standing, links, told } = create();
    standing.start();
    standing.close();
    await clock.advance(10_000);
    expect([standing.current, told, clock.pendingTimers]).toEqual([undefined, [], 0]);
    expect(links.map(({ isDestroyed }) => isDestroyed)).toEqual([true]);
  });
});
