/** An upstream whose responses have exactly five header fields, and which refuses calls past a limit when it has one. */
import { createServer, type Socket } from 'node:net';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

export interface PlainUpstream extends AsyncDisposable {
  readonly url: string;
  readonly refused: number;
}

const BODY = JSON.stringify({ policies: [{ id: 'p-1', premium: 12.5 }] });

/** @param limit calls in any second; Infinity: none is refused */
export async function startPlainUpstream(limit: number): Promise<PlainUpstream> {
  const accepted: number[] = [];
  const sockets = new Set<Socket>();
  let refused = 0;
  const respond = (): string => {
    const now = performance.now();
    while (accepted[0] !== undefined && accepted[0] <= now - 1000) accepted.shift();
    if (accepted.length >= limit) {
      refused++;
      return format('429 Too Many Requests');
    }
    accepted.push(now);
    return format('200 OK');
  };
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    respondToEachRequest(socket, respond);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    get refused() {
      return refused;
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function respondToEachRequest(socket: Socket, respond: () => string): void {
  let received = '';
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text;
    for (;;) {
      const end = received.indexOf('\r\n\r\n');
      if (end < 0) return;
      const length = Number(/^content-length: *(\d+)/im.exec(received.slice(0, end))?.[1] ?? 0);
      if (received.length < end + 4 + length) return;
      received = received.slice(end + 4 + length);
      socket.write(respond());
    }
  });
}

function format(status: string): string {
  const fields = [
    'Content-Type: application/json',
    `Content-Length: ${String(BODY.length)}`,
    `Date: ${new Date().toUTCString()}`,
    'Cache-Control: no-store',
    'X-Request-Id: 4f1c',
  ];
  return `HTTP/1.1 ${status}\r\n${fields.join('\r\n')}\r\n\r\n${BODY}`;
}
