/**
 * The upstream as a witness: records every byte of every connection and what they are when read strictly, and responses
 * each whole request. What is no request is recorded too, and its connection closed.
 */
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { readRequest } from './strict-request.ts';
import type { WitnessedRequest } from './strict-request.ts';

/** What came since it was asked last. */
export interface Sighting {
  readonly requests: readonly WitnessedRequest[];
  /** Bytes that are no whole request, one text per connection, with the reason. */
  readonly scraps: readonly string[];
}

export interface ByteWitness extends AsyncDisposable {
  readonly url: string;
  /** Whole requests since the start. */
  readonly seen: () => number;
  /** Everything since the last call; what has begun and is not whole counts as a scrap. */
  take(): Sighting;
}

interface Connection {
  readonly socket: Socket;
  unread: string;
}

export async function startByteWitness(): Promise<ByteWitness> {
  const connections = new Set<Connection>();
  let requests: WitnessedRequest[] = [];
  let scraps: string[] = [];
  let seen = 0;

  const drop = (connection: Connection, why: string): void => {
    connections.delete(connection);
    if (connection.unread !== '') scraps.push(`${why}: ${connection.unread}`);
    connection.socket.destroy();
  };
  const read = (connection: Connection): void => {
    while (connection.unread !== '') {
      const reading = readRequest(connection.unread);
      if (reading.kind === 'incomplete') return;
      if (reading.kind === 'malformed') {
        drop(connection, reading.why);
        return;
      }
      connection.unread = connection.unread.slice(reading.length);
      requests.push(reading.request);
      seen++;
      connection.socket.write(responseTo(reading.request));
    }
  };
  const server = createServer({ noDelay: true }, (socket) => {
    const connection = { socket, unread: '' };
    connections.add(connection);
    socket.on('data', (chunk: Buffer) => {
      connection.unread += chunk.toString('latin1');
      read(connection);
    });
    const end = (): void => {
      if (connections.has(connection)) drop(connection, 'broken off');
    };
    socket.on('error', end).on('close', end);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    seen: () => seen,
    take: () => {
      for (const { unread } of connections) if (unread !== '') scraps.push(`not whole: ${unread}`);
      const sighting = { requests, scraps };
      requests = [];
      scraps = [];
      return sighting;
    },
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const { socket } of connections) socket.destroy();
      await closed;
    },
  };
}

function responseTo({ method }: WitnessedRequest): string {
  return `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\n${method === 'HEAD' ? '' : 'seen'}`;
}
