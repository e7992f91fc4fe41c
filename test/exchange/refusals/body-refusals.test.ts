/**
 * Refusals in bodies of every size, framing and coding, cut into packets in every way: the client gets exactly the upstream's bytes, or the
 * call is repeated; each attempt and each request has one outcome.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { startInProcess } from '../../composition/in-process.ts';
import { startRawUpstream } from '../../composition/raw-upstream.ts';
import { openSocket, readToEnd } from '../../support/raw-client.ts';

const KIB = 1024;
const INSPECTED_BYTES = 64 * KIB;
const TEXTS = ['limit exceeded', 'ü', 'aab', 'x'.repeat(1000)];
const REFUSED_STATUSES = [200, 400, 403, 420, 503];

const scene = fc.record({
  status: fc.constantFrom(...REFUSED_STATUSES, 201, 404, 502),
  method: fc.constantFrom('GET', 'POST' as const),
  text: fc.option(fc.nat(TEXTS.length - 1), { freq: 4 }),
  bytesBefore: fc.oneof(
    fc.integer({ min: 0, max: 3000 }),
    fc.integer({ min: INSPECTED_BYTES - 1100, max: INSPECTED_BYTES + 100 }),
    fc.integer({ min: 0, max: 200 * KIB }),
  ),
  bytesAfter: fc.oneof(fc.integer({ min: 0, max: 3000 }), fc.integer({ min: 0, max: 400 * KIB })),
  framing: fc.constantFrom('length', 'chunked', 'close' as const),
  coding: fc.constantFrom('', 'identity', 'Identity', 'gzip', 'br'),
  contentType: fc.constantFrom('application/json', 'text/event-stream', 'Text/Event-Stream; charset=utf-8'),
  /** Where packets end, relative to the text. */
  cuts: fc.array(fc.integer({ min: -20, max: 20 }), { maxLength: 8 }),
  packetBytes: fc.constantFrom(1000, 16 * KIB, 70_000, Infinity),
});
type Scene = typeof scene extends fc.Arbitrary<infer T> ? T : never;

/** Bytes among which no text is found, from 0x80 on; not UTF-8. */
function filler(length: number): Buffer {
  return Buffer.from(Array.from({ length }, (_, at) => 0x80 + ((at * 31 + (at >> 8)) % 0x40)));
}
const FILLER = filler(600 * KIB);

function bodyOf({ text, bytesBefore, bytesAfter }: Scene): Buffer {
  const found = text === null ? '' : (TEXTS[text] ?? '');
  return Buffer.concat([FILLER.subarray(0, bytesBefore), Buffer.from(found), FILLER.subarray(0, bytesAfter)]);
}

function endOfText({ text, bytesBefore }: Scene): number {
  return text === null ? Infinity : bytesBefore + Buffer.byteLength(TEXTS[text] ?? '');
}

function isRefusal(made: Scene): boolean {
  const isRead = /^(?:identity)?$/i.test(made.coding) && !/^text\/event-stream/i.test(made.contentType);
  return REFUSED_STATUSES.includes(made.status) && isRead && endOfText(made) <= INSPECTED_BYTES;
}

function wireBytes(made: Scene): Buffer {
  const body = bodyOf(made);
  const coding = made.coding === '' ? '' : `Content-Encoding: ${made.coding}\r\n`;
  const close = made.framing === 'close' ? 'Connection: close\r\n' : '';
  const head = (field: string): Buffer =>
    Buffer.from(`HTTP/1.1 ${made.status} X\r\nContent-Type: ${made.contentType}\r\n${coding}${close}${field}\r\n`);
  if (made.framing === 'length') return Buffer.concat([head(`Content-Length: ${body.length}\r\n`), body]);
  if (made.framing === 'close') return Buffer.concat([head(''), body]);
  const parts = [head('Transfer-Encoding: chunked\r\n')];
  const size = Math.min(made.packetBytes, 40_000);
  for (let at = 0; at < body.length; at += size) {
    const chunk = body.subarray(at, at + size);
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}

/** The packets of a response. */
function* packets(made: Scene): Generator<Buffer> {
  const bytes = wireBytes(made);
  const body = bodyOf(made);
  const textAt = bytes.length - body.length + Math.min(made.bytesBefore, body.length);
  const near = made.cuts.map((cut) => textAt + cut).filter((at) => at > 0 && at < bytes.length);
  for (let at = made.packetBytes; at < bytes.length; at += made.packetBytes) near.push(at);
  const ends = [...new Set([...near, bytes.length])].sort((one, other) => one - other);
  let from = 0;
  for (const to of ends) {
    yield bytes.subarray(from, to);
    from = to;
  }
}

it('each response arrives byte for byte, or its call is repeated, with one outcome', async () => {
  let current: Scene | undefined;
  let heads = 0;
  const upstream = await startRawUpstream((socket) => {
    if (++heads > 1 || current === undefined) {
      socket.write('HTTP/1.1 200 OK\r\nX-Repeated: yes\r\nContent-Length: 8\r\n\r\nrepeated');
      return;
    }
    const made = current;
    void (async () => {
      for (const packet of packets(made)) {
        if (socket.destroyed) return;
        await new Promise<void>((resolve) => socket.write(packet, () => resolve()));
        await new Promise(setImmediate);
      }
      if (made.framing === 'close') socket.end();
    })();
  });
  const rules = REFUSED_STATUSES.flatMap((status) => TEXTS.map((bodyContains) => ({ status, bodyContains })));
  const { url, events, requestRecords, throttle } = await startInProcess({
    apiUrl: upstream.url,
    env: { SIDECAR_THROTTLE_REFUSALS: JSON.stringify(rules), SIDECAR_RETRY_ATTEMPTS: '1' },
  });
  let requests = 0;
  await fc.assert(
    fc.asyncProperty(scene, async (made) => {
      current = made;
      heads = 0;
      const before = events.length;
      const socket = await openSocket(url);
      const reading = readToEnd(socket);
      // The upstream finds the next head where a line begins.
      const upload = made.method === 'POST' ? 'Content-Length: 2\r\n\r\n\n\n' : '\r\n';
      socket.write(`${made.method} / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${upload}`);
      const { status, headers, bytes } = await reading;
      await requestRecords(++requests);
      const own = events.slice(before);
      const outcomes = own.flatMap((event) => (event.kind === 'attempt-ended' ? [event.outcome] : []));
      const refused = isRefusal(made);
      const isTooLarge = bodyOf(made).length > 256 * KIB;
      const isRepeated = refused && !isTooLarge && (made.method === 'GET' || made.status >= 300);
      expect(own.filter(({ kind }) => kind === 'request-ended')).toHaveLength(1);
      expect(own.filter(({ kind }) => kind === 'rate-limited')).toHaveLength(refused ? 1 : 0);
      const label = refused ? 'rate_limited' : made.status < 400 ? 'ok' : 'error_status';
      expect(outcomes).toEqual(isRepeated ? [label, 'ok'] : [label]);
      expect(heads).toBe(isRepeated ? 2 : 1);
      expect(headers['x-repeated']).toBe(isRepeated ? 'yes' : undefined);
      if (isRepeated) return;
      expect(status).toBe(made.status);
      const body = bodyOf(made);
      expect(decodeBody(bytes).equals(body)).toBe(true);
    }),
    { numRuns: 150 },
  );
  expect(await throttle()).toEqual({ queued: 0, inFlight: 0, streams: 0 });
});

/** The content of a response, without its chunks. */
function decodeBody(bytes: Buffer): Buffer {
  const end = bytes.indexOf('\r\n\r\n');
  const head = bytes.subarray(0, end).toString('latin1');
  const body = bytes.subarray(end + 4);
  if (!/transfer-encoding: chunked/i.test(head)) return body;
  const parts: Buffer[] = [];
  for (let at = 0; ;) {
    const line = body.indexOf('\r\n', at);
    const size = Number.parseInt(body.subarray(at, line).toString('latin1'), 16);
    if (line === -1 || !(size > 0)) return Buffer.concat(parts);
    parts.push(body.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
}
