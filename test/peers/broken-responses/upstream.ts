/** An API whose responses break off by a reset: `/FRAMING/PLACE` of a body of 100 000 bytes. */
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const BODY_BYTES = 100_000;

export const FRAMINGS = ['length', 'chunked', 'close'] as const;
export type Framing = (typeof FRAMINGS)[number];

/** Where it breaks off: behind its head, its first byte, its middle, or when only its end is missing. */
export const PLACES = ['head', 'first', 'middle', 'last'] as const;
export type Place = (typeof PLACES)[number];

const FIELDS: Readonly<Record<Framing, string>> = {
  length: `Content-Length: ${String(BODY_BYTES)}\r\n`,
  chunked: 'Transfer-Encoding: chunked\r\n',
  close: 'Connection: close\r\n',
};
/** The client is to have what was sent before the upstream breaks off. */
const PAUSE_MS = 30;

/** Bytes of the body that are sent. Of one with a length the last is missing, of the others the final chunk or a clean end. */
export function sentBytes(framing: Framing, place: Place): number {
  if (place === 'head') return 0;
  if (place === 'first') return 1;
  if (place === 'middle') return BODY_BYTES / 2;
  return framing === 'length' ? BODY_BYTES - 1 : BODY_BYTES;
}

export async function startBreakingUpstream(): Promise<{ readonly url: string } & AsyncDisposable> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
    socket.once('data', (bytes) => {
      const [, framing, place] = (bytes.toString('latin1').split(' ')[1] ?? '').split('/') as [string, Framing, Place];
      void respond(socket, framing, place);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function respond(socket: Socket, framing: Framing, place: Place): Promise<void> {
  socket.write(`HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n${FIELDS[framing]}\r\n`);
  await sleep(PAUSE_MS);
  const bytes = sentBytes(framing, place);
  const body = 'x'.repeat(bytes);
  if (bytes > 0) socket.write(framing === 'chunked' ? `${bytes.toString(16)}\r\n${body}\r\n` : body);
  await sleep(PAUSE_MS);
  socket.resetAndDestroy();
}
