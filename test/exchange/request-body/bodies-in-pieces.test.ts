/** Bodies that arrive in several packets while their requests wait: the upstream receives every byte (invariant 11). */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/platform/clock.ts';
import { ReplayMemory, RequestBody } from '../../../src/exchange/request-body/replay-body.ts';
import { createLatch, giveToken, startInProcess, until } from '../../composition/in-process.ts';
import type { InProcess } from '../../composition/in-process.ts';
import { openSocket, readToEnd } from '../../support/raw-client.ts';
import { send } from '../../composition/send.ts';

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A body as the packets in which it is sent, and how its length is stated. */
interface Sending {
  readonly pieces: readonly Buffer[];
  readonly isChunked: boolean;
}

const sendings: fc.Arbitrary<Sending> = fc.record({
  pieces: fc.array(
    fc
      .oneof(
        { weight: 5, arbitrary: fc.integer({ min: 1, max: 100 }) },
        { weight: 2, arbitrary: fc.integer({ min: 16_000, max: 17_000 }) },
        { weight: 1, arbitrary: fc.integer({ min: 65_000, max: 66_000 }) },
      )
      .map((length) => Buffer.from(Array.from({ length }, (_, at) => (at * 7 + length) & 0xff))),
    { minLength: 1, maxLength: 6 },
  ),
  isChunked: fc.boolean(),
});

/** Sends a request in pieces, each in a packet of its own; resolves with a promise of the response. */
async function sendInPieces(
  url: string,
  path: string,
  { pieces, isChunked }: Sending,
): Promise<{ response: ReturnType<typeof readToEnd> }> {
  const socket = await openSocket(url);
  const response = readToEnd(socket);
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const framing = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${String(length)}`;
  socket.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${framing}\r\n\r\n`);
  for (const piece of pieces) {
    await nextTurn();
    await nextTurn();
    socket.write(isChunked ? Buffer.concat([hexLine(piece.length), piece, Buffer.from('\r\n')]) : piece);
  }
  if (isChunked) socket.write('0\r\n\r\n');
  return { response };
}

const hexLine = (length: number): Buffer => Buffer.from(`${length.toString(16)}\r\n`);

/** Sends all at once, lets `open` end their wait, and compares what the upstream received of each. */
async function compareAll({ url, api }: InProcess, all: readonly Sending[], open: () => void): Promise<void> {
  const before = api.requests.length;
  const calls = await Promise.all(all.map((sending, index) => sendInPieces(url, `/${String(index)}`, sending)));
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  open();
  for (const { response } of calls) expect((await response).status).toBe(200);
  for (const { path, bodySha256 } of api.requests.slice(before)) {
    const sent = all[Number(path.slice(1))];
    expect(bodySha256).toBe(sha256(Buffer.concat(sent?.pieces ?? [])));
  }
}

describe('invariant 11: a body in pieces arrives byte for byte', () => {
  it('when all of it has come before the first token', async () => {
    const token = createLatch();
    const world = await startInProcess({
      respondToTokenRequest: async (...call) => {
        await token.opened;
        await giveToken(...call);
      },
    });
    await until(() => world.tokens.requests.length === 1, 'the token request');
    await compareAll(world, fc.sample(sendings, { numRuns: 60, seed: 7 }), token.open);
    expect(world.api.requests).toHaveLength(60);
  });

  it('when its request waits for a permit or for a place, and after a 429', async () => {
    let first = createLatch();
    let refusals = 0;
    const world = await startInProcess({
      respond: async ({ path }, response) => {
        if (path === '/first') await first.opened;
        else if (refusals++ % 5 === 0) return void response.writeHead(429, { 'retry-after': '0' }).end();
        response.end('done');
      },
      env: { SIDECAR_MAX_IN_FLIGHT: '1' },
    });
    const manyAtOnce = fc.array(sendings, { minLength: 2, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(manyAtOnce, async (all) => {
        first = createLatch();
        const before = world.api.requests.length;
        const holder = send(`${world.url}/first`);
        await until(() => world.api.requests.length > before, 'the only slot taken');
        await compareAll(world, all, first.open);
        await holder;
      }),
      { numRuns: 30 },
    );
  });
});

it.each([
  [14, 27],
  [28, 27],
  [0, 1],
])('a body of %i bytes is never passed on as the %i that are declared', (received, declared) => {
  const request = new PassThrough();
  Object.assign(request, { headers: { 'content-length': String(declared) }, complete: true });
  request.end(Buffer.alloc(received));
  const limits = {
    retry: { replayBufferBytes: 100 },
    memory: new ReplayMemory(100),
    timeouts: { bodyIdleTimeoutMs: 0 },
  };
  const body = new RequestBody(request as unknown as IncomingMessage, limits, systemClock);
  expect(() => body.tryReadReceived()).toThrow(
    `the request body has ${String(received)} bytes, and ${String(declared)} are`,
  );
  expect(body.isInMemory).toBe(false);
});
