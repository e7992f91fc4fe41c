/** A relay of TCP connections that reads along: which request got which status, as it went over the wire. */
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

export interface StatusTap extends AsyncDisposable {
  /** Stands for the server behind it. */
  readonly url: string;
  /** Status codes of the responses to requests for a path, without its query. */
  statuses(path: string): readonly string[];
  /** Accepted so far. */
  connections(): number;
}

/** @param serverUrl of a server on loopback that is asked without pipelining */
export async function startStatusTap(serverUrl: string): Promise<StatusTap> {
  const { hostname, port } = new URL(serverUrl);
  const statusesByPath = new Map<string, string[]>();
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((client) => {
    connections++;
    const behind = connect({ host: hostname, port: Number(port) });
    let path = '';
    client.on('data', (chunk: Buffer) => {
      path = /^[A-Z]+ ([^ ?]+)\S* HTTP\/1\.1\r\n/.exec(chunk.toString('latin1'))?.[1] ?? path;
    });
    behind.on('data', (chunk: Buffer) => {
      const status = /^HTTP\/1\.1 (\d{3}) /.exec(chunk.toString('latin1'))?.[1];
      if (status !== undefined) statusesByPath.set(path, [...(statusesByPath.get(path) ?? []), status]);
    });
    for (const [socket, other] of [
      [client, behind],
      [behind, client],
    ] as const) {
      sockets.add(socket);
      socket.pipe(other);
      socket.on('error', () => other.destroy()).on('close', () => sockets.delete(socket));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    statuses: (path) => statusesByPath.get(path) ?? [],
    connections: () => connections,
    [Symbol.asyncDispose]: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => void server.close(() => resolve()));
    },
  };
}
