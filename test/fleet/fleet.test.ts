/** The door to Redis against a real one that hangs, dies, comes back, refuses and speaks TLS. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join as joinPath } from 'node:path';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { defineScript } from '../../src/fleet/script.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { makeCertificates } from '../support/certificates.ts';
import { startRedis } from '../support/redis.ts';
import { join, until } from './harness.ts';

const ECHO = defineScript(`return {KEYS[1], ARGV[1]}`);
const ECHOED = ['some key', 'some argument'];
const echo = (fleet: ReturnType<typeof join>['fleet']) => fleet.run(ECHO, 'some key', ['some argument']);

describe('a Redis that is there', () => {
  test('answers scripts, the first one that it does not know yet too', async () => {
    await using redis = await startRedis();
    const { fleet, told, events } = join({ url: redis.url });
    expect(await fleet.whenReady()).toBe(true);
    expect(await echo(fleet)).toEqual(ECHOED);
    expect(await echo(fleet)).toEqual(ECHOED);
    expect(told()).toEqual(['joined']);
    expect(events.filter(({ kind }) => kind === 'fleet-command')).toEqual([
      { kind: 'fleet-command', outcome: 'ok' },
      { kind: 'fleet-command', outcome: 'ok' },
    ]);
    expect(fleet.state()).toMatchObject({ connected: true, fault: undefined });
    expect(await redis.command('INFO', 'commandstats')).toEqual(expect.stringMatching(/cmdstat_eval:calls=1,/));
    expect(await redis.command('INFO', 'commandstats')).toEqual(expect.stringMatching(/cmdstat_evalsha:calls=2,/));
  });

  test('and forgets its scripts is told them again', async () => {
    await using redis = await startRedis();
    const { fleet } = join({ url: redis.url });
    await fleet.whenReady();
    await echo(fleet);
    await redis.command('SCRIPT', 'FLUSH');
    expect(await echo(fleet)).toEqual(ECHOED);
  });

  test('takes a password, a user and a database', async () => {
    const user = ['--user', 'sidecar', 'on', '>sesame-2', '~*', '+@all'];
    await using redis = await startRedis({
      args: ['--requirepass', 'sesame-1', ...user],
      url: (port) => `redis://sidecar:sesame-2@127.0.0.1:${port}/3`,
    });
    for (const url of [redis.url, `redis://:sesame-1@127.0.0.1:${redis.port}`]) {
      const { fleet } = join({ url });
      expect(await fleet.whenReady()).toBe(true);
      expect(await echo(fleet)).toEqual(ECHOED);
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
    const { fleet } = join({ url: `unix://${path}` });
    expect(await fleet.whenReady()).toBe(true);
    expect(await echo(fleet)).toEqual(ECHOED);
  });
});

describe('over TLS', () => {
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
    const tlsPort = await freeTlsPort();
    await startRedis({ args: ['--tls-port', String(tlsPort), '--tls-auth-clients', 'no', ...files] });
    return { url: `rediss://127.0.0.1:${tlsPort}`, caFile: certificates.caFile };
  }

  test('with the authority that it was told to trust', async () => {
    const { url, caFile } = await startTls();
    const { fleet } = join({ url, caFile });
    expect(await fleet.whenReady()).toBe(true);
    expect(await echo(fleet)).toEqual(ECHOED);
  });

  test('and not without it', async () => {
    const { url } = await startTls();
    const { fleet, told } = join({ url });
    expect(await fleet.whenReady()).toBe(false);
    expect(told()).toEqual([expect.stringMatching(/^lost: Redis has a certificate of an unknown authority: .*caFile/)]);
  });
});

describe('a Redis that hangs', () => {
  test('costs one time-out, then nothing until the answer that it owes has come', async () => {
    await using redis = await startRedis();
    const clock = new ManualClock();
    const { fleet, events } = join({ url: redis.url, timeoutMs: 25, clock });
    await fleet.whenReady();
    await echo(fleet);
    redis.hang();
    const outcomes = () => events.flatMap((event) => (event.kind === 'fleet-command' ? [event.outcome] : []));
    const first = echo(fleet);
    await clock.advance(24);
    expect(outcomes()).toEqual(['ok']);
    await clock.advance(1);
    expect(await first).toBeUndefined();
    expect(await Promise.all([echo(fleet), echo(fleet)])).toEqual([undefined, undefined]);
    expect(outcomes()).toEqual(['ok', 'timeout']);
    redis.resume();
    expect(await fleet.whenReady()).toBe(true);
    expect(await echo(fleet)).toEqual(ECHOED);
    expect(outcomes()).toEqual(['ok', 'timeout', 'ok']);
  });

  test('is told from a process that was busy itself', async () => {
    await using redis = await startRedis();
    const timeouts = new Set<() => void>();
    const after: typeof systemClock.after = (delayMs, run) => {
      if (delayMs !== 25) return systemClock.after(delayMs, run);
      timeouts.add(run);
      return () => void timeouts.delete(run);
    };
    const { fleet, events } = join({ url: redis.url, timeoutMs: 25, clock: { ...systemClock, after } });
    await fleet.whenReady();
    await echo(fleet);
    const reply = echo(fleet);
    // Sent by then. This process does nothing until Redis has answered others twice: the answer lies there before the timer is looked at.
    await new Promise((resolve) => setImmediate(resolve));
    for (let times = 0; times < 2; times++) redis.answerOther();
    expect(timeouts.size).toBeGreaterThan(0);
    for (const ring of timeouts) ring();
    expect(await reply).toEqual(ECHOED);
    expect(events).not.toContainEqual({ kind: 'fleet-command', outcome: 'timeout' });
  });

  test('for long is left, and joined again when it answers', async () => {
    await using redis = await startRedis();
    const clock = new ManualClock();
    const { fleet, told } = join({ url: redis.url, timeoutMs: 25, clock });
    await fleet.whenReady();
    redis.hang();
    const unanswered = echo(fleet);
    await clock.advance(25);
    expect(await unanswered).toBeUndefined();
    await clock.advance(974);
    expect(told()).toEqual(['joined']);
    await clock.advance(1);
    expect(fleet.state()).toMatchObject({ connected: false, fault: 'Redis did not answer for 1000 ms' });
    redis.resume();
    await clock.advance(200);
    await until(() => told().length === 3, 'it was joined again');
    expect(told()).toEqual(['joined', 'lost: Redis did not answer for 1000 ms', 'joined']);
    expect(await echo(fleet)).toEqual(ECHOED);
  });

  test('from the start is waited for, as long as one attempt lasts, by those who may, and not at all by others', async () => {
    await using redis = await startRedis();
    redis.hang();
    const startedAt = performance.now();
    const { fleet } = join({ url: redis.url, connectTimeoutMs: 2000 });
    expect(await echo(fleet)).toBeUndefined();
    expect(await fleet.whenReady()).toBe(false);
    expect(performance.now() - startedAt).toBeGreaterThan(1900);
    redis.resume();
  });
});

describe('an idle connection', () => {
  async function startIdle() {
    const redis = await startRedis();
    const clock = new ManualClock();
    const joined = join({ url: redis.url, timeoutMs: 25, clock });
    await until(() => joined.fleet.state().connected, 'it was joined');
    return { redis, clock, ...joined };
  }

  test('is kept from being cut', async () => {
    const { redis, clock } = await startIdle();
    const pings = async () => /cmdstat_ping:calls=(\d+)/.exec(String(await redis.command('INFO', 'commandstats')))?.[1];
    expect(await pings()).toBe('1');
    await clock.advance(30_000);
    await until(async () => (await pings()) === '2', 'a second PING');
  });

  test('to a Redis that hangs is left before it is needed', async () => {
    const { redis, clock, fleet, told } = await startIdle();
    redis.hang();
    await clock.advance(31_000);
    expect(fleet.state().connected).toBe(false);
    expect(told()).toEqual(['joined', 'lost: Redis did not answer for 1000 ms']);
  });

  test('says nothing of commands that are refused', async () => {
    const { redis, clock, fleet, told } = await startIdle();
    await redis.command('ACL', 'SETUSER', 'default', '-eval', '-evalsha');
    expect(await echo(fleet)).toBeUndefined();
    await clock.advance(30_000);
    // On the same connection, so that the PING has been answered when this one is.
    expect(await echo(fleet)).toBeUndefined();
    expect(await redis.command('INFO', 'commandstats')).toEqual(expect.stringMatching(/cmdstat_ping:calls=2,/));
    expect(told()).toEqual(['joined', expect.stringContaining('does not permit')]);
  });
});

describe('a Redis that dies', () => {
  test('is told of once, and joined again after its return', async () => {
    await using redis = await startRedis();
    const { fleet, told } = join({ url: redis.url });
    await fleet.whenReady();
    await redis.kill();
    await until(() => told().length === 2, 'its end was noticed');
    expect(await echo(fleet)).toBeUndefined();
    expect(await fleet.whenReady()).toBe(false);
    // Long enough for the backoff to have reached its ceiling.
    await sleep(3000);
    await until(() => told().length === 3, 'another connection was tried');
    await redis.restart();
    // That the pauses in between are two seconds at most is told in virtual time (standing-link.test.ts).
    await until(() => fleet.state().connected, 'it was joined again');
    expect(told()).toEqual([
      'joined',
      expect.stringMatching(/^lost: Redis (cut|closed) the connection/),
      expect.stringMatching(/^lost: Redis refused the connection/),
      'joined',
    ]);
    expect(await echo(fleet)).toEqual(ECHOED);
  });

  test('in the middle of a command leaves nobody waiting', async () => {
    await using redis = await startRedis();
    const { fleet, events } = join({ url: redis.url, timeoutMs: 15_000 });
    await fleet.whenReady();
    redis.hang();
    const reply = echo(fleet);
    await redis.kill();
    expect(await reply).toBeUndefined();
    expect(events).toContainEqual({ kind: 'fleet-command', outcome: 'error' });
  });
});

describe('a Redis that refuses', () => {
  test('the password: said without it, once, however often it is tried', async () => {
    await using redis = await startRedis({ args: ['--requirepass', 'the-right-one'] });
    const { fleet, told, events } = join({ url: `redis://user:the-wrong-one@127.0.0.1:${redis.port}` });
    expect(await fleet.whenReady()).toBe(false);
    await sleep(500);
    expect(told()).toEqual([expect.stringMatching(/^lost: Redis refused the user or the password/)]);
    expect(JSON.stringify([events, fleet.state()])).not.toMatch(/the-wrong-one|the-right-one/);
  });

  test('a command: said once, and joined again with the first one that it takes', async () => {
    await using redis = await startRedis();
    const { fleet, told } = join({ url: redis.url });
    await fleet.whenReady();
    await redis.command('ACL', 'SETUSER', 'default', '-eval', '-evalsha');
    expect([await echo(fleet), await echo(fleet)]).toEqual([undefined, undefined]);
    await redis.command('ACL', 'SETUSER', 'default', '+@all');
    expect(await echo(fleet)).toEqual(ECHOED);
    expect(told()).toEqual(['joined', expect.stringMatching(/^lost: Redis does not permit its user/), 'joined']);
  });

  test('writes because it is a replica: another connection is tried', async () => {
    await using redis = await startRedis();
    const { fleet, told } = join({ url: redis.url });
    await fleet.whenReady();
    await redis.command('REPLICAOF', '127.0.0.1', '1');
    const write = defineScript(`redis.call('SET', KEYS[1], ARGV[1]) return {1}`);
    expect(await fleet.run(write, 'k', [1])).toBeUndefined();
    expect(told()).toEqual(['joined', expect.stringMatching(/^lost: Redis is a replica/)]);
    await redis.command('REPLICAOF', 'NO', 'ONE');
    await until(() => fleet.state().connected || (void fleet.run(write, 'k', [1]), false), 'it was joined again');
    expect(await fleet.run(write, 'k', [1])).toEqual([1]);
  });
});

test('what is not Redis is left alone', async () => {
  const server = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { fleet, told } = join({ url: `redis://127.0.0.1:${port}` });
  expect(await fleet.whenReady()).toBe(false);
  expect(told()).toEqual([expect.stringMatching(/^lost: Redis /)]);
});

describe('closing', () => {
  test('lets the commands under way end, and sends no more', async () => {
    await using redis = await startRedis();
    const { fleet } = join({ url: redis.url });
    await fleet.whenReady();
    const last = echo(fleet);
    const closed = fleet.close();
    expect(await echo(fleet)).toBeUndefined();
    await closed;
    expect(await last).toEqual(ECHOED);
    const isGone = async () => !String(await redis.command('CLIENT', 'LIST')).includes('evalsha');
    await until(isGone, 'the end of the connection');
  });

  test('waits for a hanging Redis no longer than for one command', async () => {
    await using redis = await startRedis();
    const { fleet } = join({ url: redis.url, timeoutMs: 25 });
    await fleet.whenReady();
    redis.hang();
    const last = echo(fleet);
    await fleet.close();
    expect(await last).toBeUndefined();
    redis.resume();
  });
});

async function freeTlsPort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
