/** Published messages are received; a server that refuses SUBSCRIBE causes one warning. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/platform/clock.ts';
import { Subscriber } from '../../../src/fleet/redis/subscriber.ts';
import { RedisFault } from '../../../src/fleet/redis/redis-fault.ts';
import { openRedisConnection } from '../../../src/fleet/redis/redis-connection.ts';
import type { RedisConnection } from '../../../src/fleet/redis/redis-connection.ts';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startRedis } from '../../support/redis.ts';
import { waitUntil } from '../../support/until.ts';

const WARNING = {
  kind: 'warning',
  message: expect.stringMatching(/^Redis refuses SUBSCRIBE \(NOPERM\): /) as string,
};

function createSubscriber(open: () => Promise<RedisConnection>, clock = new ManualClock()) {
  const events: SidecarEvent[] = [];
  const received: string[] = [];
  const subscriber = new Subscriber({ open, clock, random: () => 0, observe: (event) => events.push(event) });
  onTestFinished(() => subscriber.close());
  subscriber.subscribe('bearer-sidecar:a', (message) => received.push(message));
  subscriber.subscribe('bearer-sidecar:b', (message) => received.push(message));
  subscriber.start();
  return { events, received, clock };
}

/** Connections on which every SUBSCRIBE fails with `fault`; `ends` closes them. */
function openRefusingServer(fault: RedisFault) {
  const ends: (() => void)[] = [];
  const open = (): Promise<RedisConnection> => {
    const { promise: ended, resolve } = Promise.withResolvers<RedisFault>();
    ends.push(() => resolve(new RedisFault('cut the connection (ECONNRESET)')));
    return Promise.resolve({
      send: () => Promise.resolve([]),
      subscribe: () => Promise.reject(fault),
      ended,
      destroy: () => undefined,
    });
  };
  return { open, ends };
}

describe('a refused SUBSCRIBE', () => {
  test('causes one warning for all channels and connections', async () => {
    const { open, ends } = openRefusingServer(new RedisFault('does not permit it (NOPERM)', { replyCode: 'NOPERM' }));
    const { events, clock } = createSubscriber(open);
    await clock.advance(0);
    expect(events).toEqual([WARNING]);
    ends[0]?.();
    await clock.advance(10_000);
    expect(ends).toHaveLength(2);
    expect(events).toEqual([WARNING]);
  });

  test('causes no warning when the connection was lost', async () => {
    const { open } = openRefusingServer(new RedisFault('closed the connection'));
    const { events, clock } = createSubscriber(open);
    await clock.advance(0);
    expect(events).toEqual([]);
  });

  test('of a real Redis causes the warning', async () => {
    const rights = ['~bearer-sidecar:*', '+@all', '-subscribe', '&bearer-sidecar:*'];
    const redis = await startRedis({ args: ['--user', 'sidecar', 'on', '>sesame', ...rights] });
    const url = `redis://sidecar:sesame@127.0.0.1:${redis.port}`;
    const { events } = createSubscriber(() =>
      openRedisConnection({ url, caFile: undefined, timeoutMs: 15_000, clock: systemClock }),
    );
    await waitUntil(() => events.length > 0, 'a warning');
    expect(events).toEqual([WARNING]);
  });
});

test('receives published messages without a warning when SUBSCRIBE is permitted', async () => {
  const redis = await startRedis();
  const open = () => openRedisConnection({ url: redis.url, caFile: undefined, timeoutMs: 15_000, clock: systemClock });
  const { events, received } = createSubscriber(open);
  const isSubscribed = async () => (await redis.command('PUBLISH', 'bearer-sidecar:b', 'update')) === 1;
  await waitUntil(isSubscribed, 'the subscription');
  await waitUntil(() => received.length > 0, 'the message');
  expect([received, events]).toEqual([['update'], []]);
});
