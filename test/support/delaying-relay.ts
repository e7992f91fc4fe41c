/** A TCP relay on 127.0.0.1 that delays the bytes of each direction; its owner can change the delay. */
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

export interface DelayingRelay extends AsyncDisposable {
  readonly port: number;
  /** Milliseconds of one round trip, all of them in the direction of the client. */
  roundTripMs: number;
  /** Connections accepted so far. */
  readonly connections: number;
}

export async function startDelayingRelay(targetPort: number, roundTripMs: number): Promise<DelayingRelay> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer({ noDelay: true }, (client) => {
    connections++;
    const target = connect({ port: targetPort, host: '127.0.0.1', noDelay: true });
    let lastAt = 0;
    // In order, also after the delay was reduced.
    const later = (run: () => void): void => {
      lastAt = Math.max(lastAt, performance.now() + relay.roundTripMs);
      // Node's timers may be early by less than a millisecond.
      setTimeout(run, Math.max(0, Math.ceil(lastAt - performance.now()) + 1));
    };
    for (const socket of [client, target]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
    }
    client.on('data', (chunk: Buffer) => void target.write(chunk));
    target.on('data', (chunk: Buffer) => later(() => void client.write(chunk)));
    client.on('close', () => target.destroy());
    target.on('close', () => later(() => client.destroy()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const relay: DelayingRelay = {
    port: (server.address() as AddressInfo).port,
    roundTripMs,
    get connections() {
      return connections;
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
  return relay;
}
