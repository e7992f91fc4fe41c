/** An upstream that reads heads and bodies as bytes and responds with bytes: for what no HTTP library would send. */
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { freePort } from '../support/loopback.ts';

export interface RawUpstream {
  readonly url: string;
  /** Everything received on each connection so far, as latin1, in order of connection. */
  readonly received: readonly string[];
  readonly sockets: readonly Socket[];
}

/** Called once for every request head, counted from 0 over all connections. */
export type RespondRaw = (socket: Socket, index: number, head: string) => void;

export async function startRawUpstream(respond: RespondRaw): Promise<RawUpstream> {
  const received: string[] = [];
  const sockets: Socket[] = [];
  let heads = 0;
  const server = createServer((socket) => {
    const mine = sockets.push(socket) - 1;
    received.push('');
    let unread = '';
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk: Buffer) => {
      const text = chunk.toString('latin1');
      received[mine] = (received[mine] ?? '') + text;
      unread += text;
      // A new head begins where a request line does; bodies of these tests hold none.
      for (let end = unread.indexOf('\r\n\r\n'); end >= 0; end = unread.indexOf('\r\n\r\n')) {
        const head = unread.slice(0, end);
        unread = unread.slice(end + 4);
        if (/^[A-Z]+ \S+ HTTP\/1\.1\r\n/m.test(head)) respond(socket, heads++, head);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`, received, sockets };
}

/** A loopback port without a listener, from a range in which servers of other tests get none. */
export async function closedPort(): Promise<string> {
  return `http://127.0.0.1:${String(await freePort())}`;
}
