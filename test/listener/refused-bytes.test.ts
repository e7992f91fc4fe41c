/** Bytes that HTTP does not allow in a request target, a method or a field: the refusal names the byte and says what to send instead. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openSocket, readToEnd, type RawResponse } from '../support/raw-client.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { startProxy } from './proxy.ts';

const HEAD = 'Host: 127.0.0.1\r\nConnection: close\r\n\r\n';
const TARGETS = ['/', '/suche?ort=M', '/a?b#', '/a/%20', 'http://127.0.0.1/x?y='] as const;
/** Raw UTF-8, ISO 8859-1, and what is no visible ASCII. CR and LF end the request line. */
const REFUSED = fc
  .integer({ min: 0, max: 0xff })
  .filter((byte) => (byte < 0x20 || byte > 0x7e) && byte !== 0x0a && byte !== 0x0d);

function hex(byte: number): string {
  return `0x${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

/** Sends the bytes in two packets, the second when the first has been read. */
async function sendCut(url: string, text: string, cut: number): Promise<RawResponse> {
  const socket = await openSocket(url);
  const reply = readToEnd(socket);
  const bytes = Buffer.from(text, 'latin1');
  socket.write(bytes.subarray(0, cut));
  if (cut > 0) await new Promise((resolve) => setTimeout(resolve, 3));
  socket.write(bytes.subarray(cut));
  return reply;
}

function detailOf(reply: RawResponse): string {
  expect(reply.status).toBe(400);
  return (JSON.parse(reply.body.toString()) as { detail: string }).detail;
}

describe('a request with a byte that is not allowed', () => {
  it('in its target is refused with the byte, its place and the advice to percent-encode it, in every packet', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url);
    const inputs = [fc.constantFrom(...TARGETS), REFUSED, fc.constantFrom('', '\xbc', 'x'), fc.nat(100)] as const;
    await fc.assert(
      fc.asyncProperty(...inputs, async (before, byte, after, place) => {
        const request = `GET ${before}${String.fromCharCode(byte)}${after} HTTP/1.1\r\n${HEAD}`;
        const cut = place % (4 + before.length + 1);
        const detail = detailOf(await sendCut(proxy.url, request, cut));
        expect(detail).toContain('percent-encode');
        expect(detail).toContain(hex(byte));
        // The place is known where the packet has the blank before the target.
        if (cut < 4 || detail.includes('position'))
          expect(detail).toContain(` in position ${String(before.length + 1)}:`);
        // A query may hold a secret.
        expect(detail).not.toContain('suche');
      }),
    );
    expect(upstream.requests).toEqual([]);
  });

  it.each(['/a b', '/suche?ort=New York', '/a \xc3\xbc', '/a HTTP/1.1 b', '/a\rb'])(
    'in the target %j is refused with the advice to percent-encode it, wherever the packet ends',
    async (target) => {
      await using upstream = await startRecordingUpstream();
      await using proxy = await startProxy(upstream.url);
      const request = `GET ${target} HTTP/1.1\r\n${HEAD}`;
      for (let cut = 0; cut < 4 + target.length + 3; cut++)
        expect(detailOf(await sendCut(proxy.url, request, cut)), `cut at ${String(cut)}`).toContain('percent-encode');
      expect(upstream.requests).toEqual([]);
    },
  );

  it.each([
    ['G\xc3T / HTTP/1.1\r\n', 'method', '0xC3'],
    ['GET\t/ HTTP/1.1\r\n', 'method', '0x09'],
    ['GET / HTTP/1.1\r\nX-M\xfcller: a\r\n', 'header field', '0xFC'],
    ['GET / HTTP/1.1\r\nX Y: a\r\n', 'header field', '0x20'],
    ['GET / HTTP/1.1\r\nX: a\x01\r\n', 'header field', '0x01'],
  ])('in %j is refused with what has it', async (line, place, byte) => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url);
    const at = line.search(/[^\x20-\x7e\r\n]|(?<=X) /);
    for (const cut of [0, 1, at, at - 1]) {
      const detail = detailOf(await sendCut(proxy.url, line + HEAD, cut));
      expect(detail).toContain(place);
      expect(detail).toContain(byte);
    }
  });
});
