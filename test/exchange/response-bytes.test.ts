/**
 * Responses byte for byte: for every size and framing, however the upstream cuts them into packets and wherever it breaks off, the
 * client gets exactly those bytes and a clean end, or can detect that it has not, or gets a reply of the sidecar's own.
 */
import fc from 'fast-check';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { startInProcess } from '../composition/in-process.ts';
import { startRawUpstream } from '../composition/raw-upstream.ts';
import { openSocket, readToEnd, SEES_RESET_BEHIND_DATA } from '../support/raw-client.ts';

const KIB = 1024;
const EDGES = [0, 1, 16 * KIB, 64 * KIB, 256 * KIB];
const MOST_BYTES = 3_000_000;

const size = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.constantFrom(...EDGES), fc.integer({ min: -2, max: 2 }))
      .map(([at, by]) => Math.max(0, at + by)),
  },
  {
    weight: 2,
    arbitrary: fc
      .double({ min: 0, max: Math.log(MOST_BYTES), noNaN: true })
      .map((log) => Math.round(Math.exp(log)) - 1),
  },
);

const scene = fc.record({
  size,
  framing: fc.constantFrom('length', 'chunked', 'close' as const),
  chunkBytes: fc.constantFrom(1000, 16 * KIB, 70_000),
  /** Where packets end, as shares of all bytes. */
  cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 6 }),
  /** `false` breaks the packets up without a pause between them. */
  hasPauses: fc.boolean(),
  broken: fc.option(
    fc.record({ at: fc.double({ min: 0, max: 0.9999, noNaN: true }), by: fc.constantFrom('fin', 'reset' as const) }),
    { freq: 2 },
  ),
  version: fc.constantFrom('1.1', '1.0' as const),
  /** 503: held back, and sent when the attempts are spent. */
  status: fc.constantFrom(200, 503 as const),
  keepsAlive: fc.boolean(),
});
type Scene = typeof scene extends fc.Arbitrary<infer T> ? T : never;

const CONTENT = Buffer.from(
  Array.from({ length: MOST_BYTES + 70_000 }, (_, at) => (at * 31 + (at >> 8) * 17 + (at >> 16)) & 0xff),
);

function wireBytes({ size: length, framing, chunkBytes, status, keepsAlive }: Scene): Buffer {
  const body = CONTENT.subarray(0, length);
  const close = keepsAlive && framing !== 'close' ? '' : 'Connection: close\r\n';
  const head = (field: string): Buffer => Buffer.from(`HTTP/1.1 ${status} X\r\n${close}${field}\r\n`);
  if (framing === 'length') return Buffer.concat([head(`Content-Length: ${length}\r\n`), body]);
  if (framing === 'close') return Buffer.concat([head(''), body]);
  const parts = [head('Transfer-Encoding: chunked\r\n')];
  for (let at = 0; at < length; at += chunkBytes) {
    const chunk = body.subarray(at, at + chunkBytes);
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}

async function respond(socket: Socket, { cuts, hasPauses, broken, ...rest }: Scene): Promise<void> {
  const whole = wireBytes({ cuts, hasPauses, broken, ...rest });
  const bytes = broken === null ? whole : whole.subarray(0, Math.floor(broken.at * whole.length));
  const ends = [...cuts.map((share) => Math.round(share * bytes.length)), bytes.length].sort(
    (one, other) => one - other,
  );
  let from = 0;
  for (const to of ends) {
    if (socket.destroyed) return;
    await new Promise<void>((resolve) => socket.write(bytes.subarray(from, to), () => resolve()));
    if (hasPauses) await new Promise(setImmediate);
    from = to;
  }
  if (broken?.by === 'reset') socket.resetAndDestroy();
  else if (broken !== null || rest.framing === 'close' || !rest.keepsAlive) socket.end();
}

interface Received {
  readonly status: number;
  readonly body: Buffer;
  /** The client takes it for whole. */
  readonly isWhole: boolean;
  readonly isOwn: boolean;
}

/** As Node.js understands it. */
async function askAs11(url: string): Promise<Received> {
  const response = await new Promise<IncomingMessage | undefined>((resolve) => {
    httpRequest(url, { agent: false }, resolve)
      .on('error', () => resolve(undefined))
      .end();
  });
  if (response === undefined) return { status: 0, body: Buffer.alloc(0), isWhole: false, isOwn: false };
  const parts: Buffer[] = [];
  response.on('data', (chunk: Buffer) => parts.push(chunk));
  await new Promise<void>((resolve) => response.on('error', () => undefined).on('close', resolve));
  const isOwn = response.headers['proxy-status'] !== undefined;
  return { status: response.statusCode ?? 0, body: Buffer.concat(parts), isWhole: response.complete, isOwn };
}

/** RFC 9112 §6.3: by its length, or by a connection that ends without a reset. */
async function askAs10(url: string): Promise<Received> {
  const socket = await openSocket(url);
  const reading = readToEnd(socket);
  socket.write('GET / HTTP/1.0\r\nHost: localhost\r\n\r\n');
  const { status, headers, body, end } = await reading;
  const length = headers['content-length'];
  const isWhole = length === undefined ? end === 'fin' : body.length === Number(length);
  return { status, body, isWhole: status > 0 && isWhole, isOwn: headers['proxy-status'] !== undefined };
}

/** A FIN ends a body that only the end of its connection completes, at any byte, so no recipient can detect it. */
function isDetectable({ broken, framing, version }: Scene): boolean {
  if (broken === null) return true;
  const endsWithConnection = framing === 'close' || (version === '1.0' && framing === 'chunked');
  if (endsWithConnection && !SEES_RESET_BEHIND_DATA) return false;
  return framing !== 'close' || broken.by === 'reset';
}

it('each response arrives as it was sent, or is recognisably not whole, or is a reply of the sidecar’s own', async () => {
  let current: Scene | undefined;
  let heads = 0;
  const upstream = await startRawUpstream((socket) => {
    heads++;
    if (current !== undefined) void respond(socket, current);
  });
  const { url } = await startInProcess({
    apiUrl: upstream.url,
    keepsEvents: false,
    env: { SIDECAR_RETRY_ATTEMPTS: '2' },
  });
  await fc.assert(
    fc.asyncProperty(scene, async (made) => {
      current = made;
      heads = 0;
      const seen = await (made.version === '1.0' ? askAs10(url) : askAs11(url));
      const sent = CONTENT.subarray(0, made.size);
      // An empty reply makes some stacks send again.
      expect(seen.status).not.toBe(0);
      if (seen.isOwn) {
        expect([502, 504]).toContain(seen.status);
        expect(made.broken).not.toBeNull();
        return;
      }
      expect(seen.status).toBe(made.status);
      // What has come is the beginning of what was sent, in any case.
      expect(seen.body.equals(sent.subarray(0, seen.body.length))).toBe(true);
      if (made.broken === null) expect([seen.isWhole, seen.body.length]).toEqual([true, made.size]);
      else if (isDetectable(made)) expect(seen.isWhole).toBe(false);
      if (made.status === 200) expect(heads).toBe(1);
    }),
    { numRuns: 150 },
  );
});
