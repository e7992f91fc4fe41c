/** Responses in very small chunks: what they cost, that they are not delayed, and that they arrive as they were sent. */
import { once } from 'node:events';
import { get as httpGet } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { heldBytes } from '../composition/heap.ts';
import { createLatch, startInProcess, until } from '../composition/in-process.ts';
import { startRawUpstream } from '../composition/raw-upstream.ts';
import { openSocket, readToEnd } from '../support/raw-client.ts';
import { waitUntilStable } from '../support/until.ts';
import { contentOf } from '../support/witness.ts';

const GET = 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
const CHUNKED = 'Transfer-Encoding: chunked\r\n\r\n';
const ONE_BYTE = '1\r\nx\r\n';

describe('a response in chunks of one byte', () => {
  it('to a client that does not read costs memory of the order of its length', async () => {
    let written = 0;
    const upstream = await startRawUpstream((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\n${CHUNKED}`);
      const writeMore = (): void => {
        socket.write(ONE_BYTE.repeat(10_000), (error) => {
          written++;
          if (!error) writeMore();
        });
      };
      writeMore();
    });
    const { url } = await startInProcess({ apiUrl: upstream.url });
    const before = await heldBytes();
    const sockets = await Promise.all(Array.from({ length: 4 }, () => openSocket(url)));
    for (const socket of sockets) socket.pause().write(GET);
    await until(() => written > 10, 'the responses have begun');
    await waitUntilStable(() => written);
    expect((await heldBytes()) - before).toBeLessThan(4 * 1024 * 1024);
    for (const socket of sockets) socket.destroy();
  });

  it('that is held for another attempt costs memory of the order of its length, and arrives whole', async () => {
    const count = 200_000;
    const rest = createLatch();
    let isWritten = false;
    const upstream = await startRawUpstream((socket) => {
      socket.write(`HTTP/1.1 429 Too Many Requests\r\nRetry-After: 4000\r\n${CHUNKED}`);
      socket.write(ONE_BYTE.repeat(count), () => (isWritten = true));
      void rest.opened.then(() => socket.write('0\r\n\r\n'));
    });
    const { url } = await startInProcess({ apiUrl: upstream.url });
    const before = await heldBytes();
    const socket = await openSocket(url);
    const response = readToEnd(socket);
    socket.write(GET);
    await until(() => isWritten, 'the upstream has sent all chunks');
    expect((await heldBytes()) - before).toBeLessThan(3 * 1024 * 1024);
    rest.open();
    const { status, body } = await response;
    expect(status).toBe(429);
    expect(body.toString('latin1').match(/x/g)).toHaveLength(count);
  });

  it('reaches a client that reads chunk by chunk, each before the next is sent', async () => {
    const count = 600;
    let next: () => void = () => undefined;
    const upstream = await startRawUpstream((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n${CHUNKED}`);
      next = () => void socket.write(ONE_BYTE);
      next();
    });
    const { url } = await startInProcess({ apiUrl: upstream.url });
    const [response] = (await once(httpGet(url), 'response')) as [IncomingMessage];
    let received = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      expect(chunk.toString()).toBe('x');
      if (++received === count) break;
      next();
    }
    expect(received).toBe(count);
  });
});

describe('the head of a response and its first chunk', () => {
  it('reach the client in one packet, with and without a length', async () => {
    for (const head of ['Content-Length: 3\r\n\r\nab', `${CHUNKED}2\r\nab\r\n`]) {
      const upstream = await startRawUpstream((socket) => void socket.write(`HTTP/1.1 200 OK\r\n${head}`));
      const { url } = await startInProcess({ apiUrl: upstream.url });
      const socket = await openSocket(url);
      socket.write(GET);
      const [packet] = (await once(socket, 'data')) as [Buffer];
      expect(packet.toString()).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*ab/);
      socket.destroy();
    }
  });
});

interface Sending {
  readonly sizes: readonly number[];
  readonly framing: 'chunked' | 'length' | 'close';
  /** Chunks in one packet, in turns. */
  readonly packets: readonly number[];
  /** Bytes after which the client rests, in turns; of how many turns of the event loop. */
  readonly reads: readonly (readonly [bytes: number, rest: number])[];
}

const size = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 20 }) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 16_500 }) },
  { weight: 1, arbitrary: fc.integer({ min: 16_000, max: 140_000 }) },
);
const sending: fc.Arbitrary<Sending> = fc.record({
  sizes: fc.tuple(fc.array(size, { minLength: 1, maxLength: 40 }), fc.constantFrom(1, 1, 20)).map(repeat),
  framing: fc.constantFrom('chunked', 'length', 'close'),
  packets: fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 4 }),
  reads: fc.array(fc.tuple(fc.integer({ min: 1, max: 300_000 }), fc.nat(8)), { minLength: 1, maxLength: 4 }),
});

function repeat([sizes, times]: [readonly number[], number]): number[] {
  const small = sizes.filter((each) => each < 1000);
  return [...sizes, ...Array.from({ length: times - 1 }, () => small).flat()];
}

async function sendAs(plan: Sending, content: Buffer, socket: Socket): Promise<void> {
  const length = plan.framing === 'length' ? `Content-Length: ${String(content.length)}\r\n` : '';
  const framing = plan.framing === 'chunked' ? CHUNKED : `${length}Connection: close\r\n\r\n`;
  socket.write(`HTTP/1.1 200 OK\r\n${framing}`);
  let packet: Buffer[] = [];
  let at = 0;
  let turn = 0;
  for (const [index, bytes] of plan.sizes.entries()) {
    const piece = content.subarray(at, (at += bytes));
    packet.push(plan.framing === 'chunked' ? Buffer.from(`${bytes.toString(16)}\r\n`) : Buffer.of(), piece);
    if (plan.framing === 'chunked')
      packet.push(Buffer.from(index === plan.sizes.length - 1 ? '\r\n0\r\n\r\n' : '\r\n'));
    if (packet.length < 3 * (plan.packets[turn % plan.packets.length] ?? 1)) continue;
    turn++;
    socket.write(Buffer.concat(packet));
    packet = [];
    await setImmediate();
  }
  socket.write(Buffer.concat(packet));
  if (plan.framing !== 'chunked') socket.end();
}

it('invariant 11: a response arrives as it was sent, in any chunks and packets, however it is read', async () => {
  let plan: Sending = { sizes: [], framing: 'length', packets: [1], reads: [[1, 1]] };
  let content: Buffer = Buffer.of();
  const upstream = await startRawUpstream((socket) => void sendAs(plan, content, socket));
  const { url } = await startInProcess({ apiUrl: upstream.url });
  await fc.assert(
    fc.asyncProperty(sending, async (next) => {
      plan = next;
      content = contentOf(
        'small-chunks',
        plan.sizes.reduce((sum, each) => sum + each, 0),
      );
      const [response] = (await once(httpGet(url, { agent: false }), 'response')) as [IncomingMessage];
      const received: Buffer[] = [];
      let left = plan.reads[0]?.[0] ?? 0;
      let turn = 0;
      for await (const chunk of response as AsyncIterable<Buffer>) {
        received.push(chunk);
        if ((left -= chunk.length) > 0) continue;
        const [, rest] = plan.reads[turn++ % plan.reads.length] ?? [];
        for (let each = 0; each < (rest ?? 0); each++) await setImmediate();
        left = plan.reads[turn % plan.reads.length]?.[0] ?? 0;
      }
      expect(Buffer.concat(received).equals(content)).toBe(true);
    }),
    { numRuns: 120 },
  );
});
