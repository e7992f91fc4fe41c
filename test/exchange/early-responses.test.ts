/** An upstream that responds to an upload before its end and closes: its response is read before the write error counts. */
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { onTestFinished, expect, it } from 'vitest';
import { startInProcess } from '../composition/in-process.ts';
import { makeCertificates } from '../support/certificates.ts';
import { startNginx } from '../support/nginx.ts';
import { openSocket, readToEnd, type RawResponse } from '../support/raw-client.ts';

const PIECE = Buffer.alloc(64 * 1024);
const MEGABYTE = 1_000_000;
/** Streamed through, past the replay buffer. */
const LARGE = [3 * MEGABYTE, 10 * MEGABYTE, 50 * MEGABYTE];
/** Read whole before they are sent. */
const SMALL = [300_000, 700_000, MEGABYTE];
const REFUSAL = 'HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge';
const ROUNDS = 12;

/** Responds as soon as it has a head, and closes with the upload unread, which resets the connection. */
function refuse(socket: Socket, response: string, close: 'destroy' | 'end'): void {
  let text = '';
  socket.on('error', () => undefined);
  socket.on('data', function read(chunk: Buffer) {
    text += chunk.toString('latin1');
    if (!text.includes('\r\n\r\n')) return;
    socket.off('data', read).pause();
    socket.write(response, () => socket[close]());
  });
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

async function upload(url: string, size: number, isChunked: boolean): Promise<RawResponse> {
  const socket = await openSocket(url);
  const reading = readToEnd(socket);
  const framing = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${String(size)}`;
  socket.write(`POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${framing}\r\n\r\n`);
  let left = size;
  const writeOn = (): void => {
    while (left > 0 && !socket.destroyed) {
      const piece = PIECE.subarray(0, Math.min(left, PIECE.length));
      left -= piece.length;
      const end = left === 0 ? '\r\n0\r\n\r\n' : '\r\n';
      const bytes = isChunked ? [`${piece.length.toString(16)}\r\n`, piece, end] : [piece];
      if (!bytes.map((part) => socket.write(part)).every(Boolean)) return;
    }
  };
  socket.on('drain', writeOn);
  writeOn();
  return reading;
}

async function statuses(url: string, sizes: readonly number[], isChunked = false): Promise<Record<number, number>> {
  const seen: Record<number, number> = {};
  for (let round = 0; round < ROUNDS; round++) {
    const { status } = await upload(url, sizes[round % sizes.length] ?? 0, isChunked);
    seen[status] = (seen[status] ?? 0) + 1;
  }
  return seen;
}

it.each(['destroy', 'end'] as const)(
  'every early 413 reaches the client, as it would without the sidecar: %s',
  async (close) => {
    const port = await listen(createServer((socket) => refuse(socket, REFUSAL, close)));
    const apiUrl = `http://127.0.0.1:${String(port)}`;
    expect(await statuses(apiUrl, LARGE)).toEqual({ 413: ROUNDS });
    const { url, eventsOf } = await startInProcess({ apiUrl });
    expect(await statuses(url, LARGE)).toEqual({ 413: ROUNDS });
    expect(await statuses(url, LARGE, true)).toEqual({ 413: ROUNDS });
    expect(await statuses(url, SMALL)).toEqual({ 413: ROUNDS });
    expect(new Set(eventsOf('attempt-ended').map(({ outcome }) => outcome))).toEqual(new Set(['error_status']));
  },
);

it.each(['destroy', 'end'] as const)('over TLS, too: %s', async (close) => {
  using certificates = makeCertificates();
  const { key, cert } = certificates;
  const server = createTlsServer({ key, cert }, (socket) => refuse(socket, REFUSAL, close));
  const apiUrl = `https://localhost:${String(await listen(server.on('tlsClientError', () => undefined)))}`;
  const { url } = await startInProcess({ apiUrl, env: { SIDECAR_CA_FILE: certificates.caFile } });
  expect(await statuses(url, LARGE)).toEqual({ 413: ROUNDS });
  expect(await statuses(url, SMALL)).toEqual({ 413: ROUNDS });
});

it('nginx past its client_max_body_size', async () => {
  await using nginx = await startNginx();
  const { url } = await startInProcess({ apiUrl: nginx.url });
  expect(await statuses(url, [20 * MEGABYTE, 50 * MEGABYTE])).toEqual({ 413: ROUNDS });
});

it('a response that only the end of its connection completes is never taken for whole', async () => {
  const port = await listen(
    createServer((socket) => refuse(socket, 'HTTP/1.1 413 No\r\nConnection: close\r\n\r\npart', 'destroy')),
  );
  const { url, eventsOf } = await startInProcess({ apiUrl: `http://127.0.0.1:${String(port)}` });
  for (let round = 0; round < ROUNDS; round++) {
    const { status, bytes } = await upload(url, 10 * MEGABYTE, false);
    expect([413, 502]).toContain(status);
    if (status === 413) expect(bytes.toString()).not.toMatch(/\r\n0\r\n\r\n$/);
  }
  expect(eventsOf('attempt-ended').map(({ outcome }) => outcome)).not.toContain('error_status');
});

it('without a response the write error is the reply, once', async () => {
  const port = await listen(createServer((socket) => refuse(socket, '', 'destroy')));
  const { url, eventsOf } = await startInProcess({ apiUrl: `http://127.0.0.1:${String(port)}` });
  expect(await statuses(url, [10 * MEGABYTE])).toEqual({ 502: ROUNDS });
  expect(eventsOf('attempt-ended').map(({ outcome }) => outcome)).toEqual(Array(ROUNDS).fill('reset'));
});
