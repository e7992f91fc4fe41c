/** Response heads up to the limit and past it: in bytes, in fields, in packets of any size, after interim responses, and in trailers. */
import type { Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AttemptResult } from '../../src/upstream/response-receiver.ts';
import { roundsOf } from '../support/rounds.ts';
import { afterHead, openUpstream, send, startWireServer } from './wire.ts';

const LIMIT = 4096;
const LAST_FIELDS = 'Content-Length: 2\r\nConnection: close\r\n';
const LAST_FIELDS_BYTES = 'Content-Length2Connectionclose'.length;

/** A head whose names and values have so many bytes. */
function headOf(bytes: number): string {
  return `HTTP/1.1 200 A reason that does not count\r\n${LAST_FIELDS}X-Long: ${'x'.repeat(bytes - LAST_FIELDS_BYTES - 6)}\r\n\r\n`;
}

function headOfFields(fields: number): string {
  const more = Array.from({ length: fields - 2 }, (_, index) => `f${String(index % 10)}: \r\n`).join('');
  return `HTTP/1.1 200 OK\r\n${LAST_FIELDS}${more}\r\n`;
}

async function receive(respond: Parameters<typeof startWireServer>[0], maxHeaderBytes = LIMIT): Promise<AttemptResult> {
  await using server = await startWireServer(respond);
  await using upstream = openUpstream(server.url, { maxHeaderBytes });
  return await send(upstream).end;
}

const responses = (text: string) => afterHead(text, (socket) => socket.end());

function detailOf(result: AttemptResult): string {
  return result.kind === 'failed' ? result.failure.detail : result.kind;
}

describe('a response head', () => {
  it.each([LIMIT - 1, LIMIT])('of %i bytes is relayed where the limit is 4096', async (bytes) => {
    const head = { status: 200 };
    expect(await receive(responses(`${headOf(bytes)}ok`))).toMatchObject({ kind: 'relayed', head, fault: undefined });
  });

  it.each([LIMIT + 1, 10 * LIMIT])('of %i bytes is dropped, and the fault names the limit', async (bytes) => {
    const result = await receive(responses(`${headOf(bytes)}ok`));
    expect(result).toMatchObject({ kind: 'failed', failure: { kind: 'protocol', permanent: true } });
    expect(detailOf(result)).toMatch(
      /^the upstream sent more than 4096 bytes of header fields \(\d+ bytes in 3 so far\): upstream\.maxHeaderBytes \(SIDECAR_UPSTREAM_MAX_HEADER_BYTES\)$/,
    );
  });

  it('of 500 fields is relayed, with one more it is dropped', async () => {
    expect(await receive(responses(`${headOfFields(500)}ok`))).toMatchObject({ kind: 'relayed', fault: undefined });
    const detail = detailOf(await receive(responses(`${headOfFields(501)}ok`)));
    expect(detail).toMatch(/^the upstream sent more than 500 header fields \(\d+ bytes in 501 so far\)$/);
  });

  it('has the same outcome in whatever packets it comes', async () => {
    const kinds = [headOf(LIMIT), headOf(LIMIT + 1), headOfFields(500), headOfFields(501)];
    const property = fc.asyncProperty(fc.constantFrom(...kinds), fc.array(fc.nat(5000)), async (head, cuts) => {
      const response = `${head}ok`;
      const ends = [...new Set([...cuts.map((cut) => cut % response.length), response.length])].toSorted(
        (a, b) => a - b,
      );
      const parts = ends.map((end, at) => response.slice(ends[at - 1] ?? 0, end));
      const write = (socket: Socket): void => {
        const [part, ...rest] = [parts.shift() ?? ''];
        expect(rest).toEqual([]);
        if (parts.length === 0) socket.end(part);
        else socket.write(part, () => setImmediate(() => write(socket)));
      };
      const result = await receive(afterHead('', write));
      const isAccepted = head === kinds[0] || head === kinds[2];
      expect(result.kind).toBe(isAccepted ? 'relayed' : 'failed');
    });
    await fc.assert(property, { numRuns: roundsOf({ check: 20, soak: 500 }) });
  });

  it('is measured by itself: interim responses before it have their own', async () => {
    const hints = `HTTP/1.1 103 Early Hints\r\nLink: ${'x'.repeat(LIMIT - 4)}\r\n\r\n`;
    const result = await receive(responses(`${hints.repeat(3)}${headOf(LIMIT)}ok`));
    expect(result).toMatchObject({ kind: 'relayed', fault: undefined });
    const long = hints.replace('Link', 'Links');
    expect(detailOf(await receive(responses(`${long}${headOf(100)}ok`)))).toContain('upstream.maxHeaderBytes');
  });

  it('leaves the next connection as it was', async () => {
    await using server = await startWireServer((socket, text, index) => {
      if (text.endsWith('\r\n\r\n')) socket.write(index === 0 ? headOf(LIMIT + 1) : `${headOf(LIMIT)}ok`);
    });
    await using upstream = openUpstream(server.url, { maxHeaderBytes: LIMIT, maxConnections: 1 });
    expect((await send(upstream).end).kind).toBe('failed');
    expect(await send(upstream).end).toMatchObject({ kind: 'relayed', fault: undefined });
  });
});

describe('trailers', () => {
  const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n';

  it('up to the limit end the response', async () => {
    const trailer = `X: ${'x'.repeat(LIMIT - 1)}\r\n\r\n`;
    expect(await receive(responses(`${chunked}${trailer}`))).toMatchObject({ kind: 'relayed', fault: undefined });
  });

  it('larger than a head may be break the response off', async () => {
    const result = await receive(responses(`${chunked}X: ${'x'.repeat(LIMIT)}\r\n\r\n`));
    const detail: unknown = expect.stringContaining('upstream.maxHeaderBytes');
    expect(result).toMatchObject({ kind: 'relayed', fault: { detail } });
  });
});
