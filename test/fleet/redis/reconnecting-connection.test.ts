/** When a connection is opened again, in virtual time. */
import { describe, expect, test } from 'vitest';
import { RedisFault } from '../../../src/fleet/redis/redis-fault.ts';
import type { RedisConnection } from '../../../src/fleet/redis/redis-connection.ts';
import { ReconnectingConnection } from '../../../src/fleet/redis/reconnecting-connection.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const REFUSED = new RedisFault('refused the connection (ECONNREFUSED)');

/** A connection that is lost on `break()`. */
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
  const opened: FakeConnection[] = [];
  const reports: string[] = [];
  const state = { isAway: false };
  const connection = new ReconnectingConnection({
    open: () => {
      openedAt.push(clock.now());
      if (state.isAway) return Promise.reject(REFUSED);
      const fake = new FakeConnection();
      opened.push(fake);
      return Promise.resolve(fake);
    },
    clock,
    random: () => random,
    onConnected: () => reports.push('up'),
    onDisconnected: ({ message }) => reports.push(message),
  });
  const gaps = () => openedAt.slice(1).map((at, index) => at - (openedAt[index] ?? 0));
  return { clock, connection, opened, reports, state, gaps };
}

describe('a reconnecting connection', () => {
  test('is opened once, though start is called twice', async () => {
    const { clock, connection, opened, reports } = create();
    connection.start();
    connection.start();
    await clock.advance(10_000);
    expect(connection.current).toBe(opened[0]);
    expect([opened.length, reports]).toEqual([1, ['up']]);
  });

  test('is opened with growing backoff of at most 2 s while attempts fail', async () => {
    for (const [random, factor] of [
      [0, 0.5],
      [0.999_999, 1],
    ] as const) {
      const { clock, connection, state, gaps } = create(random);
      state.isAway = true;
      connection.start();
      await clock.advance(10_000);
      const expected = [200, 400, 800, 1600, 2000, 2000].map((ms) => ms * factor);
      expect(gaps().slice(0, 6)).toEqual(expected.map((ms) => expect.closeTo(ms, 0) as number));
    }
  });

  test('is opened again soon after a loss, which is reported once', async () => {
    const { clock, connection, opened, reports } = create();
    connection.start();
    await clock.advance(5000);
    opened[0]?.break();
    await clock.advance(0);
    expect(connection.current).toBeUndefined();
    await clock.advance(200);
    expect(connection.current).toBe(opened[1]);
    expect(reports).toEqual(['up', 'cut the connection (ECONNRESET)', 'up']);
  });

  test('that is dropped right after it opened, again and again, counts as a failed attempt', async () => {
    const { clock, connection, opened, gaps } = create(0.999_999);
    connection.start();
    for (let count = 1; count <= 6; count++) {
      while (opened.length < count) await clock.advance(50);
      await clock.advance(0);
      const fake = opened[count - 1];
      if (fake) connection.drop(fake, REFUSED);
      expect(fake?.isDestroyed).toBe(true);
    }
    expect(gaps()[4]).toBeGreaterThanOrEqual(1900);
  });

  test('is opened with the first backoff again after it lasted', async () => {
    const { clock, connection, opened, state, gaps } = create(0.999_999);
    state.isAway = true;
    connection.start();
    await clock.advance(8000);
    state.isAway = false;
    await clock.advance(5000);
    const attempts = gaps().length;
    opened[0]?.break();
    await clock.advance(150);
    expect(gaps()).toHaveLength(attempts + 1);
  });

  test('ignores the drop of a connection that was replaced', async () => {
    const { clock, connection, opened, reports } = create();
    connection.start();
    await clock.advance(0);
    const [first] = opened;
    first?.break();
    await clock.advance(500);
    if (first) connection.drop(first, REFUSED);
    expect(connection.current).toBe(opened[1]);
    expect(reports).toEqual(['up', 'cut the connection (ECONNRESET)', 'up']);
  });

  test('stays closed when it is closed while being opened', async () => {
    const { clock, connection, opened, reports } = create();
    connection.start();
    connection.close();
    await clock.advance(10_000);
    expect([connection.current, reports, clock.pendingTimers]).toEqual([undefined, [], 0]);
    expect(opened.map(({ isDestroyed }) => isDestroyed)).toEqual([true]);
  });
});
