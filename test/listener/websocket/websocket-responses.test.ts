/** Upgrades with targets in absolute form, and responses that refuse the upgrade: backpressure, cuts, timeouts. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { selectNoProxy } from '../../../src/platform/egress/proxy-selector.ts';
import { createUpgradeHandler } from '../../../src/listener/websocket/websocket.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { openSocket, readToEnd, sendRaw } from '../../support/raw-client.ts';
import { afterHead, startWireServer, until } from '../../upstream/wire.ts';
import { startProxy } from '../proxy.ts';
import type { Proxy, ProxyOptions } from '../proxy.ts';
import { startEchoServer } from './upgrades.ts';

const EVERY_HOST = { allowedHosts: undefined };

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

const ASK = (target: string): string =>
  `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';

/** Uncaught errors, which outside a test would end the process. */
function collectUncaught(): readonly unknown[] {
  const uncaught: unknown[] = [];
  const onUncaught = (error: unknown): void => void uncaught.push(error);
  process.on('uncaughtExceptionMonitor', onUncaught);
  onTestFinished(() => void process.off('uncaughtExceptionMonitor', onUncaught));
  return uncaught;
}

/** The first line that comes back; the connection is closed then. */
async function statusLine(proxy: Proxy, target: string): Promise<string> {
  const socket = await openSocket(proxy.url);
  socket.write(ASK(target));
  const [data] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return data.toString('latin1').split('\r\n')[0] ?? '';
}

describe('a target in absolute form', () => {
  it('with an invalid port is refused, and the next upgrade is served', async () => {
    const uncaught = collectUncaught();
    await using upstream = await startEchoServer();
    await using proxy = await startUpgrading(upstream.url);
    expect(await sendRaw(proxy.url, ASK('http://127.0.0.1:99999/feed'))).toMatchObject({ status: 400, end: 'fin' });
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 400, localReply: 'BAD_REQUEST', path: '/feed' }]);
    expect(upstream.seen).toEqual([]);
    expect(await statusLine(proxy, '/feed')).toBe('HTTP/1.1 101 Switching Protocols');
    await proxy.requestRecords(2);
    expect(proxy.throttle.state()).toMatchObject({ inFlight: 0, streams: 0, queued: 0 });
    expect(uncaught).toEqual([]);
  });

  it.each([
    ['http://[/feed?x=1', '/feed?x=1'],
    ['http://a:99999/feed?x=1', '/feed?x=1'],
    ['http://a:b:c//d:99999/', '//d:99999/'],
  ])('is reduced to its path where every host is allowed: %s', async (target, requested) => {
    const uncaught = collectUncaught();
    await using upstream = await startEchoServer();
    await using proxy = await startUpgrading(`${upstream.url}/v1`, { guard: EVERY_HOST });
    expect(await statusLine(proxy, target)).toBe('HTTP/1.1 101 Switching Protocols');
    expect(upstream.seen[0]?.url).toBe(`/v1${requested}`);
    // Recorded with the client's path, without the upstream's base.
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 101, path: requested.replace(/\?.*/, '') }]);
    expect(uncaught).toEqual([]);
  });
});

it('an error while an upgrade is sent gets a local reply, and leaves no timer, listener or slot behind', async () => {
  const uncaught = collectUncaught();
  const clock = new ManualClock();
  await using upstream = await startEchoServer();
  await using proxy = await startUpgrading(upstream.url, { clock });
  const good = proxy.tokens.held;
  if (good === undefined) throw new Error('no token');
  proxy.tokens.held = { ...good, value: 'not\nfit for a field' };
  const reply = await sendRaw(proxy.url, ASK('/'));
  expect(reply).toMatchObject({ status: 502, end: 'fin' });
  expect(reply.bytes.toString()).not.toContain('fit for');
  expect(await proxy.requestRecords(1)).toMatchObject([{ code: 502, localReply: 'UPSTREAM_PROTOCOL_ERROR' }]);
  expect(upstream.seen).toEqual([]);
  expect(clock.pendingTimers).toBe(0);
  expect(proxy.throttle.state()).toMatchObject({ inFlight: 0, streams: 0, queued: 0 });
  proxy.tokens.held = good;
  expect(await statusLine(proxy, '/')).toBe('HTTP/1.1 101 Switching Protocols');
  expect(uncaught).toEqual([]);
});

describe('a response that refuses the upgrade', () => {
  it.each([
    ['of a length', 'Content-Length: 100\r\n\r\nabc'],
    ['chunked', 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'],
  ])('%s, cut by the upstream, is cut for the client, and its slot is released', async (_, rest) => {
    await using upstream = await startWireServer(
      afterHead(`HTTP/1.1 503 Busy\r\n${rest}`, (socket) => void setImmediate(() => socket.destroy())),
    );
    await using proxy = await startUpgrading(upstream.url.href);
    const reply = await sendRaw(proxy.url, ASK('/'));
    expect([reply.status, reply.end]).toEqual([503, 'reset']);
    expect(reply.body.toString()).not.toContain('0\r\n\r\n');
    expect(await proxy.requestRecords(1)).toMatchObject([
      { code: 503, source: 'upstream', fault: expect.any(String) as string },
    ]);
    expect(proxy.throttle.state()).toMatchObject({ inFlight: 0, streams: 0, queued: 0 });
    expect(proxy.server.activeRequests.count).toBe(0);
  });

  it('is read no faster than the client reads, and is relayed whole', async () => {
    await using upstream = await startFlood();
    await using proxy = await startUpgrading(upstream.url.href);
    const socket = await askAndStall(proxy);
    await until(() => upstream.hasStalled());
    expect(upstream.writtenBytes()).toBeLessThan(BODY_BYTES / 2);
    socket.resume();
    const reply = await readToEnd(socket);
    expect([reply.status, reply.body.length, reply.end]).toEqual([503, BODY_BYTES, 'fin']);
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 503, fault: undefined }]);
    expect(proxy.throttle.state().streams).toBe(0);
  });

  it('ends upstream when the client leaves', async () => {
    await using upstream = await startFlood();
    await using proxy = await startUpgrading(upstream.url.href);
    const socket = await askAndStall(proxy);
    await until(() => upstream.hasStalled());
    socket.destroy();
    await until(() => upstream.sockets[0]?.destroyed === true);
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 503, fault: undefined }]);
    expect(proxy.throttle.state().streams).toBe(0);
  });
});

describe('a response that refuses the upgrade and stops', () => {
  const [IDLE_MS, LENGTH] = [5000, 4];

  /** Asks for an upgrade that is refused with so much of a body of four bytes. */
  async function refuse(begun: string, bodyIdleTimeoutMs: number) {
    const clock = new ManualClock();
    const upstream = await startWireServer(
      afterHead(`HTTP/1.1 403 Forbidden\r\nContent-Length: ${String(LENGTH)}\r\n\r\n${begun}`),
    );
    const proxy = await startUpgrading(upstream.url.href, { clock, bodyIdleTimeoutMs });
    onTestFinished(async () => {
      await proxy[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    });
    const socket = await openSocket(proxy.url);
    let seen = '';
    socket.on('data', (bytes) => (seen += bytes.toString()));
    const reply = readToEnd(socket);
    socket.write(ASK('/'));
    const reached = (body: string): Promise<void> => until(() => seen.endsWith(`\r\n\r\n${body}`));
    await reached(begun);
    return { clock, upstream, proxy, reply, reached };
  }

  it.each(['', 'abc'])(
    'after "%s" is cut for the client after the timeout, and its slot is released',
    async (begun) => {
      const { clock, upstream, proxy, reply } = await refuse(begun, IDLE_MS);
      await clock.advance(IDLE_MS - 1);
      expect(proxy.throttle.state().streams).toBe(1);
      await clock.advance(1);
      const fault =
        "the upstream's response stopped: nothing was received for 5000 ms: upstream.bodyIdleTimeoutMs (SIDECAR_BODY_IDLE_TIMEOUT_MS)";
      expect(await proxy.requestRecords(1)).toMatchObject([{ code: 403, source: 'upstream', fault }]);
      expect(proxy.throttle.state()).toMatchObject({ inFlight: 0, streams: 0, queued: 0 });
      await until(() => upstream.sockets[0]?.destroyed === true);
      await clock.advance(200);
      const { body, end } = await reply;
      expect([body.toString(), end]).toEqual([begun, 'reset']);
      expect(proxy.server.activeRequests.count).toBe(0);
      expect(clock.pendingTimers).toBe(0);
    },
  );

  it('is relayed as long as each byte comes in time, and leaves no timer behind', async () => {
    const { clock, upstream, proxy, reply, reached } = await refuse('', IDLE_MS);
    for (let sent = 1; sent <= LENGTH; sent++) {
      await clock.advance(IDLE_MS - 1);
      upstream.sockets[0]?.write('x');
      await reached('x'.repeat(sent));
    }
    const { status, body, end } = await reply;
    expect([status, body.toString(), end]).toEqual([403, 'xxxx', 'fin']);
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 403, fault: undefined }]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('is never cut with a timeout of 0', async () => {
    const { clock, proxy } = await refuse('abc', 0);
    await clock.advance(86_400_000);
    expect(proxy.throttle.state().streams).toBe(1);
  });

  it('because the client does not read is cut', async () => {
    const clock = new ManualClock();
    await using upstream = await startFlood();
    await using proxy = await startUpgrading(upstream.url.href, { clock, bodyIdleTimeoutMs: IDLE_MS });
    const socket = await askAndStall(proxy);
    await until(() => upstream.hasStalled());
    await clock.advance(IDLE_MS);
    const fault =
      'the client stopped reading: nothing was taken for 5000 ms: upstream.bodyIdleTimeoutMs (SIDECAR_BODY_IDLE_TIMEOUT_MS)';
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 503, source: 'upstream', fault }]);
    expect(proxy.throttle.state().streams).toBe(0);
    socket.destroy();
  });
});

/** More than the buffers of four sockets hold. */
const BODY_BYTES = 96 * 1024 * 1024;

/** An upstream that refuses at length, and writes only what is taken from it. */
async function startFlood() {
  let written = 0;
  let lastAt = performance.now();
  const chunk = Buffer.alloc(256 * 1024, 'x');
  const pour = (socket: Socket): void => {
    while (written < BODY_BYTES && !socket.destroyed) {
      written += chunk.length;
      lastAt = performance.now();
      if (!socket.write(chunk)) return void socket.once('drain', () => pour(socket));
    }
    socket.end();
  };
  const head = `HTTP/1.1 503 Busy\r\nContent-Length: ${String(BODY_BYTES)}\r\n\r\n`;
  const server = await startWireServer(afterHead(head, pour));
  return Object.assign(server, {
    writtenBytes: () => written,
    hasStalled: () => written >= BODY_BYTES || (written > 0 && performance.now() - lastAt > 300),
  });
}

/** Requests an upgrade and does not read the response. */
async function askAndStall(proxy: Proxy): Promise<Socket> {
  const { hostname, port } = new URL(proxy.url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await once(socket, 'connect');
  socket.pause();
  socket.write(ASK('/'));
  return socket;
}
