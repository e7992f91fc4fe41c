/** What is published is heard; a server that lets nobody listen is told of, once. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { Ear } from '../../src/fleet/ear.ts';
import { RedisFault } from '../../src/fleet/fault.ts';
import { openLink } from '../../src/fleet/link.ts';
import type { Link } from '../../src/fleet/link.ts';
import type { SidecarEvent } from '../../src/telemetry/events.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

const WARNING = {
  kind: 'warning',
  message: expect.stringMatching(/^Redis refuses SUBSCRIBE \(NOPERM\): /) as string,
};

function listen(open: () => Promise<Link>, clock = new ManualClock()) {
  const events: SidecarEvent[] = [];
  const heard: string[] = [];
  const ear = new Ear({ open, clock, random: () => 0, observe: (event) => events.push(event) });
  onTestFinished(() => ear.close());
  ear.listen('bearer-sidecar:a', (message) => heard.push(message));
  ear.listen('bearer-sidecar:b', (message) => heard.push(message));
  ear.start();
  return { ear, events, heard, clock };
}

/** A connection on which every SUBSCRIBE fails like this; `break` ends it. */
function deaf(fault: RedisFault) {
  const ends: (() => void)[] = [];
  const open = (): Promise<Link> => {
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
  test('is told once, for however many channels and connections', async () => {
    const { open, ends } = deaf(new RedisFault('does not permit it (NOPERM)', 'NOPERM'));
    const { events, clock } = listen(open);
    await clock.advance(0);
    expect(events).toEqual([WARNING]);
    ends[0]?.();
    await clock.advance(10_000);
    expect(ends).toHaveLength(2);
    expect(events).toEqual([WARNING]);
  });

  test('by a connection that ended meanwhile is none', async () => {
    const { open } = deaf(new RedisFault('closed the connection'));
    const { events, clock } = listen(open);
    await clock.advance(0);
    expect(events).toEqual([]);
  });

  test('of a real Redis is one', async () => {
    const rights = ['~bearer-sidecar:*', '+@all', '-subscribe', '&bearer-sidecar:*'];
    const redis = await startRedis({ args: ['--user', 'sidecar', 'on', '>sesame', ...rights] });
    const url = `redis://sidecar:sesame@127.0.0.1:${redis.port}`;
    const { events } = listen(() => openLink({ url, caFile: undefined, timeoutMs: 15_000, clock: systemClock }));
    await until(() => events.length > 0, 'it was told of');
    expect(events).toEqual([WARNING]);
  });
});

test('where it is permitted, what is published is heard, and nothing is told', async () => {
  const redis = await startRedis();
  const open = () => openLink({ url: redis.url, caFile: undefined, timeoutMs: 15_000, clock: systemClock });
  const { events, heard } = listen(open);
  const isThere = async () => (await redis.command('PUBLISH', 'bearer-sidecar:b', 'news')) === 1;
  await until(isThere, 'somebody listens');
  await until(() => heard.length > 0, 'it was heard');
  expect([heard, events]).toEqual([['news'], []]);
});
