/** More connections than there may be, and clients that never finish their request's head. */
import type { Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bind } from '../../src/listener/bind.ts';
import { call } from '../support/calls.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openSocket, readToEnd } from '../support/raw-client.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { startProxy } from './proxy.ts';

async function openIdle(url: string): Promise<Socket> {
  const socket = await openSocket(url);
  onTestFinished(() => void socket.destroy());
  return socket;
}

const REQUEST = 'GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';

async function isServed(socket: Socket): Promise<boolean> {
  const answer = new Promise<boolean>((resolve) => {
    socket.once('data', (bytes) => resolve(String(bytes).startsWith('HTTP/1.1 200 ')));
    socket.once('close', () => resolve(false));
  });
  socket.write(REQUEST);
  return answer;
}

describe('listen.maxConnections', () => {
  it('closes one connection too many, and serves those that are open', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url, { maxConnections: 2 });
    const [first, second] = [await openIdle(proxy.url), await openIdle(proxy.url)];
    expect(await isServed(first)).toBe(true);
    const third = await openSocket(proxy.url);
    expect(await readToEnd(third)).toMatchObject({ end: 'fin', bytes: Buffer.alloc(0) });
    expect([await isServed(first), await isServed(second)]).toEqual([true, true]);
    expect(upstream.requests).toHaveLength(3);
  });

  it('counts the address families together', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url, { maxConnections: 1 });
    const other = await bind(() => proxy.server.createServer(), { kind: 'tcp', host: '127.0.0.1', port: 0 });
    expect(await isServed(await openIdle(proxy.url))).toBe(true);
    expect(await isServed(await openIdle(other.url))).toBe(false);
  });

  it('has room again when one leaves', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url, { maxConnections: 1 });
    const first = await openSocket(proxy.url);
    const ended = readToEnd(first);
    first.write(REQUEST.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
    expect((await ended).status).toBe(200);
    expect(await isServed(await openIdle(proxy.url))).toBe(true);
  });

  it('is warned of once a minute, with the number refused', async () => {
    await using upstream = await startRecordingUpstream();
    const clock = new ManualClock();
    await using proxy = await startProxy(upstream.url, { maxConnections: 0, clock });
    const warnings = () => proxy.events.filter(({ kind }) => kind === 'warning');
    for (let count = 0; count < 3; count++) await readToEnd(await openSocket(proxy.url));
    expect(warnings()).toHaveLength(1);
    await clock.advance(60_000);
    await readToEnd(await openSocket(proxy.url));
    expect(warnings()).toMatchObject([
      { message: 'as many connections are open as listen.maxConnections allows (0); refused so far: 1' },
      { message: 'as many connections are open as listen.maxConnections allows (0); refused so far: 4' },
    ]);
  });
});

describe('a client that drips its head', () => {
  it('is answered 408 and closed when its time is up', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url, { headersTimeoutMs: 100 });
    const socket = await openSocket(proxy.url);
    const answer = readToEnd(socket);
    socket.write('GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ');
    const drip = setInterval(() => socket.write('a'), 10);
    onTestFinished(() => clearInterval(drip));
    expect(await answer).toMatchObject({
      status: 408,
      end: 'fin',
      fields: { 'content-type': 'application/problem+json' },
    });
    expect(await proxy.told(1)).toMatchObject([{ code: 408, source: 'sidecar', localReply: 'REQUEST_TIMEOUT' }]);
    expect(upstream.requests).toHaveLength(0);
  });

  it('is closed as well when it never begins', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url, { headersTimeoutMs: 100 });
    expect(await readToEnd(await openSocket(proxy.url))).toMatchObject({ end: 'fin' });
  });

  it('does not keep others waiting, however many do it', async () => {
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
