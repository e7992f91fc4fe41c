/** Pipelines of generated lengths and sizes: each gets its bytes in order, however slowly its client writes and reads; floods are not read. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openSocket } from '../support/raw-client.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { waitUntil, waitUntilStable } from '../support/until.ts';
import type { Proxy } from './proxy.ts';
import { startProxy } from './proxy.ts';

const HOST = 'Host: 127.0.0.1\r\n';
const KIB = 1024;
const MIB = 1024 * KIB;
const IDLE = { queued: 0, inFlight: 0, streams: 0 };

interface GeneratedCall {
  readonly requestBytes: number;
  readonly responseBytes: number;
  readonly delayMs: number;
  readonly fields: number;
}

const generatedCall: fc.Arbitrary<GeneratedCall> = fc.record({
  requestBytes: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2000 }), fc.integer({ min: 1, max: 100_000 })),
  responseBytes: fc.oneof(fc.integer({ min: 0, max: 2000 }), fc.integer({ min: 0, max: 200_000 })),
  delayMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 10 })),
  fields: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.constant(195)),
});

/** Bytes that differ from call to call, so that a mixed-up response shows. */
function content(at: number, bytes: number): Buffer {
  return Buffer.alloc(bytes, `${String(at)}-${String(bytes)}|`);
}

function format({ requestBytes, responseBytes, delayMs, fields }: GeneratedCall, at: number): Buffer {
  const target = `/${[at, responseBytes, delayMs].join('/')}`;
  const names = Array.from({ length: fields }, (_, field) => `X-${String(field)}: ${String(at)}\r\n`).join('');
  const head = requestBytes === 0 ? '' : `Content-Length: ${String(requestBytes)}\r\n`;
  const method = requestBytes === 0 ? 'GET' : 'POST';
  return Buffer.concat([
    Buffer.from(`${method} ${target} HTTP/1.1\r\n${HOST}${names}${head}\r\n`),
    content(at, requestBytes),
  ]);
}

/** The bodies of responses with a Content-Length; undefined while one of them is not whole. */
function readBodies(bytes: Buffer): Buffer[] | undefined {
  const bodies: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const headEnd = bytes.indexOf('\r\n\r\n', at) + 4;
    if (headEnd < 4) return undefined;
    const length = Number(/content-length: (\d+)/i.exec(bytes.toString('latin1', at, headEnd))?.[1]);
    if (headEnd + length > bytes.length) return undefined;
    bodies.push(bytes.subarray(headEnd, headEnd + length));
    at = headEnd + length;
  }
  return bodies;
}

function startSizedUpstream() {
  return startRecordingUpstream(async ({ path }, response) => {
    const [, at = '', responseBytes = '', delayMs = '0'] = path.split('/');
    if (delayMs !== '0') await sleep(Number(delayMs));
    const body = content(Number(at), Number(responseBytes));
    response.writeHead(200, { 'content-length': String(body.length) }).end(body);
  });
}

async function write(socket: Socket, bytes: Buffer, packetBytes: number): Promise<void> {
  for (let at = 0; at < bytes.length; at += packetBytes) {
    if (!socket.write(bytes.subarray(at, at + packetBytes)))
      await waitUntil(() => socket.destroyed || !socket.writableNeedDrain, 'what was written has gone');
    else if (packetBytes < 100) await new Promise(setImmediate);
  }
}

async function untilIdle({ server, throttle }: Proxy): Promise<void> {
  await waitUntil(() => server.connections.state().connections === 0, 'no connection is open');
  await waitUntil(() => server.activeRequests.count === 0, 'no request is under way');
  expect(throttle.state()).toMatchObject(IDLE);
}

describe('a pipeline of up to 64 requests', () => {
  it('gets every byte in order, whether it is sent in one packet or byte by byte, and read at once or slowly', async () => {
    await using upstream = await startSizedUpstream();
    await using proxy = await startProxy(upstream.url);
    const calls = fc.array(generatedCall, { minLength: 2, maxLength: 64 });
    const packets = fc.constantFrom(7, 1000, 64 * KIB);
    await fc.assert(
      fc.asyncProperty(calls, packets, fc.boolean(), async (pipeline, packetBytes, isSlow) => {
        const bytes = Buffer.concat(pipeline.map(format));
        const socket = await openSocket(proxy.url);
        const received: Buffer[] = [];
        socket.on('data', (chunk: Buffer) => {
          received.push(chunk);
          if (!isSlow) return;
          socket.pause();
          setImmediate(() => socket.resume());
        });
        // Byte by byte only as far as a test has time for it.
        await write(socket, bytes.subarray(0, 3000), packetBytes);
        await write(socket, bytes.subarray(3000), Math.max(packetBytes, 1000));
        const expected = pipeline.map(({ responseBytes }, at) => content(at, responseBytes));
        const bodies = () => readBodies(Buffer.concat(received));
        await waitUntil(() => bodies()?.length === pipeline.length, 'all responses are whole');
        expect(Buffer.concat(bodies() ?? []).equals(Buffer.concat(expected))).toBe(true);
        socket.destroy();
      }),
      { numRuns: 25 },
    );
    await untilIdle(proxy);
  });

  it('leaves nothing behind when its client leaves, at any place of its bytes or of its responses', async () => {
    await using upstream = await startSizedUpstream();
    await using proxy = await startProxy(upstream.url);
    const calls = fc.array(generatedCall, { minLength: 2, maxLength: 64 });
    await fc.assert(
      fc.asyncProperty(calls, fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(3), async (pipeline, share, turns) => {
        const bytes = Buffer.concat(pipeline.map(format));
        const socket = await openSocket(proxy.url);
        socket.on('error', () => socket.destroy());
        if (turns > 0) socket.resume();
        await write(socket, bytes.subarray(0, Math.ceil(bytes.length * share)), 64 * KIB);
        for (let turn = 0; turn < turns * 5; turn++) await new Promise(setImmediate);
        socket.resetAndDestroy();
        await untilIdle(proxy);
      }),
      { numRuns: 25 },
    );
  });
});

describe('a client that never stops sending requests', () => {
  it.each([
    ['never come', 'reads', 'never', true],
    ['never come', 'does not read', 'never', false],
    ['come at once', 'reads', 'at once', true],
    ['come at once', 'does not read', 'at once', false],
  ])('is not read any more when the responses %s and it %s', async (_, __, when, isReading) => {
    await using upstream = await startRecordingUpstream((_request, response) => {
      if (when === 'at once') response.end(Buffer.alloc(300_000));
    });
    await using proxy = await startProxy(upstream.url, { maxInFlight: 100 });
    const socket = await openSocket(proxy.url);
    socket.on('error', () => socket.destroy());
    if (isReading) socket.resume();
    socket.write(`GET /a HTTP/1.1\r\n${HOST}\r\n`.repeat(70));
    await waitUntil(() => upstream.requests.length > 0, 'a request is at the upstream');
    const flood = Buffer.alloc(64 * MIB, 'GET / HTTP/1.1\r\n\r\n');
    let sentBytes = 0;
    for (let at = 0; at < flood.length; at += 64 * KIB)
      socket.write(flood.subarray(at, at + 64 * KIB), (error) => {
        if (!error) sentBytes += 64 * KIB;
      });
    // The kernel's buffers hold a part of it.
    expect(await waitUntilStable(() => sentBytes)).toBeLessThan(24 * MIB);
    expect(upstream.requests.length).toBeLessThanOrEqual(64);
    socket.destroy();
    proxy.server.abortAll();
    await untilIdle(proxy);
  });
});
