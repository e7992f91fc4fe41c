/** The script client against a real Redis that hangs, dies, restarts, refuses commands and uses TLS. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join as joinPath } from 'node:path';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/platform/clock.ts';
import { defineScript } from '../../../src/fleet/redis/script.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { freePort } from '../../support/loopback.ts';
import { startRedis } from '../../support/redis.ts';
import type { Redis } from '../../support/redis.ts';
import { openClient, until } from '../harness.ts';

const ECHO = defineScript(`return {KEYS[1], ARGV[1]}`);
const ECHOED = ['some key', 'some argument'];
const echo = (client: ReturnType<typeof openClient>['client']) => client.run(ECHO, 'some key', ['some argument']);

async function countCalls(redis: Redis, command: string): Promise<number> {
  const stats = String(await redis.command('INFO', 'commandstats'));
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

describe('a running Redis', () => {
  test('replies to scripts, also to one that it does not know yet', async () => {
    await using redis = await startRedis();
    const { client, connectionEvents, events } = openClient({ url: redis.url });
    expect(await client.whenReady()).toBe(true);
    expect(await echo(client)).toEqual(ECHOED);
    expect(await echo(client)).toEqual(ECHOED);
    expect(connectionEvents()).toEqual(['joined']);
    expect(events.filter(({ kind }) => kind === 'fleet-command')).toEqual([
      { kind: 'fleet-command', outcome: 'ok' },
      { kind: 'fleet-command', outcome: 'ok' },
    ]);
    expect(client.state()).toMatchObject({ connected: true, fault: undefined });
    // Beside the check of the connection, which runs one script by its source on twelve keys and once by its hash.
    expect(await countCalls(redis, 'eval')).toBe(12 + 1);
    expect(await countCalls(redis, 'evalsha')).toBe(1 + 2);
  });

  test('gets the source of a script again after SCRIPT FLUSH', async () => {
    await using redis = await startRedis();
    const { client } = openClient({ url: redis.url });
    await client.whenReady();
    await echo(client);
    await redis.command('SCRIPT', 'FLUSH');
    expect(await echo(client)).toEqual(ECHOED);
  });

  test('accepts a password, a user and a database', async () => {
    const user = ['--user', 'sidecar', 'on', '>sesame-2', '~*', '+@all'];
    await using redis = await startRedis({
      args: ['--requirepass', 'sesame-1', ...user],
      url: (port) => `redis://sidecar:sesame-2@127.0.0.1:${port}/3`,
    });
    for (const url of [redis.url, `redis://:sesame-1@127.0.0.1:${redis.port}`]) {
      const { client } = openClient({ url });
      expect(await client.whenReady()).toBe(true);
      expect(await echo(client)).toEqual(ECHOED);
    }
    expect(await redis.command('CLIENT', 'LIST')).toEqual(
      expect.stringMatching(/ db=3 .* cmd=eval(sha)? user=sidecar /),
    );
  });

  test('is reached over a socket file', async () => {
    const folder = mkdtempSync(joinPath(tmpdir(), 'redis-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = joinPath(folder, 'redis.sock');
    await startRedis({ args: ['--unixsocket', path] });
    const { client } = openClient({ url: `unix://${path}` });
    expect(await client.whenReady()).toBe(true);
    expect(await echo(client)).toEqual(ECHOED);
  });
});

describe('Redis over TLS', () => {
  async function startTls() {
    const certificates = makeCertificates();
    const folder = mkdtempSync(joinPath(tmpdir(), 'redis-tls-'));
    onTestFinished(() => {
      certificates[Symbol.dispose]();
      rmSync(folder, { recursive: true });
    });
    const [key, cert] = ['key.pem', 'cert.pem'].map((name) => joinPath(folder, name)) as [string, string];
    writeFileSync(key, certificates.key);
    writeFileSync(cert, certificates.cert);
    const files = ['--tls-key-file', key, '--tls-cert-file', cert, '--tls-ca-cert-file', certificates.caFile];
    const tlsPort = await freePort();
    await startRedis({ args: ['--tls-port', String(tlsPort), '--tls-auth-clients', 'no', ...files] });
    return { url: `rediss://127.0.0.1:${tlsPort}`, caFile: certificates.caFile };
  }

  test('is trusted with fleet.caFile', async () => {
    const { url, caFile } = await startTls();
    const { client } = openClient({ url, caFile });
    expect(await client.whenReady()).toBe(true);
    expect(await echo(client)).toEqual(ECHOED);
  });

  test('is not trusted without fleet.caFile', async () => {
    const { url } = await startTls();
    const { client, connectionEvents } = openClient({ url });
    expect(await client.whenReady()).toBe(false);
    expect(connectionEvents()).toEqual([
      expect.stringMatching(/^lost: Redis has a certificate of an unknown authority \(.*\); .*caFile/),
    ]);
  });
});

describe('a Redis that hangs', () => {
  test('costs one time-out, and then no wait until the late reply has arrived', async () => {
    await using redis = await startRedis();
    const clock = new ManualClock();
    const { client, events } = openClient({ url: redis.url, timeoutMs: 25, clock });
    await client.whenReady();
    await echo(client);
    redis.pause();
    const outcomes = () => events.flatMap((event) => (event.kind === 'fleet-command' ? [event.outcome] : []));
    const first = echo(client);
    await clock.advance(24);
    expect(outcomes()).toEqual(['ok']);
    await clock.advance(1);
    expect(await first).toBeUndefined();
    expect(await Promise.all([echo(client), echo(client)])).toEqual([undefined, undefined]);
    expect(outcomes()).toEqual(['ok', 'timeout']);
    redis.resume();
    expect(await client.whenReady()).toBe(true);
    expect(await echo(client)).toEqual(ECHOED);
    expect(outcomes()).toEqual(['ok', 'timeout', 'ok']);
  });

  test('causes no time-out when this process itself was busy', async () => {
    await using redis = await startRedis();
    const timeouts = new Set<() => void>();
    const after: typeof systemClock.after = (delayMs, run) => {
      if (delayMs !== 25) return systemClock.after(delayMs, run);
      timeouts.add(run);
      return () => void timeouts.delete(run);
    };
    const { client, events } = openClient({ url: redis.url, timeoutMs: 25, clock: { ...systemClock, after } });
    await client.whenReady();
    await echo(client);
    const reply = echo(client);
    // The command is sent by then. This process blocks until Redis has replied twice to another one: the reply has arrived before the timer runs.
    await new Promise((resolve) => setImmediate(resolve));
    for (let times = 0; times < 2; times++) redis.waitForPingOfOtherProcess();
    expect(timeouts.size).toBeGreaterThan(0);
    for (const fire of timeouts) fire();
    expect(await reply).toEqual(ECHOED);
    expect(events).not.toContainEqual({ kind: 'fleet-command', outcome: 'timeout' });
  });

  test('for 1 s loses its connection, and is joined again when it replies', async () => {
    await using redis = await startRedis();
    const clock = new ManualClock();
    const { client, connectionEvents } = openClient({ url: redis.url, timeoutMs: 25, clock });
    await client.whenReady();
    redis.pause();
    const pending = echo(client);
    await clock.advance(25);
    expect(await pending).toBeUndefined();
    await clock.advance(974);
    expect(connectionEvents()).toEqual(['joined']);
    await clock.advance(1);
    expect(client.state()).toMatchObject({ connected: false, fault: 'Redis did not answer for 1000 ms' });
    redis.resume();
    await clock.advance(200);
    await until(() => connectionEvents().length === 3, 'it was joined again');
    expect(connectionEvents()).toEqual(['joined', 'lost: Redis did not answer for 1000 ms', 'joined']);
    expect(await echo(client)).toEqual(ECHOED);
  });

  test('from the start delays whenReady by one connection attempt, and run not at all', async () => {
    await using redis = await startRedis();
    redis.pause();
    const startedAt = performance.now();
    const { client } = openClient({ url: redis.url, connectTimeoutMs: 2000 });
    expect(await echo(client)).toBeUndefined();
    expect(await client.whenReady()).toBe(false);
    expect(performance.now() - startedAt).toBeGreaterThan(1900);
    redis.resume();
  });
});

describe('an idle connection', () => {
  async function startIdle() {
    const redis = await startRedis();
    const clock = new ManualClock();
    const joined = openClient({ url: redis.url, timeoutMs: 25, clock });
    await until(() => joined.client.state().connected, 'it was joined');
    return { redis, clock, ...joined };
  }

  test('is kept open by a script every 30 s', async () => {
    const { redis, clock } = await startIdle();
    expect(await countCalls(redis, 'evalsha')).toBe(1);
    await clock.advance(29_999);
    expect(await countCalls(redis, 'evalsha')).toBe(1);
    await clock.advance(1);
    await until(async () => (await countCalls(redis, 'evalsha')) === 2, 'a second script');
  });

  test('to a Redis that hangs is dropped by the heartbeat', async () => {
    const { redis, clock, client, connectionEvents } = await startIdle();
    redis.pause();
    await clock.advance(31_000);
    expect(client.state().connected).toBe(false);
    expect(connectionEvents()).toEqual(['joined', 'lost: Redis did not answer for 1000 ms']);
  });

  test('does not count as recovery from refused commands', async () => {
    const { redis, clock, client, connectionEvents } = await startIdle();
    await redis.command('ACL', 'SETUSER', 'default', '-set');
    const write = defineScript(`redis.call('SET', KEYS[1], ARGV[1]) return {1}`);
    expect(await client.run(write, 'k', [1])).toBeUndefined();
    const before = await countCalls(redis, 'evalsha');
    await clock.advance(30_000);
    // On the same connection, so that the reply to the heartbeat arrives first.
    expect(await client.run(write, 'k', [1])).toBeUndefined();
    expect(await countCalls(redis, 'evalsha')).toBe(before + 2);
    expect(connectionEvents()).toEqual(['joined', expect.stringContaining('does not permit')]);
  });
});

describe('a Redis that dies', () => {
  test('is reported once, and joined again after its restart', async () => {
    await using redis = await startRedis();
    const { client, connectionEvents } = openClient({ url: redis.url });
    await client.whenReady();
    await redis.kill();
    await until(() => connectionEvents().length === 2, 'the loss was noticed');
    expect(await echo(client)).toBeUndefined();
    expect(await client.whenReady()).toBe(false);
    // Long enough for the backoff to have reached its ceiling.
    await sleep(3000);
    await until(() => connectionEvents().length === 3, 'another connection was tried');
    await redis.restart();
    // reconnecting-connection.test.ts checks in virtual time that the backoff is at most 2 s.
    await until(() => client.state().connected, 'it was joined again');
    expect(connectionEvents()).toEqual([
      'joined',
      expect.stringMatching(/^lost: Redis (cut|closed) the connection/),
      expect.stringMatching(/^lost: Redis refused the connection/),
      'joined',
    ]);
    expect(await echo(client)).toEqual(ECHOED);
  });

  test('during a command ends the wait for its reply', async () => {
    await using redis = await startRedis();
    const { client, events } = openClient({ url: redis.url, timeoutMs: 15_000 });
    await client.whenReady();
    redis.pause();
    const reply = echo(client);
    await redis.kill();
    expect(await reply).toBeUndefined();
    expect(events).toContainEqual({ kind: 'fleet-command', outcome: 'error' });
  });
});

describe('a Redis that refuses', () => {
  test('the password is reported once, without the password', async () => {
    await using redis = await startRedis({ args: ['--requirepass', 'the-right-one'] });
    const { client, connectionEvents, events } = openClient({
      url: `redis://user:the-wrong-one@127.0.0.1:${redis.port}`,
    });
    expect(await client.whenReady()).toBe(false);
    await sleep(500);
    expect(connectionEvents()).toEqual([expect.stringMatching(/^lost: Redis refused the user or the password/)]);
    expect(JSON.stringify([events, client.state()])).not.toMatch(/the-wrong-one|the-right-one/);
  });

  test('a command is reported once, and joined again with the first accepted command', async () => {
    await using redis = await startRedis();
    const { client, connectionEvents } = openClient({ url: redis.url });
    await client.whenReady();
    await redis.command('ACL', 'SETUSER', 'default', '-eval', '-evalsha');
    expect([await echo(client), await echo(client)]).toEqual([undefined, undefined]);
    await redis.command('ACL', 'SETUSER', 'default', '+@all');
    expect(await echo(client)).toEqual(ECHOED);
    expect(connectionEvents()).toEqual([
      'joined',
      expect.stringMatching(/^lost: Redis does not permit its user/),
      'joined',
    ]);
  });

  test('writes because it is a replica gets a new connection', async () => {
    await using redis = await startRedis();
    const { client, connectionEvents } = openClient({ url: redis.url });
    await client.whenReady();
    await redis.command('REPLICAOF', '127.0.0.1', '1');
    const write = defineScript(`redis.call('SET', KEYS[1], ARGV[1]) return {1}`);
    expect(await client.run(write, 'k', [1])).toBeUndefined();
    expect(connectionEvents()).toEqual(['joined', expect.stringMatching(/^lost: Redis is a replica/)]);
    await redis.command('REPLICAOF', 'NO', 'ONE');
    await until(() => client.state().connected || (void client.run(write, 'k', [1]), false), 'it was joined again');
    expect(await client.run(write, 'k', [1])).toEqual([1]);
  });
});

test('reports a server that is not Redis', async () => {
  const server = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { client, connectionEvents } = openClient({ url: `redis://127.0.0.1:${port}` });
  expect(await client.whenReady()).toBe(false);
  expect(connectionEvents()).toEqual([expect.stringMatching(/^lost: Redis /)]);
});

describe('closing', () => {
  test('waits for the commands in flight, and sends no more', async () => {
    await using redis = await startRedis();
    const { client } = openClient({ url: redis.url });
    await client.whenReady();
    const last = echo(client);
    const closed = client.close();
    expect(await echo(client)).toBeUndefined();
    await closed;
    expect(await last).toEqual(ECHOED);
    const isGone = async () => !String(await redis.command('CLIENT', 'LIST')).includes('evalsha');
    await until(isGone, 'the end of the connection');
  });

  test('waits for a hanging Redis no longer than one time-out', async () => {
    await using redis = await startRedis();
    const { client } = openClient({ url: redis.url, timeoutMs: 25 });
    await client.whenReady();
    redis.pause();
    const last = echo(client);
    await client.close();
    expect(await last).toBeUndefined();
    redis.resume();
  });
});
