/** Upgrades through the proxy port, with a WebSocket server and client that we did not write: `ws`. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { createRefusalRules } from '../../../src/exchange/refusals/refusal-rules.ts';
import { selectNoProxy } from '../../../src/platform/egress/proxy-selector.ts';
import { createUpgradeHandler } from '../../../src/listener/websocket/websocket.ts';
import { createTlsContextProvider } from '../../../src/platform/tls.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { freePort } from '../../support/loopback.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { openSocket, sendRaw } from '../../support/raw-client.ts';
import { until } from '../../upstream/wire.ts';
import { startProxy } from '../proxy.ts';
import type { Proxy, ProxyOptions } from '../proxy.ts';
import { startEchoServer } from './upgrades.ts';

function startUpgrading(upstreamUrl: string, options: ProxyOptions = {}): Promise<Proxy> {
  return startProxy(upstreamUrl, {
    serveUpgrade: createUpgradeHandler({
      trust: undefined,
      egress: selectNoProxy,
      connectTimeoutMs: 5000,
      maxHeaderBytes: 65_536,
    }),
    ...options,
  });
}

async function open(proxy: Proxy, path = '/', headers: Record<string, string> = {}): Promise<WebSocket> {
  const socket = new WebSocket(proxy.url.replace('http', 'ws') + path, { headers });
  await once(socket, 'open');
  return socket;
}

/** The response in place of an upgrade, read whole. */
async function refusal(proxy: Proxy, headers: Record<string, string> = {}) {
  const socket = new WebSocket(proxy.url.replace('http', 'ws'), { headers });
  socket.on('error', () => undefined);
  const [, reply] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of reply as AsyncIterable<Buffer>) chunks.push(chunk);
  return { status: reply.statusCode, fields: reply.headers, text: Buffer.concat(chunks).toString() };
}

async function reply(socket: WebSocket, message: string | Buffer): Promise<[data: Buffer, isBinary: boolean]> {
  const reply = once(socket, 'message');
  socket.send(message);
  return (await reply) as [Buffer, boolean];
}

function attempts({ events }: Proxy) {
  return events.filter((event) => event.kind === 'attempt-ended');
}

const RAW = (path: string, more = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade${more}\r\nUpgrade: websocket\r\n` +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';

describe('an upgraded connection', () => {
  it('carries text, bytes and large messages both ways, and is recorded once', async () => {
    await using upstream = await startEchoServer();
    await using proxy = await startUpgrading(upstream.url);
    const socket = await open(proxy);
    expect(await reply(socket, 'grüße')).toEqual([Buffer.from('grüße'), false]);
    expect(await reply(socket, Buffer.from([0, 255, 13, 10]))).toEqual([Buffer.from([0, 255, 13, 10]), true]);
    const large = randomBytes(3_000_000);
    expect((await reply(socket, large))[0].equals(large)).toBe(true);
    expect(proxy.throttle.state()).toMatchObject({ inFlight: 0, streams: 1 });
    expect(proxy.ended()).toEqual([]);
    socket.close(1000, 'done');
    expect(((await once(socket, 'close')) as [number])[0]).toBe(1000);
    expect(await proxy.requestRecords(1)).toMatchObject([
      { code: 101, source: 'upstream', attempts: 1, method: 'GET', path: '/' },
    ]);
    expect(attempts(proxy)).toMatchObject([{ outcome: 'ok' }]);
    expect(proxy.throttle.state()).toMatchObject({ inFlight: 0, streams: 0, queued: 0 });
    expect(proxy.server.activeRequests.count).toBe(0);
  });

  it('is requested with the token and the upstream’s Host, without the client’s credentials and the sidecar’s fields', async () => {
    await using upstream = await startEchoServer();
    const requiredHeader = { name: 'x-key', value: 'sesame' };
    await using proxy = await startUpgrading(upstream.url, { guard: { requiredHeader } });
    const socket = new WebSocket(proxy.url.replace('http', 'ws'), ['chat', 'superchat'], {
      headers: {
        authorization: 'Basic bWU6bWU=',
        'x-sidecar-timeout-ms': '5000',
        'x-key': 'sesame',
        cookie: 'a=1',
        'x-other': 'kept',
      },
    });
    await once(socket, 'open');
    expect(socket.protocol).toBe('chat');
    const [seen] = upstream.seen;
    expect(seen?.headers).toMatchObject({
      authorization: 'Bearer token-1',
      host: new URL(upstream.url).host,
      cookie: 'a=1',
      'x-other': 'kept',
      'sec-websocket-version': '13',
      connection: 'Upgrade',
    });
    expect(Object.keys(seen?.headers ?? {}).filter((name) => /^x-(?:sidecar|key|forwarded)|^via$/.test(name))).toEqual(
      [],
    );
    expect(proxy.events.filter(({ kind }) => kind === 'authorization-overridden')).toHaveLength(1);
    socket.terminate();
  });

  it('is requested without the fields that Connection names, but with the token', async () => {
    await using upstream = await startEchoServer();
    await using proxy = await startUpgrading(upstream.url);
    const socket = await openSocket(proxy.url);
    const requested = RAW('/', ', Authorization, X-Hop').replace(
      'Upgrade: w',
      'X-Hop: a\r\nAuthorization: Basic eA==\r\nUpgrade: w',
    );
    socket.write(requested);
    await once(socket, 'data');
    expect(upstream.seen[0]?.headers.authorization).toBe('Bearer token-1');
    expect(upstream.seen[0]?.headers).not.toHaveProperty('x-hop');
    socket.destroy();
  });

  it.each(['/feed//x?x=1&y=%zz', "/a%2Fb;p=(1)?q='|{}", '/?'])(
    'has its path and query as they came: %s',
    async (path) => {
      await using upstream = await startEchoServer();
      await using proxy = await startUpgrading(`${upstream.url}/v1/`);
      const socket = await openSocket(proxy.url);
      socket.write(RAW(path));
      await once(socket, 'data');
      expect(upstream.seen[0]?.url).toBe(`/v1${path}`);
      socket.destroy();
    },
  );

  it('relays the bytes that the client sent before the 101', async () => {
    await using upstream = await startEchoServer();
    await using proxy = await startUpgrading(upstream.url);
    const frame = (text: string): string => `\x81\x82\0\0\0\0${text}`;
    const socket = await openSocket(proxy.url);
    let seen = '';
    socket.on('data', (bytes) => (seen += bytes.toString('latin1')));
    socket.write(RAW('/') + frame('ab'), 'latin1');
    socket.write(frame('cd'), 'latin1');
    await until(() => seen.endsWith('\x81\x02ab\x81\x02cd'));
    socket.end('\x88\x80\0\0\0\0', 'latin1');
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 101 }]);
  });

  it('is independent of many others at once', async () => {
    await using upstream = await startEchoServer();
    await using proxy = await startUpgrading(upstream.url, { maxStreams: 30, maxInFlight: 30 });
    const warnings: unknown[] = [];
    const onWarning = (warning: unknown): void => void warnings.push(warning);
    process.on('warning', onWarning);
    const names = Array.from({ length: 25 }, (_, index) => `/n${String(index)}`);
    const sockets = await Promise.all(names.map((name) => open(proxy, name)));
    expect(upstream.seen.map(({ url }) => url).toSorted()).toEqual(names.toSorted());
    const replies = await Promise.all(sockets.map((socket, index) => reply(socket, names[index] ?? '')));
    expect(replies.map(([data]) => String(data))).toEqual(names);
    for (const socket of sockets) socket.terminate();
    expect((await proxy.requestRecords(25)).every(({ code }) => code === 101)).toBe(true);
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });

  it('ends on both sides when either side closes', async () => {
    await using upstream = await startEchoServer();
    await using proxy = await startUpgrading(upstream.url);
    const first = await open(proxy);
    first.terminate();
    await until(() => upstream.open === 0);
    const second = await open(proxy);
    await upstream[Symbol.asyncDispose]();
    await once(second, 'close');
    expect((await proxy.requestRecords(2)).map(({ code }) => code)).toEqual([101, 101]);
    expect(proxy.throttle.state().streams).toBe(0);
  });

  it('waits in the queue with its own class', async () => {
    await using upstream = await startEchoServer();
    await using proxy = await startUpgrading(upstream.url, { maxInFlight: 1 });
    const permit = await proxy.throttle.enter(Infinity).waitForPermit();
    const opened = open(proxy, '/', { 'x-sidecar-priority': 'low' });
    await until(() => proxy.throttle.state().queued === 1);
    expect(proxy.throttle.state().queuedByPriority).toEqual({ high: 0, normal: 0, low: 1 });
    expect(upstream.seen).toEqual([]);
    permit.release();
    (await opened).terminate();
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 101 }]);
    expect(proxy.throttle.state().queued).toBe(0);
  });

  it('is cut by the drain', async () => {
    await using upstream = await startEchoServer();
    await using proxy = await startUpgrading(upstream.url);
    const socket = await open(proxy);
    proxy.server.stopAccepting();
    expect(proxy.server.abortAll()).toBe(1);
    await once(socket, 'close');
    await proxy.server.activeRequests.whenIdle();
    expect(proxy.throttle.state().streams).toBe(0);
  });

  it('goes over TLS to an upstream with a private authority', async () => {
    using certificates = makeCertificates();
    await using upstream = await startEchoServer({ tls: certificates });
    const trusting = createUpgradeHandler({
      trust: createTlsContextProvider(certificates.caFile),
      egress: selectNoProxy,
      connectTimeoutMs: 5000,
      maxHeaderBytes: 65_536,
    });
    await using proxy = await startProxy(upstream.url, { serveUpgrade: trusting });
    const socket = await open(proxy);
    expect(String((await reply(socket, 'over TLS'))[0])).toBe('over TLS');
    socket.terminate();

    const wary = createUpgradeHandler({
      trust: createTlsContextProvider(undefined),
      egress: selectNoProxy,
      connectTimeoutMs: 5000,
      maxHeaderBytes: 65_536,
    });
    await using other = await startProxy(upstream.url, { serveUpgrade: wary });
    const { status, fields } = await refusal(other);
    expect([status, fields['proxy-status']]).toEqual([502, 'bearer-sidecar; error=tls_certificate_error']);
  });
});

describe('an upgrade that the upstream refuses', () => {
  const refusing = (refusal: string) => startEchoServer({ refuse: () => refusal });

  it('with 401 invalidates the token, and the response is relayed', async () => {
    await using upstream = await refusing(
      'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno!',
    );
    await using proxy = await startUpgrading(upstream.url);
    expect(await refusal(proxy)).toMatchObject({ status: 401, text: 'no!', fields: { 'www-authenticate': 'Bearer' } });
    expect(proxy.tokens.refused).toEqual([1]);
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 401, source: 'upstream' }]);
    expect(upstream.seen).toHaveLength(1);
    expect(proxy.throttle.state().streams).toBe(0);
  });

  it('is relayed without connection-specific fields', async () => {
    await using upstream = await refusing(
      'HTTP/1.1 403 Forbidden\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\n' +
        'Proxy-Connection: keep-alive\r\nX-End: 1\r\nContent-Length: 2\r\n\r\nno',
    );
    await using proxy = await startUpgrading(upstream.url);
    const { fields } = await refusal(proxy);
    expect(fields).toMatchObject({ connection: 'close', 'x-end': '1', 'content-length': '2' });
    for (const name of ['x-hop', 'keep-alive', 'proxy-connection']) expect(fields).not.toHaveProperty(name);
  });

  it('with a 403 for the rate pauses all requests', async () => {
    await using upstream = await refusing('HTTP/1.1 403 No\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n');
    await using proxy = await startUpgrading(upstream.url);
    expect(await refusal(proxy)).toMatchObject({ status: 403, fields: { 'retry-after': '7' } });
    expect(proxy.throttle.state().pausedMs).toBeGreaterThan(6000);
  });

  it.each([503, 420])('with a configured %i pauses all requests, and the response is relayed', async (status) => {
    await using upstream = await refusing(
      `HTTP/1.1 ${String(status)} X\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n`,
    );
    await using proxy = await startUpgrading(upstream.url, { refusals: createRefusalRules([{ status }]) });
    expect(await refusal(proxy)).toMatchObject({ status });
    expect(proxy.throttle.state().pausedMs).toBeGreaterThan(6000);
    expect(attempts(proxy)).toMatchObject([{ outcome: 'rate_limited' }]);
  });

  it('whose body would have to be read for a text pauses nothing, and is relayed', async () => {
    await using upstream = await refusing('HTTP/1.1 403 No\r\nContent-Length: 4\r\n\r\nslow');
    const refusals = createRefusalRules([{ status: 403, bodyContains: 'slow' }]);
    await using proxy = await startUpgrading(upstream.url, { refusals });
    expect(await refusal(proxy)).toMatchObject({ status: 403, text: 'slow' });
    expect(proxy.throttle.state().pausedMs).toBe(0);
  });

  it('with 429 pauses all requests, and the response is relayed', async () => {
    await using upstream = await refusing('HTTP/1.1 429 Slow Down\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n');
    await using proxy = await startUpgrading(upstream.url);
    expect(await refusal(proxy)).toMatchObject({ status: 429, fields: { 'retry-after': '7' } });
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 429, source: 'upstream' }]);
    expect(proxy.throttle.state().pausedMs).toBeGreaterThan(6000);
    expect(attempts(proxy)).toMatchObject([{ outcome: 'rate_limited' }]);
  });

  it.each([
    ['chunked', 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n'],
    ['until the end', 'Connection: close\r\n\r\nabcdefg'],
    ['of a length', 'Content-Length: 7\r\nConnection: keep-alive\r\nKeep-Alive: timeout=9\r\n\r\nabcdefg'],
  ])('with a body %s is relayed whole, and the connection ends', async (_, rest) => {
    await using upstream = await refusing(`HTTP/1.1 503 Busy\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n${rest}`);
    await using proxy = await startUpgrading(upstream.url);
    const { status, text, fields } = await refusal(proxy);
    expect([status, text, fields['set-cookie']]).toEqual([503, 'abcdefg', ['a', 'b']]);
    const raw = await sendRaw(proxy.url, RAW('/'));
    expect([raw.status, raw.end]).toEqual([503, 'fin']);
    expect((await proxy.requestRecords(2)).map(({ code }) => code)).toEqual([503, 503]);
  });
});

describe('an upgrade that the sidecar refuses', () => {
  it('because the upstream refuses connections', async () => {
    await using proxy = await startUpgrading(`http://127.0.0.1:${String(await freePort())}`);
    const { status, fields, text } = await refusal(proxy);
    expect([status, fields['content-type']]).toEqual([502, 'application/problem+json']);
    expect(fields['proxy-status']).toBe('bearer-sidecar; error=connection_refused');
    expect(JSON.parse(text)).toMatchObject({ code: 'UPSTREAM_UNREACHABLE' });
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 502, localReply: 'UPSTREAM_UNREACHABLE' }]);
    expect(proxy.throttle.state()).toMatchObject({ inFlight: 0, streams: 0, queued: 0 });
  });

  it('because the upstream closes the connection', async () => {
    await using upstream = await startEchoServer({ refuse: () => 'HTTP/1.1 10' });
    await using proxy = await startUpgrading(upstream.url);
    const { status, text } = await refusal(proxy);
    expect(status).toBe(502);
    expect(JSON.parse(text)).toMatchObject({ code: 'UPSTREAM_RESET' });
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 502, attempts: 1 }]);
    expect(attempts(proxy)).toMatchObject([{ outcome: 'reset', isOwn: false }]);
  });

  it('because the upstream does not respond in time', async () => {
    const clock = new ManualClock();
    await using upstream = await startEchoServer({ ignore: () => true });
    await using proxy = await startUpgrading(upstream.url, { clock, requestTimeoutMs: 5000 });
    const reply = refusal(proxy);
    await until(() => upstream.seen.length === 1);
    await clock.advance(5000);
    expect(await reply).toMatchObject({ status: 504 });
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 504, localReply: 'UPSTREAM_TIMEOUT' }]);
    expect(attempts(proxy)).toMatchObject([{ outcome: 'timeout' }]);
    expect(proxy.throttle.state()).toMatchObject({ inFlight: 0, streams: 0 });
  });

  it('because its deadline passes', async () => {
    const clock = new ManualClock();
    await using upstream = await startEchoServer({ ignore: () => true });
    await using proxy = await startUpgrading(upstream.url, { clock });
    const reply = refusal(proxy, { 'x-sidecar-timeout-ms': '2000' });
    await until(() => upstream.seen.length === 1);
    await clock.advance(2000);
    expect(await reply).toMatchObject({ status: 504 });
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 504, localReply: 'UPSTREAM_TIMEOUT' }]);
  });

  it('because the drain cuts it: UPSTREAM_TIMEOUT when it was sent', async () => {
    await using upstream = await startEchoServer({ ignore: () => true });
    await using proxy = await startUpgrading(upstream.url);
    const reply = refusal(proxy);
    await until(() => upstream.seen.length === 1);
    expect(proxy.server.abortAll()).toBe(1);
    expect(await reply).toMatchObject({ status: 504 });
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 504, localReply: 'UPSTREAM_TIMEOUT' }]);
    expect(attempts(proxy)).toMatchObject([{ outcome: 'reset', isOwn: true }]);
  });

  it('because the drain cuts it: DRAINING when its connection was not open yet', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => void sockets.push(socket));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as AddressInfo;
    const serveUpgrade = createUpgradeHandler({
      trust: createTlsContextProvider(undefined),
      egress: selectNoProxy,
      connectTimeoutMs: 5000,
      maxHeaderBytes: 65_536,
    });
    await using proxy = await startProxy(`https://127.0.0.1:${String(port)}`, { serveUpgrade });
    const reply = refusal(proxy);
    await until(() => sockets.length === 1);
    expect(proxy.server.abortAll()).toBe(1);
    expect(await reply).toMatchObject({ status: 503, fields: { 'retry-after': '1' } });
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 503, localReply: 'DRAINING' }]);
    sockets[0]?.destroy();
    await new Promise((resolve) => silent.close(resolve));
  });

  it('because its priority is invalid', async () => {
    await using upstream = await startEchoServer();
    await using proxy = await startUpgrading(upstream.url);
    expect(await refusal(proxy, { 'x-sidecar-priority': 'urgent' })).toMatchObject({ status: 400 });
    expect(upstream.seen).toEqual([]);
  });

  it('because the limit of streams is reached', async () => {
    await using upstream = await startEchoServer();
    await using proxy = await startUpgrading(upstream.url, { maxStreams: 1 });
    const first = await open(proxy);
    const { status, fields, text } = await refusal(proxy);
    expect([status, fields['retry-after']]).toEqual([503, '1']);
    expect(JSON.parse(text)).toMatchObject({ code: 'QUEUE_FULL' });
    first.terminate();
    await proxy.requestRecords(2);
    (await open(proxy)).terminate();
  });

  it('because there is no token', async () => {
    await using upstream = await startEchoServer();
    await using proxy = await startUpgrading(upstream.url);
    proxy.tokens.stop();
    expect(await refusal(proxy)).toMatchObject({ status: 503, fields: { 'retry-after': '2' } });
    expect(upstream.seen).toEqual([]);
  });

  it.each([
    ['a web page asks', { origin: 'https://evil.example' }, 'ORIGIN_NOT_ALLOWED'],
    ['the Host is foreign', { host: 'evil.example' }, 'HOST_NOT_ALLOWED'],
  ])('because %s', async (_, headers, code) => {
    await using upstream = await startEchoServer();
    await using proxy = await startUpgrading(upstream.url);
    const { status, text } = await refusal(proxy, headers);
    expect([status, JSON.parse(text)]).toMatchObject([403, { code }]);
    expect(upstream.seen).toEqual([]);
    expect(await proxy.requestRecords(1)).toMatchObject([{ localReply: code }]);
  });

  it('because upgrades are off', async () => {
    await using upstream = await startEchoServer();
    await using proxy = await startProxy(upstream.url);
    const { status, text } = await refusal(proxy);
    expect([status, JSON.parse(text)]).toMatchObject([403, { code: 'UPGRADE_NOT_ALLOWED' }]);
  });
});

describe('a client that leaves', () => {
  it('during the handshake: the upstream connection ends, and 499 is recorded once', async () => {
    await using upstream = await startEchoServer({ ignore: () => true });
    await using proxy = await startUpgrading(upstream.url);
    const socket = await openSocket(proxy.url);
    socket.write(RAW('/'));
    await until(() => upstream.seen.length === 1);
    socket.destroy();
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 499, source: 'sidecar' }]);
    // The upstream is not to blame.
    expect(attempts(proxy)).toMatchObject([{ outcome: 'client_left', isOwn: true }]);
    expect(proxy.throttle.state()).toMatchObject({ inFlight: 0, streams: 0, queued: 0 });
    expect(proxy.server.activeRequests.count).toBe(0);
  });

  it('while it waits in the queue leaves the queue', async () => {
    await using upstream = await startEchoServer({ ignore: () => true });
    await using proxy = await startUpgrading(upstream.url, { maxInFlight: 1, maxStreams: 1 });
    const blocker = proxy.throttle.enter(Infinity);
    await blocker.waitForBodySlot();
    const permit = await blocker.waitForPermit();
    const socket = await openSocket(proxy.url);
    socket.write(RAW('/'));
    await until(() => proxy.throttle.state().queued === 1);
    socket.destroy();
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 499, attempts: 0 }]);
    expect(proxy.throttle.state().queued).toBe(0);
    permit.release();
    blocker.leave();
    expect(upstream.seen).toEqual([]);
  });

  it.each([0, 1, 2, 4, 8, 16, 32])(
    'by a reset %i turns after its request does not affect other clients',
    async (turns) => {
      const uncaught: unknown[] = [];
      const onUncaught = (error: unknown): void => void uncaught.push(error);
      process.on('uncaughtExceptionMonitor', onUncaught);
      await using upstream = await startEchoServer();
      await using proxy = await startUpgrading(upstream.url);
      const socket = await openSocket(proxy.url);
      socket.on('error', () => socket.destroy()).write(RAW('/'));
      for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
      socket.resetAndDestroy();
      const next = await open(proxy);
      expect(String((await reply(next, 'still here'))[0])).toBe('still here');
      next.terminate();
      await proxy.requestRecords(1);
      process.off('uncaughtExceptionMonitor', onUncaught);
      expect(uncaught).toEqual([]);
    },
  );
});
