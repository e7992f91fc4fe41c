/** The script client behind a network that delays replies: when it goes on alone, when it joins again, and what it reports. */
import { describe, expect, test } from 'vitest';
import { defineScript } from '../../../src/fleet/redis/script.ts';
import { startDelayingProxy } from '../../support/delaying-proxy.ts';
import { startRedis } from '../../support/redis.ts';
import { openClient, until } from '../harness.ts';

const ECHO = defineScript(`return {ARGV[1]}`);

async function openThroughProxy(roundTripMs: number, timeoutMs: number) {
  const redis = await startRedis();
  const proxy = await startDelayingProxy(redis.port, roundTripMs);
  const opened = openClient({ url: `redis://127.0.0.1:${proxy.port}`, timeoutMs });
  const run = () => opened.client.run(ECHO, 'k', ['a']);
  return { ...opened, proxy, redis, run };
}

describe('a Redis whose replies are too late', () => {
  test('from the start is never joined, with the figures in the reason, and delays no command', async () => {
    const { client, connectionEvents, run, events } = await openThroughProxy(200, 50);
    expect(await client.whenReady()).toBe(false);
    expect(client.state()).toMatchObject({ state: 'degraded', connected: false });
    expect(connectionEvents()).toEqual([
      expect.stringMatching(
        /^degraded: Redis replies too late: 3 of the last 3 commands had no reply within 50 ms; median of late replies \d{3,} ms: raise fleet.timeoutMs or place Redis nearer$/,
      ),
    ]);
    const startedAt = performance.now();
    for (let times = 0; times < 400; times++) expect(await run()).toBeUndefined();
    expect(await client.whenReady()).toBe(false);
    // Commands that waited for their time-out would take twenty seconds.
    expect(performance.now() - startedAt).toBeLessThan(15_000);
    expect(events.filter(({ kind }) => kind === 'fleet-command')).toEqual([]);
  });

  test('later on is left without further time-outs, and joined again when replies are in time', async () => {
    const { client, connectionEvents, run, events, proxy } = await openThroughProxy(0, 250);
    expect(await client.whenReady()).toBe(true);
    expect(await run()).toEqual(['a']);
    proxy.roundTripMs = 600;
    await until(async () => (await run(), client.state().state === 'degraded'), 'it was degraded');
    expect(await run()).toBeUndefined();
    const timeouts = events.filter((event) => event.kind === 'fleet-command' && event.outcome === 'timeout').length;
    expect(timeouts).toBeLessThanOrEqual(6);
    proxy.roundTripMs = 0;
    await until(() => client.state().connected, 'it was joined again');
    expect(await run()).toEqual(['a']);
    expect(connectionEvents()).toEqual(['joined', expect.stringMatching(/^degraded: /), 'joined']);
    expect(events).toContainEqual({ kind: 'fleet-joined', detail: 'Redis replies within 250 ms again' });
    expect(proxy.connections).toBe(1);
  });

  test('by more than a second is not joined for a moment each time it is connected', async () => {
    const { client, connectionEvents, proxy } = await openThroughProxy(1300, 50);
    expect(await client.whenReady()).toBe(false);
    await until(() => proxy.connections >= 3, 'three attempts');
    expect(client.state().connected).toBe(false);
    expect(connectionEvents()).toEqual(['lost: Redis did not answer for 1000 ms']);
  });
});
