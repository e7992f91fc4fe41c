/** The end of an upgraded connection and the release of its stream slot when one side is gone and the other does not react. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../support/manual-clock.ts';
import { openSocket } from '../../support/raw-client.ts';
import { waitUntil } from '../../support/until.ts';
import type { Proxy } from '../proxy.ts';
import { startRawUpstream, startUpgrading, SWITCHING, upgradeRequest } from './raw-upgrades.ts';

/** Accepts the upgrade and ignores all bytes and the FIN. */
function ignoreAll(socket: Socket): void {
  socket.resume();
  socket.write(SWITCHING);
}

/** Its own side stays open when the other ends: it closes only when a test does so, or when it is reset. */
async function openUpgraded(proxy: Proxy): Promise<Socket> {
  const { hostname, port } = new URL(proxy.url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  socket.on('error', () => socket.destroy());
  socket.write(upgradeRequest());
  const [head] = (await once(socket, 'data')) as [Buffer];
  expect(head.toString('latin1')).toMatch(/^HTTP\/1\.1 101 /);
  return socket;
}

/** Moves the clock until the condition holds: what the other side does comes in real time. @returns milliseconds moved */
async function advanceUntil(clock: ManualClock, holds: () => boolean, what: string): Promise<number> {
  const from = clock.now();
  await waitUntil(async () => {
    if (holds()) return true;
    await clock.advance(250);
    return holds();
  }, what);
  return clock.now() - from;
}

describe('a stream slot is released', () => {
  it.each([
    ['FIN', (socket: Socket) => socket.end()],
    ['close', (socket: Socket) => socket.destroy()],
    ['RST', (socket: Socket) => socket.resetAndDestroy()],
  ])('when the client leaves by %s and the upstream ignores it, repeatedly', async (_, vanish) => {
    await using upstream = await startRawUpstream(ignoreAll);
    await using proxy = await startUpgrading(upstream.url, { maxStreams: 4, maxInFlight: 8 });
    for (let round = 1; round <= 3; round++) {
      const clients = await Promise.all(Array.from({ length: 4 }, () => openUpgraded(proxy)));
      for (const client of clients) vanish(client);
      await waitUntil(() => proxy.throttle.state().streams === 0, `the slots of round ${String(round)} are free`);
      const isClosed = (): boolean => {
        // The upstream learns that the other side has closed when it writes.
        for (const socket of upstream.sockets) if (!socket.destroyed) socket.write('x');
        return upstream.open === 0;
      };
      await waitUntil(isClosed, 'the upstream connections are closed');
      for (const client of clients) client.destroy();
    }
    expect((await proxy.requestRecords(12)).map(({ code }) => code)).toEqual(Array(12).fill(101));
    expect(proxy.server.activeRequests.count).toBe(0);
  });

  it.each([
    ['FIN', (socket: Socket) => socket.end()],
    ['RST', (socket: Socket) => socket.resetAndDestroy()],
  ])('when the upstream leaves by %s and the client ignores it', async (_, vanish) => {
    const clock = new ManualClock();
    await using upstream = await startRawUpstream(ignoreAll);
    await using proxy = await startUpgrading(upstream.url, { clock });
    const client = await openUpgraded(proxy);
    client.resume();
    const [atUpstream] = upstream.sockets;
    if (atUpstream === undefined) throw new Error('no connection');
    vanish(atUpstream);
    const waitedMs = await advanceUntil(clock, () => proxy.throttle.state().streams === 0, 'the slot is free');
    expect(waitedMs).toBeLessThanOrEqual(3000);
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 101 }]);
    expect(clock.pendingTimers).toBe(0);
    client.destroy();
  });

  it('when the client is gone and the upstream neither reads its bytes nor closes', async () => {
    const clock = new ManualClock();
    await using upstream = await startRawUpstream((socket) => socket.pause().write(SWITCHING));
    await using proxy = await startUpgrading(upstream.url, { clock });
    const client = await openUpgraded(proxy);
    client.write(Buffer.alloc(16 * 1024 * 1024));
    await waitUntil(() => client.writableLength > 0 && client.bytesWritten > 1024 * 1024, 'the buffers are full');
    client.resetAndDestroy();
    const waitedMs = await advanceUntil(clock, () => proxy.throttle.state().streams === 0, 'the slot is free');
    expect(waitedMs).toBeLessThanOrEqual(30_000);
    expect(clock.pendingTimers).toBe(0);
  });

  it('when the client is gone and the upstream goes on sending', async () => {
    await using upstream = await startRawUpstream((socket) => {
      socket.resume().write(SWITCHING);
      const beat = setInterval(() => socket.write('beat'), 20);
      socket.once('close', () => clearInterval(beat));
    });
    await using proxy = await startUpgrading(upstream.url);
    const client = await openUpgraded(proxy);
    client.destroy();
    await waitUntil(() => proxy.throttle.state().streams === 0 && upstream.open === 0, 'the slot is free');
  });
});

describe('a half-closed upgraded connection', () => {
  it('stays open while bytes flow', async () => {
    const clock = new ManualClock();
    await using upstream = await startRawUpstream(ignoreAll);
    await using proxy = await startUpgrading(upstream.url, { clock });
    const client = await openUpgraded(proxy);
    let seen = '';
    client.on('data', (bytes: Buffer) => (seen += bytes.toString()));
    client.end('last words');
    for (let beat = 1; beat <= 20; beat++) {
      upstream.sockets[0]?.write(`${String(beat)};`);
      await waitUntil(() => seen.endsWith(`${String(beat)};`), 'the client reads on');
      await clock.advance(900);
    }
    upstream.sockets[0]?.end('bye');
    await once(client, 'end');
    expect(seen.endsWith('20;bye')).toBe(true);
    await proxy.requestRecords(1);
    expect(clock.pendingTimers).toBe(0);
  });

  it('lets the client finish after a FIN of the upstream', async () => {
    const clock = new ManualClock();
    let received = '';
    await using upstream = await startRawUpstream((socket) => {
      socket.on('data', (bytes: Buffer) => (received += bytes.toString()));
      socket.end(SWITCHING);
    });
    await using proxy = await startUpgrading(upstream.url, { clock });
    const client = await openUpgraded(proxy);
    await once(client.resume(), 'end');
    client.write('still ');
    await waitUntil(() => received === 'still ', 'the upstream reads on');
    client.end('here');
    await waitUntil(() => received === 'still here', 'the upstream has all');
    await proxy.requestRecords(1);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('a client that leaves during the handshake', () => {
  it.each([
    ['FIN', '', '', (socket: Socket) => socket.end()],
    ['RST', '', '', (socket: Socket) => socket.resetAndDestroy()],
    ['FIN', ', after early bytes,', 'early', (socket: Socket) => socket.end()],
    ['RST', ', after early bytes,', 'early', (socket: Socket) => socket.resetAndDestroy()],
  ])('by %s%s releases its slot at once', async (_by, _with, early, vanish) => {
    await using upstream = await startRawUpstream(() => undefined);
    await using proxy = await startUpgrading(upstream.url);
    const client = await openSocket(proxy.url);
    client.write(upgradeRequest());
    await waitUntil(
      () => proxy.throttle.state().streams === 1 && upstream.sockets.length === 1,
      'the upstream is asked',
    );
    if (early !== '') await new Promise((resolve) => client.write(early, resolve));
    vanish(client);
    await waitUntil(() => proxy.throttle.state().streams === 0, 'the slot is free');
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 499 }]);
    client.destroy();
  });

  it('gets 400 when it sends more than 64 KiB before the 101', async () => {
    await using upstream = await startRawUpstream(() => undefined);
    await using proxy = await startUpgrading(upstream.url);
    const client = await openSocket(proxy.url);
    client.on('error', () => client.destroy());
    client.write(upgradeRequest());
    client.write(Buffer.alloc(1024 * 1024));
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 400, localReply: 'BAD_REQUEST' }]);
    expect(proxy.throttle.state().streams).toBe(0);
    client.destroy();
  });
});
