/**
 * A crowd of clients in a process of its own: `crowd.child.ts URL IDLE SLOW`. IDLE connections make one request and stay;
 * SLOW ones drip the head of a request and never end it. Says `ready` on stdout; ends with its stdin.
 */
import type { Socket } from 'node:net';
import { openSocket } from '../support/raw-client.ts';

const [, , url = '', idle = '0', slow = '0'] = process.argv;
/** How many open at a time: the port's backlog is finite. */
const TOGETHER = 200;
const DRIP_EVERY_MS = 1000;

async function openMany(count: number, first: string, expectsResponse: boolean): Promise<Socket[]> {
  const sockets: Socket[] = [];
  while (sockets.length < count) {
    const batch = Array.from({ length: Math.min(TOGETHER, count - sockets.length) }, async () => {
      const socket = await openSocket(url);
      const responded = new Promise((resolve) => socket.once('data', resolve));
      // A connection that ends early is missing in the count of the other end.
      socket.on('error', () => socket.destroy()).on('data', () => undefined);
      socket.write(first);
      if (expectsResponse) await responded;
      return socket;
    });
    sockets.push(...(await Promise.all(batch)));
  }
  return sockets;
}

await openMany(Number(idle), 'GET /idle HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n', true);
const drippers = await openMany(Number(slow), 'POST /slow HTTP/1.1\r\nHost: 127.0.0.1\r\nX-', false);
setInterval(() => {
  for (const socket of drippers) socket.write('a');
}, DRIP_EVERY_MS);
console.log('ready');
process.stdin.on('end', () => process.exit()).resume();
