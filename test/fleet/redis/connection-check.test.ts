/** What is reported of a server that cannot be used: in cluster mode, with renamed or forbidden commands, or with another protocol. */
import { createServer as createHttpServer } from 'node:http';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { defineScript } from '../../../src/fleet/redis/script.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { startDelayingProxy } from '../../support/delaying-proxy.ts';
import { freePort } from '../../support/loopback.ts';
import { startClusterRedis, startRedis } from '../../support/redis.ts';
import { openClient, until } from '../harness.ts';

const RIGHTS = ['~bearer-sidecar:*', '+ping', '+select', '+eval', '+evalsha'];
const CLUSTER =
  /^lost: Redis runs in cluster mode, .* a single server, or a proxy in front of the cluster, in fleet\.redisUrl/;

/** The only event of the connection, after the first attempt and for the time of further ones. */
async function reportOf(url: string, options: Partial<Parameters<typeof openClient>[0]> = {}) {
  const { client, connectionEvents, events } = openClient({ url, connectTimeoutMs: 3000, ...options });
  expect(await client.whenReady()).toBe(false);
  expect(client.state()).toMatchObject({ state: 'disconnected', connected: false });
  return { events, client, report: connectionEvents()[0], connectionEvents };
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

describe('a server in cluster mode', () => {
  test('is not used, even if it serves all keys', async () => {
    const redis = await startClusterRedis();
    await redis.command('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    await until(async () => String(await redis.command('CLUSTER', 'INFO')).includes('cluster_state:ok'), 'it was ok');
    const { report, client } = await reportOf(redis.url);
    expect(report).toMatch(CLUSTER);
    expect(await client.run(defineScript('return {1}'), 'k', [])).toBeUndefined();
  });

  test.each([
    ['no slots', undefined],
    ['a third of the slots', '5460'],
  ])('that has %s and does not permit INFO is not used', async (_, lastSlot) => {
    const user = ['--user', 'sidecar', 'on', '>sesame', ...RIGHTS];
    const redis = await startClusterRedis({ args: [...user, '--cluster-require-full-coverage', 'no'] });
    if (lastSlot !== undefined) {
      await redis.command('CLUSTER', 'ADDSLOTSRANGE', '0', lastSlot);
      await until(async () => String(await redis.command('CLUSTER', 'INFO')).includes('state:ok'), 'it was ok');
    }
    expect((await reportOf(`redis://sidecar:sesame@127.0.0.1:${redis.port}`)).report).toMatch(CLUSTER);
  });

  test('is named as such if the URL has a database', async () => {
    const redis = await startClusterRedis();
    expect((await reportOf(`${redis.url}/2`)).report).toMatch(CLUSTER);
  });

  test('is reported once and tried again at long intervals', async () => {
    const redis = await startClusterRedis();
    const proxy = await startDelayingProxy(redis.port, 0);
    const { connectionEvents } = await reportOf(`redis://127.0.0.1:${proxy.port}`);
    // Longer than the longest backoff after other faults.
    await new Promise((resolve) => setTimeout(resolve, 4500));
    expect(proxy.connections).toBe(1);
    expect(connectionEvents()).toHaveLength(1);
  });
});

test('a server that permits neither INFO nor any command but those of the fleet is used', async () => {
  const redis = await startRedis({ args: ['--user', 'sidecar', 'on', '>sesame', ...RIGHTS] });
  const { client } = openClient({ url: `redis://sidecar:sesame@127.0.0.1:${redis.port}/2` });
  expect(await client.whenReady()).toBe(true);
});

test('a proxy that closes the connection on INFO is used from the second connection on', async () => {
  const redis = await startRedis();
  const proxy = createServer((client) => {
    const target = connect(redis.port, '127.0.0.1');
    client.on('data', (chunk: Buffer) => (chunk.includes('INFO') ? client.destroy() : void target.write(chunk)));
    target.on('data', (chunk: Buffer) => void client.write(chunk));
    for (const socket of [client, target]) socket.on('error', () => undefined);
    client.on('close', () => target.destroy());
  });
  const { client, connectionEvents } = openClient({ url: `redis://127.0.0.1:${await listen(proxy)}` });
  await until(() => client.state().connected, 'it was joined');
  expect(connectionEvents()).toEqual([expect.stringMatching(/^lost: Redis c(ut|losed) the connection/), 'joined']);
});

describe('a command that is missing is named', () => {
  test.each(['EVAL', 'EVALSHA', 'SELECT', 'PING'])('%s, when it is renamed', async (command) => {
    const redis = await startRedis({ args: ['--rename-command', command, 'SECRETNAME'] });
    const { report, events } = await reportOf(`${redis.url}/2`);
    expect(report).toBe(`lost: Redis does not know the command ${command}: it is renamed or disabled there (ERR)`);
    expect(JSON.stringify(events)).not.toContain('SECRETNAME');
  });

  test.each(['EVAL', 'EVALSHA', 'SELECT', 'PING'])('%s, when it is forbidden', async (command) => {
    const rights = ['~*', '+@all', `-${command.toLowerCase()}`];
    const redis = await startRedis({ args: ['--user', 'sidecar', 'on', '>sesame', ...rights] });
    const { report } = await reportOf(`redis://sidecar:sesame@127.0.0.1:${redis.port}/2`);
    expect(report).toBe(`lost: Redis does not permit its user the command ${command} (NOPERM)`);
  });

  test('and so are keys', async () => {
    const redis = await startRedis({ args: ['--user', 'sidecar', 'on', '>sesame', '~elsewhere:*', '+@all'] });
    const { report } = await reportOf(`redis://sidecar:sesame@127.0.0.1:${redis.port}`);
    expect(report).toBe('lost: Redis does not permit its user the keys of fleet.keyPrefix (NOPERM)');
  });
});

describe('a server that refuses the connection is reported with the setting', () => {
  test('without the password that it asks for', async () => {
    const redis = await startRedis({ args: ['--requirepass', 'sesame'] });
    const { report } = await reportOf(`redis://127.0.0.1:${redis.port}`);
    expect(report).toBe('lost: Redis asks for a password: put it into fleet.redisUrl (NOAUTH)');
  });

  test('with a password that it does not have', async () => {
    const redis = await startRedis();
    const { report, events } = await reportOf(`redis://:sesame@127.0.0.1:${redis.port}`);
    expect(report).toBe('lost: Redis has no password: remove the one in fleet.redisUrl (ERR)');
    expect(JSON.stringify(events)).not.toContain('sesame');
  });

  test('for a database that does not exist', async () => {
    const redis = await startRedis();
    expect((await reportOf(`${redis.url}/99`)).report).toBe(
      'lost: Redis has no database of the number in fleet.redisUrl (ERR)',
    );
  });

  test('at its maximum of connections', async () => {
    const redis = await startRedis({ args: ['--maxclients', '1'] });
    const { client } = openClient({ url: redis.url });
    expect(await client.whenReady()).toBe(true);
    expect((await reportOf(redis.url)).report).toMatch(/^lost: Redis has reached its maximum number of connections/);
  });

  test('in protected mode', async () => {
    const port = await listen(createServer((socket) => socket.end('-DENIED Redis is running in protected mode\r\n')));
    expect((await reportOf(`redis://127.0.0.1:${port}`)).report).toMatch(
      /^lost: Redis is in protected mode .*\(DENIED\)$/,
    );
  });
});

describe('another protocol than that of fleet.redisUrl is reported with the scheme to use', () => {
  test('rediss: on a port without TLS', async () => {
    const redis = await startRedis();
    const { report } = await reportOf(`rediss://127.0.0.1:${redis.port}`);
    expect(report).toBe('lost: Redis does not speak TLS on this port: use redis: in fleet.redisUrl');
  });

  test('redis: on a port with TLS', async () => {
    const certificates = makeCertificates();
    onTestFinished(() => certificates[Symbol.dispose]());
    const folder = mkdtempSync(joinPath(tmpdir(), 'redis-check-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const [key, cert] = ['key.pem', 'cert.pem'].map((name) => joinPath(folder, name)) as [string, string];
    writeFileSync(key, certificates.key);
    writeFileSync(cert, certificates.cert);
    const files = ['--tls-key-file', key, '--tls-cert-file', cert, '--tls-ca-cert-file', certificates.caFile];
    const port = await freePort();
    await startRedis({ args: ['--tls-port', String(port), ...files] });
    const { report } = await reportOf(`redis://:sesame@127.0.0.1:${port}`);
    expect(report).toBe('lost: Redis expects TLS on this port: use rediss: in fleet.redisUrl');
  });

  test.each(['redis', 'rediss'])('%s: on a port of HTTP', async (scheme) => {
    const port = await listen(createHttpServer((_, response) => response.end('a secret')));
    const { report } = await reportOf(`${scheme}://127.0.0.1:${port}`);
    expect(report).toBe('lost: Redis is an HTTP server: check host and port in fleet.redisUrl');
  });

  test('any other, without what it sent', async () => {
    const port = await listen(createServer((socket) => socket.end('220 mail.test ESMTP a secret\r\n')));
    const { report, events } = await reportOf(`redis://127.0.0.1:${port}`);
    expect(report).toBe('lost: Redis does not speak the Redis protocol: check host and port in fleet.redisUrl');
    expect(JSON.stringify(events)).not.toContain('secret');
  });

  test('a socket file that is missing', async () => {
    const { report } = await reportOf('unix:///nonexistent/redis.sock');
    expect(report).toBe('lost: Redis has no socket at this path (ENOENT)');
  });

  test('not, when nothing listens or the server hangs', async () => {
    expect((await reportOf(`redis://127.0.0.1:${await freePort()}`)).report).toMatch(/refused the connection/);
    const port = await listen(createServer());
    for (const scheme of ['redis', 'rediss'])
      expect((await reportOf(`${scheme}://127.0.0.1:${port}`, { connectTimeoutMs: 300 })).report).toBe(
        'lost: Redis could not be reached in time',
      );
  });
});
