/**
 * Every byte of an upgraded connection: random bytes in random pieces in both directions, early ones too, a slow reader, and either side
 * ending first. Each side receives exactly what the other has sent.
 */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { waitUntil } from '../../support/until.ts';
import { startRawUpstream, startUpgrading, SWITCHING, upgradeRequest } from './raw-upgrades.ts';

interface Side {
  /** Bytes sent in the packet that carries the head. */
  readonly early: number;
  /** Lengths of the writes behind it; 0 lets a turn of the event loop pass. */
  readonly pieces: readonly number[];
  /** Stops reading for 30 ms after this number of bytes; 0 = never. */
  readonly stopsAfter: number;
}

interface Received {
  length: number;
  digest: string;
  /** The other side has ended its half, or the connection was reset. */
  isOver: boolean;
}

const digestOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

function bytesOf(side: Side): Buffer {
  return randomBytes(side.early + side.pieces.reduce((sum, length) => sum + length, 0));
}

function receive(socket: Socket, first: Buffer, stopsAfter: number): Received {
  const hash = createHash('sha256');
  const received: Received = { length: 0, digest: '', isOver: false };
  const take = (bytes: Buffer): void => {
    const before = received.length;
    received.length += bytes.length;
    hash.update(bytes);
    if (stopsAfter === 0 || before >= stopsAfter || received.length < stopsAfter) return;
    socket.pause();
    setTimeout(() => socket.resume(), 30);
  };
  const end = (): void => {
    if (!received.isOver) received.digest = hash.digest('hex');
    received.isOver = true;
  };
  socket.on('data', take).once('end', end).once('close', end);
  if (first.length > 0) take(first);
  return received;
}

async function send(socket: Socket, bytes: Buffer, { early, pieces }: Side): Promise<void> {
  let at = early;
  for (const length of pieces) {
    if (length === 0) await new Promise(setImmediate);
    // No waiting for 'drain': what the sidecar does not read fills the kernel's buffers and the sender's own.
    else socket.write(bytes.subarray(at, at + length));
    at += length;
  }
}

const pieces = fc.array(fc.oneof(fc.constant(0), fc.nat(300), fc.nat(20_000), fc.nat(200_000)), { maxLength: 12 });
const side = fc.record({
  early: fc.oneof(fc.constant(0), fc.nat(40), fc.nat(20_000)),
  pieces: fc.oneof(
    { weight: 8, arbitrary: pieces },
    { weight: 1, arbitrary: fc.constantFrom([3_000_000], [1_500_000, 0, 2_500_000]) },
  ),
  stopsAfter: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 300_000 })),
});
const endOrder = fc.constantFrom('client ends first', 'upstream ends first', 'both end');

/** Runs one conversation over raw TCP. @returns what each side received */
async function converse(
  proxyUrl: string,
  setRespond: (respond: (socket: Socket, early: Buffer) => void) => void,
  sides: { readonly client: Side; readonly upstream: Side; readonly order: string },
) {
  const { client, upstream, order } = sides;
  const sent = { client: bytesOf(client), upstream: bytesOf(upstream) };
  let atUpstream: Received | undefined;
  setRespond((socket, early) => {
    atUpstream = receive(socket, early, upstream.stopsAfter);
    socket.write(Buffer.concat([Buffer.from(SWITCHING, 'latin1'), sent.upstream.subarray(0, upstream.early)]));
    void send(socket, sent.upstream, upstream).then(() => {
      if (order === 'client ends first')
        void waitUntil(() => atUpstream?.isOver === true, 'FIN').then(() => socket.end());
      else socket.end();
    });
  });
  const { hostname, port } = new URL(proxyUrl);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true, allowHalfOpen: true });
  socket.on('error', () => socket.destroy());
  socket.write(Buffer.concat([Buffer.from(upgradeRequest(), 'latin1'), sent.client.subarray(0, client.early)]));
  const head = await readHead(socket);
  const atClient = receive(socket, head.rest, client.stopsAfter);
  await send(socket, sent.client, client);
  if (order === 'upstream ends first') await waitUntil(() => atClient.isOver, 'the upstream has ended');
  socket.end();
  await waitUntil(() => atClient.isOver && atUpstream?.isOver === true, 'both sides have seen the end');
  socket.destroy();
  return { sent, atClient, atUpstream };
}

async function readHead(socket: Socket): Promise<{ readonly rest: Buffer }> {
  let bytes = Buffer.alloc(0);
  while (!bytes.includes('\r\n\r\n')) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    bytes = Buffer.concat([bytes, chunk]);
  }
  socket.pause();
  expect(bytes.toString('latin1')).toMatch(/^HTTP\/1\.1 101 /);
  const rest = bytes.subarray(bytes.indexOf('\r\n\r\n') + 4);
  setImmediate(() => socket.resume());
  return { rest };
}

describe('each side of an upgraded connection receives exactly what the other has sent', () => {
  it('over raw TCP', async () => {
    let respond: (socket: Socket, early: Buffer) => void = () => undefined;
    await using upstream = await startRawUpstream((socket, early) => respond(socket, early));
    await using proxy = await startUpgrading(upstream.url, { maxStreams: 8 });
    let conversations = 0;
    await fc.assert(
      fc.asyncProperty(side, side, endOrder, async (client, atUpstream, order) => {
        const run = await converse(proxy.url, (next) => (respond = next), { client, upstream: atUpstream, order });
        expect(run.atUpstream).toMatchObject({ length: run.sent.client.length, digest: digestOf(run.sent.client) });
        expect(run.atClient).toMatchObject({ length: run.sent.upstream.length, digest: digestOf(run.sent.upstream) });
        conversations++;
        await waitUntil(() => proxy.throttle.state().streams === 0, 'the slot is free');
      }),
      { numRuns: 80, endOnFailure: true },
    );
    expect(await proxy.requestRecords(conversations)).toHaveLength(conversations);
  }, 120_000);

  it('between a WebSocket client and a WebSocket server', async () => {
    const server = new WebSocketServer({
      port: 0,
      host: '127.0.0.1',
      perMessageDeflate: true,
      skipUTF8Validation: true,
    });
    await once(server, 'listening');
    server.on('connection', (socket) => {
      // Its greeting comes in the packet of the 101, or just behind it.
      socket.send(Buffer.from('greeting'));
      socket.on('message', (data: Buffer, isBinary) => socket.send(data, { binary: isBinary }));
    });
    await using proxy = await startUpgrading(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}`);
    const message = fc.oneof(fc.nat(200), fc.nat(70_000), fc.constant(1_000_000));
    await fc.assert(
      fc.asyncProperty(fc.array(message, { maxLength: 6 }), fc.boolean(), async (lengths, isCompressed) => {
        const socket = new WebSocket(proxy.url.replace('http', 'ws'), { perMessageDeflate: isCompressed });
        const received: string[] = [];
        socket.on('message', (data: Buffer) => received.push(digestOf(data)));
        await once(socket, 'open');
        const messages = lengths.map((length) => randomBytes(length));
        for (const each of messages) socket.send(each);
        await waitUntil(() => received.length === messages.length + 1, 'all messages have come back');
        expect(received).toEqual([Buffer.from('greeting'), ...messages].map(digestOf));
        socket.close(1000);
        expect(((await once(socket, 'close')) as [number])[0]).toBe(1000);
      }),
      { numRuns: 30, endOnFailure: true },
    );
    await waitUntil(() => proxy.throttle.state().streams === 0, 'all slots are free');
    server.close();
  });
});
