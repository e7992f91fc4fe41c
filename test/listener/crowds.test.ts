/** More connections or requests than the limits allow, and clients that never finish their request head. */
import type { Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bind } from '../../src/listener/bind.ts';
import { call } from '../support/calls.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openSocket, readToEnd, sendRaw } from '../support/raw-client.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { waitUntil } from '../support/until.ts';
import { startProxy } from './proxy.ts';

async function openIdle(url: string): Promise<Socket> {
  const socket = await openSocket(url);
  onTestFinished(() => void socket.destroy());
  return socket;
}

const REQUEST = 'GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';

async function isServed(socket: Socket): Promise<boolean> {
  const reply = new Promise<boolean>((resolve) => {
    socket.once('data', (bytes) => resolve(String(bytes).startsWith('HTTP/1.1 200 ')));
    socket.once('close', () => resolve(false));
  });
  socket.write(REQUEST);
  return reply;
}

describe('listen.maxConnections', () => {
  it('refuses a connection beyond the limit with 503 while the others are new or in use', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url, { maxConnections: 2, clock: new ManualClock() });
    const [first, second] = [await openIdle(proxy.url), await openIdle(proxy.url)];
    expect(await isServed(first)).toBe(true);
    const third = await readToEnd(await openSocket(proxy.url));
    expect(third).toMatchObject({ status: 503, end: 'fin', headers: { connection: 'close', 'retry-after': '1' } });
    expect(JSON.parse(third.body.toString())).toMatchObject({ code: 'QUEUE_FULL' });
    expect([await isServed(first), await isServed(second)]).toEqual([true, true]);
    expect(upstream.requests).toHaveLength(3);
    const refused = proxy.ended().filter(({ code }) => code === 503);
    expect(refused).toMatchObject([{ source: 'sidecar', localReply: 'QUEUE_FULL' }]);
  });

  it('closes the longest idle connection for a new one', async () => {
    await using upstream = await startRecordingUpstream();
    const clock = new ManualClock();
    await using proxy = await startProxy(upstream.url, { maxConnections: 2, clock });
    const [first, second] = [await openIdle(proxy.url), await openIdle(proxy.url)];
    expect([await isServed(first), await isServed(second)]).toEqual([true, true]);
    await clock.advance(500);
    expect(await isServed(first)).toBe(true);
    await clock.advance(600);
    const end = readToEnd(second);
    const third = await openIdle(proxy.url);
    expect(await end).toMatchObject({ end: 'fin', bytes: Buffer.alloc(0) });
    expect([await isServed(first), await isServed(third)]).toEqual([true, true]);
  });

  it('never closes a connection with a pending request', async () => {
    await using upstream = await startRecordingUpstream((request, response) => {
      if (request.path !== '/never') response.end();
    });
    const clock = new ManualClock();
    await using proxy = await startProxy(upstream.url, { maxConnections: 1, clock });
    const first = await openIdle(proxy.url);
    first.write('GET /never HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
    await waitUntil(() => upstream.requests.length === 1, 'the request reaches the upstream');
    await clock.advance(30_000);
    expect((await readToEnd(await openSocket(proxy.url))).status).toBe(503);
    expect(first.destroyed).toBe(false);
  });

  it('replies with 503 to a client that is displaced within its first request head', async () => {
    await using upstream = await startRecordingUpstream();
    const clock = new ManualClock();
    await using proxy = await startProxy(upstream.url, { maxConnections: 1, clock });
    const slow = await openSocket(proxy.url);
    const reply = readToEnd(slow);
    slow.write('GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\nX-');
    await waitUntil(() => proxy.server.connections.state().connections === 1, 'the connection is open');
    await clock.advance(1000);
    expect(await isServed(await openIdle(proxy.url))).toBe(true);
    expect((await reply).status).toBe(503);
  });

  it('closes the oldest refused connection when too many are still open', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url, { maxConnections: 0, maxRefusedConnections: 2 });
    const refused = await Promise.all(
      [1, 2, 3].map(async () => {
        const socket = await openSocket(proxy.url);
        onTestFinished(() => void socket.destroy());
        return readToEnd(socket);
      }),
    );
    expect(refused.map(({ status }) => status)).toEqual([503, 503, 503]);
    expect(proxy.ended()).toHaveLength(3);
  });

  it('counts connections of all address families together', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url, { maxConnections: 1 });
    const other = await bind(() => proxy.server.createServer(), { kind: 'tcp', host: '127.0.0.1', port: 0 });
    expect(await isServed(await openIdle(proxy.url))).toBe(true);
    expect(await isServed(await openIdle(other.url))).toBe(false);
  });

  it('accepts a new connection when another one has closed', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url, { maxConnections: 1 });
    const first = await openSocket(proxy.url);
    const ended = readToEnd(first);
    first.write(REQUEST.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
    expect((await ended).status).toBe(200);
    expect(await isServed(await openIdle(proxy.url))).toBe(true);
  });

  it('is reported once a minute with the number of refused connections', async () => {
    await using upstream = await startRecordingUpstream();
    const clock = new ManualClock();
    await using proxy = await startProxy(upstream.url, { maxConnections: 0, clock });
    const warnings = () => proxy.events.filter(({ kind }) => kind === 'warning');
    for (let count = 0; count < 3; count++) await readToEnd(await openSocket(proxy.url));
    expect(warnings()).toHaveLength(1);
    await clock.advance(60_000);
    await readToEnd(await openSocket(proxy.url));
    const counts = warnings().map((event) => /refused so far: \d+/.exec('message' in event ? event.message : '')?.[0]);
    expect(counts).toEqual(['refused so far: 1', 'refused so far: 4']);
  });
});

describe('requests beyond the limit', () => {
  const KEPT = 'Host: 127.0.0.1\r\n';
  const statuses = (bytes: Buffer) => bytes.toString().match(/HTTP\/1\.1 \d+/g) ?? [];

  it('get 503, and their connections stay open', async () => {
    await using upstream = await startRecordingUpstream(() => undefined);
    await using proxy = await startProxy(upstream.url, { maxRequests: 1 });
    const first = await openIdle(proxy.url);
    first.write(REQUEST);
    await waitUntil(() => upstream.requests.length === 1, 'the request reaches the upstream');
    const reply = await sendRaw(
      proxy.url,
      `GET /b HTTP/1.1\r\n${KEPT}\r\nGET /c HTTP/1.1\r\n${KEPT}Connection: close\r\n\r\n`,
    );
    expect(statuses(reply.bytes)).toEqual(['HTTP/1.1 503', 'HTTP/1.1 503']);
    expect(await proxy.requestRecords(2)).toMatchObject([{ localReply: 'QUEUE_FULL' }, { localReply: 'QUEUE_FULL' }]);
  });

  it.each([
    ['GETs', (path: string) => `GET ${path} HTTP/1.1\r\n${KEPT}\r\n`],
    ['POSTs', (path: string) => `POST ${path} HTTP/1.1\r\n${KEPT}Content-Length: 4\r\n\r\nbody`],
  ])('pipelined on one connection, %s: 64 are served, one gets 503, and the connection closes', async (_, ask) => {
    await using upstream = await startRecordingUpstream((_request, response) => void response.end('ok'));
    await using proxy = await startProxy(upstream.url);
    const reply = await sendRaw(proxy.url, Array.from({ length: 300 }, (__, at) => ask(`/${String(at)}`)).join(''));
    expect(statuses(reply.bytes)).toEqual([...Array<string>(64).fill('HTTP/1.1 200'), 'HTTP/1.1 503']);
    expect(reply.bytes.toString().match(/connection: close/gi)).toHaveLength(1);
    expect(upstream.requests).toHaveLength(64);
    expect((await proxy.requestRecords(65)).filter(({ code }) => code === 503)).toMatchObject([
      { localReply: 'QUEUE_FULL' },
    ]);
    await proxy.server.activeRequests.whenIdle();
    expect(proxy.server.connections.state().connections).toBe(0);
  });
});

describe('a client that sends its request head slowly', () => {
  it('gets 408 after the timeout, and its connection closes', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url, { headersTimeoutMs: 100 });
    const socket = await openSocket(proxy.url);
    const reply = readToEnd(socket);
    socket.write('GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ');
    const drip = setInterval(() => socket.write('a'), 10);
    onTestFinished(() => clearInterval(drip));
    expect(await reply).toMatchObject({
      status: 408,
      end: 'fin',
      headers: { 'content-type': 'application/problem+json' },
    });
    expect(await proxy.requestRecords(1)).toMatchObject([
      { code: 408, source: 'sidecar', localReply: 'REQUEST_TIMEOUT' },
    ]);
    expect(upstream.requests).toHaveLength(0);
  });

  it('is disconnected after the timeout when it sends nothing', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url, { headersTimeoutMs: 100 });
    expect(await readToEnd(await openSocket(proxy.url))).toMatchObject({ end: 'fin' });
  });

  it('does not delay other clients', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url);
    const drippers = await Promise.all(Array.from({ length: 300 }, () => openIdle(proxy.url)));
    for (const socket of drippers) socket.write('POST /a HTTP/1.1\r\nHost: 127.0.0.1\r\nX-');
    const drip = setInterval(() => drippers.forEach((socket) => socket.write('a')), 5);
    onTestFinished(() => clearInterval(drip));
    for (let count = 0; count < 20; count++) expect((await call(`${proxy.url}/a`)).status).toBe(200);
    expect(upstream.requests).toHaveLength(20);
  });
});
