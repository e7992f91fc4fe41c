/** The file of unknown calls behind a proxy port: what is recorded, what stays open, and what happens when nothing can be recorded. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Secrets } from '../../src/platform/secrets.ts';
import { openUnknownCalls } from '../../src/composition/unknown-calls.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { SidecarEvent } from '../../src/telemetry/events.ts';
import { startProxy, type ProxyOptions } from '../listener/proxy.ts';
import { writeConfigFile } from '../support/config-file.ts';
import { openSocket, readToEnd } from '../support/raw-client.ts';
import { readOpenCalls, scratchFile } from '../unknown-calls/scratch-file.ts';
import { createLatch, startInProcess, until, type InProcessOptions } from './in-process.ts';
import { startRawUpstream } from './raw-upstream.ts';
import { send } from './send.ts';

async function startRecorded(options: InProcessOptions = {}) {
  const file = scratchFile();
  const running = await startInProcess({ ...options, env: { SIDECAR_UNKNOWN_CALLS_FILE: file, ...options.env } });
  return { ...running, file };
}

/** A file on a disk that is full while `isFull`. */
async function startOnDisk(upstreamUrl: string, onWriteError: 'forward' | 'refuse', options: ProxyOptions = {}) {
  const disk = { isFull: false };
  const file = scratchFile();
  const events: SidecarEvent[] = [];
  const settings = { file, onWriteError, paths: true };
  const observe = (event: SidecarEvent) => void events.push(event);
  const context = { secrets: new Secrets(systemClock), clock: systemClock, observe };
  const unknownCalls = await openUnknownCalls(settings, context, {
    write: (fd, bytes) => {
      if (disk.isFull) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
      return writeSync(fd, bytes);
    },
  });
  const proxy = await startProxy(upstreamUrl, { ...options, unknownCalls });
  onTestFinished(async () => {
    await proxy[Symbol.asyncDispose]();
    unknownCalls?.close();
  });
  return { proxy, disk, file, events };
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

describe('a call that cannot be recorded', () => {
  it('is refused before its first byte, on an open connection and on a new one, which serve on; its permit is not spent', async () => {
    const { url, received, sockets } = await startRawUpstream((socket) => void socket.write(OK));
    const { proxy, disk, file } = await startOnDisk(url, 'refuse', { attempts: 3, maxInFlight: 1, maxStreams: 0 });
    disk.isFull = true;
    const refuse = async (): Promise<void> => {
      const { status, code, fields, text } = await send(proxy.url, { method: 'POST', body: 'secret' });
      expect([status, code]).toEqual([503, 'UNKNOWN_CALLS_NOT_RECORDED']);
      expect(fields['proxy-status']).toBe('bearer-sidecar; error=proxy_internal_error');
      expect(text).not.toContain('"outcome"');
    };
    for (let time = 0; time < 3; time++) await refuse();
    await until(() => sockets.length > 0, 'the connection that was opened for the first call');
    expect(received.join('')).toBe('');
    expect((await send(proxy.url)).status).toBe(200);
    const before = received.join('');
    for (let time = 0; time < 3; time++) await refuse();
    expect(received.join('')).toBe(before);
    disk.isFull = false;
    expect((await send(proxy.url, { method: 'POST', body: 'sent' })).status).toBe(200);
    expect(received).toHaveLength(1);
    expect(received[0]?.match(/^\w+ \//gm)).toEqual(['GET /', 'POST /']);
    expect(proxy.throttle.state()).toMatchObject({ inFlight: 0, queued: 0 });
    const kinds = proxy.events.map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'permit-granted')).toHaveLength(2);
    expect(kinds.filter((kind) => kind === 'attempt-ended')).toHaveLength(2);
    expect(kinds).not.toContain('retry');
    await proxy.requestRecords(8);
    await until(() => readOpenCalls(file).length === 0, 'the end of the call');
  });

  it('with a streamed body is refused too', async () => {
    const { url, received } = await startRawUpstream((socket) => void socket.write(OK));
    const { proxy, disk } = await startOnDisk(url, 'refuse', { replayBufferBytes: 16 });
    disk.isFull = true;
    expect((await send(proxy.url, { method: 'POST', body: 'x'.repeat(100) })).code).toBe('UNKNOWN_CALLS_NOT_RECORDED');
    disk.isFull = false;
    expect((await send(proxy.url, { method: 'POST', body: 'y'.repeat(100) })).status).toBe(200);
    expect(received.join('')).not.toContain('x'.repeat(10));
  });

  it('is sent all the same by default, with an event at the first and at the end', async () => {
    const { url } = await startRawUpstream((socket) => void socket.write(OK));
    const { proxy, disk, file, events } = await startOnDisk(url, 'forward');
    disk.isFull = true;
    for (let time = 0; time < 3; time++) expect((await send(proxy.url, { method: 'POST' })).status).toBe(200);
    expect(readFileSync(file, 'utf8')).toBe('');
    disk.isFull = false;
    expect((await send(proxy.url, { method: 'POST' })).status).toBe(200);
    expect(events.map((event) => (event.kind === 'unknown-calls-file' ? event.phase : ''))).toEqual([
      ...['fails', 'fails-still', 'fails-still', 'works'],
    ]);
  });
});

describe('a record', () => {
  it('has the ids, the route, the path without query and the key, and no token', async () => {
    const latch = createLatch();
    const { url, file, api } = await startRecorded({
      respond: (_, response) => latch.opened.then(() => void response.end()),
    });
    const headers = { 'x-request-id': 'r-1', 'idempotency-key': 'k'.repeat(1000) };
    const target = `${url}/a/token-1-of-the-tests/b?secret=1`;
    const sent = send(target, { method: 'POST', headers, body: 'the body' });
    await until(() => api.requests.length === 1, 'the call at the upstream');
    const [call] = readOpenCalls(file);
    expect(call).toEqual({
      id: expect.stringMatching(/^[a-z]{5}-1$/) as string,
      at: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      requestId: 'r-1',
      route: 'default',
      method: 'POST',
      path: expect.stringMatching(/^\/a\/.*\/b$/) as string,
      idempotencyKey: `${'k'.repeat(256)}…`,
    });
    const text = readFileSync(file, 'utf8');
    for (const kept of ['token-1', 'secret', 'the body']) expect(text).not.toContain(kept);
    latch.open();
    await sent;
    await until(() => readOpenCalls(file).length === 0, 'the end of the call');
  });

  it.each(['', '\u00a0', '" "'])('has no key of a call whose key is blank (%j)', async (key) => {
    const { url, file } = await startRecorded();
    await send(url, { method: 'POST', headers: { 'idempotency-key': key } });
    const records = readFileSync(file, 'utf8').match(/^.*"at".*$/gm) ?? [];
    expect(records).toHaveLength(1);
    expect(records[0]).not.toContain('dempotencyKey');
  });

  it('leaves the path out where unknownCalls.paths is false, and no idempotent method has one', async () => {
    const { url, file } = await startRecorded({ env: { SIDECAR_UNKNOWN_CALLS_PATHS: 'false' } });
    for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS', 'POST', 'PATCH']) await send(`${url}/p`, { method });
    const records = readFileSync(file, 'utf8').match(/^.*"at".*$/gm) ?? [];
    expect(records.map((record) => (JSON.parse(record) as { method: string }).method)).toEqual(['POST', 'PATCH']);
    expect(records.join('')).not.toContain('/p');
  });
});

describe('a call stays open', () => {
  it('when its client leaves within a large response, or before it', async () => {
    const { url, file, requestRecords } = await startRecorded({
      respond: ({ path }, response) => {
        if (path === '/large') response.end(Buffer.alloc(32 * 1024 * 1024));
      },
    });
    for (const path of ['/large', '/none']) {
      const client = await openSocket(url);
      client.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody`);
      if (path === '/large') await new Promise((resolve) => client.once('data', resolve));
      else await until(() => readOpenCalls(file).length === 2, 'the second call');
      client.resetAndDestroy();
    }
    await requestRecords(2);
    const codes = (): unknown[] => readOpenCalls(file).map(({ path, code }) => [path, code]);
    await until(() => codes().flat().filter(Boolean).length === 4, 'the reasons');
    expect(codes()).toEqual([
      ['/large', 'CLIENT_LEFT'],
      ['/none', 'CLIENT_LEFT'],
    ]);
  });

  it('when its response waits behind a pipelined one and the client leaves; pipelined calls that are answered end', async () => {
    const { url, file, api } = await startRecorded({
      respond: ({ path }, response) => {
        if (path !== '/none') response.end(path);
      },
    });
    const head = (path: string, more = ''): string =>
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${more}Content-Length: 4\r\n\r\nbody`;
    const whole = await openSocket(url);
    whole.write(`${head('/a')}${head('/b')}${head('/c', 'Connection: close\r\n')}`);
    expect((await readToEnd(whole)).bytes.toString()).toMatch(/\/a.*\/b.*\/c/s);
    await until(() => readOpenCalls(file).length === 0, 'the ends');
    const client = await openSocket(url);
    client.write(head('/none') + head('/behind'));
    await until(() => api.requests.filter(Boolean).length === 5, 'both calls at the upstream');
    client.destroy();
    await until(() => readOpenCalls(file).every(({ code }) => code !== undefined), 'the reasons');
    expect(readOpenCalls(file).map(({ path, code }) => [path, code])).toEqual([
      ['/none', 'CLIENT_LEFT'],
      ['/behind', 'CLIENT_LEFT'],
    ]);
  });
});

it('a drain ends the records of all calls that it lets finish, and those that it cuts stay open', async () => {
  const latch = createLatch();
  const { url, file, api, sidecar } = await startRecorded({
    respond: ({ path }, response) => {
      if (path === '/slow') void latch.opened.then(() => response.end('done'));
    },
    env: { SIDECAR_DRAIN_MS: '1000' },
  });
  const [slow, cut] = ['/slow', '/never'].map((path) => send(url + path, { method: 'POST', body: 'x' }));
  await until(() => api.requests.length === 2, 'both calls at the upstream');
  const drained = sidecar.drain();
  latch.open();
  expect((await slow)?.status).toBe(200);
  expect((await cut)?.code).toBe('UPSTREAM_TIMEOUT');
  await drained;
  expect(readOpenCalls(file)).toMatchObject([{ path: '/never', code: 'UPSTREAM_TIMEOUT' }]);
});

it('a reload keeps the file; another one needs a restart', async () => {
  await using config = await writeConfigFile('retry: { attempts: 2 }\n');
  const { url, file, sidecar, eventsOf, requestRecords } = await startRecorded({ file: config.path });
  await config.replace('retry: { attempts: 3 }\n');
  sidecar.reload();
  await send(url, { method: 'POST', body: 'x' });
  await requestRecords(1);
  expect(readFileSync(file, 'utf8')).toContain('"at"');
  await config.replace('unknownCalls: { paths: false }\n');
  sidecar.reload();
  expect(eventsOf('configuration-read').map(({ outcome, lines }) => [outcome, ...lines])).toEqual([
    ['ok', expect.stringContaining('retry.attempts') as string],
    ['refused', 'unknownCalls.paths'],
  ]);
});

it('while calls cannot be recorded, /status is degraded and has an alert, and afterwards only the alert is left', async () => {
  const { url, file, sidecar, metric } = await startRecorded();
  const folder = dirname(file);
  const readStatus = async () =>
    (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as { degraded: string[]; alerts: { name: string }[] };
  renameSync(folder, `${folder}.old`);
  onTestFinished(() => rmSync(`${folder}.old`, { recursive: true }));
  await send(url, { method: 'POST', body: 'x' });
  await until(async () => (await readStatus()).degraded.length > 0, 'the fault');
  expect((await readStatus()).degraded).toEqual(['Calls cannot be recorded in unknownCalls.file (ENOENT)']);
  expect(await metric('bearer_sidecar_unknown_call_write_errors_total')).toBeGreaterThan(0);
  await until(
    async () => (await readStatus()).alerts.some(({ name }) => name === 'BearerSidecarUnknownCallsNotRecorded'),
    'the alert',
  );
  mkdirSync(folder);
  await until(async () => {
    await send(url, { method: 'POST', body: 'x' });
    return (await readStatus()).degraded.length === 0;
  }, 'the end of the fault');
});

it('a failed write is counted in the metrics, from 0', async () => {
  const { metric } = await startRecorded();
  expect(await metric('bearer_sidecar_unknown_call_write_errors_total')).toBe(0);
});

it('a second sidecar on the same file does not start, and leaves nothing behind', async () => {
  const { file, sidecar } = await startRecorded();
  const second = { env: { SIDECAR_UNKNOWN_CALLS_FILE: file } };
  await expect(startInProcess(second)).rejects.toThrow('another process writes to it');
  await sidecar.drain();
  await startInProcess(second);
});
