/** A real WebSocket server that echoes, plain HTTP responses for paths that refuse, and what reached it. */
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';

export interface SeenUpgrade {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

export interface EchoServer extends AsyncDisposable {
  readonly url: string;
  readonly seen: readonly SeenUpgrade[];
  /** Connections that are upgraded now. */
  readonly open: number;
}

export interface EchoOptions {
  /** Given: speaks TLS. */
  readonly tls?: { readonly key: Buffer; readonly cert: Buffer };
  /** Bytes to respond with in place of the upgrade; undefined upgrades. */
  readonly refuse?: (request: IncomingMessage) => string | undefined;
  /** Leaves these upgrades without any response. */
  readonly ignore?: (request: IncomingMessage) => boolean;
}

export async function startEchoServer(options: EchoOptions = {}): Promise<EchoServer> {
  const seen: SeenUpgrade[] = [];
  const sockets = new Set<Duplex>();
  const server = options.tls === undefined ? createServer() : createTlsServer(options.tls);
  const echo = new WebSocketServer({ noServer: true, handleProtocols: (offered) => [...offered][0] ?? false });
  server.on('connection', (socket: Duplex) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    seen.push({ url: request.url ?? '', headers: request.headers });
    socket.on('error', () => socket.destroy());
    if (options.ignore?.(request) === true) return;
    const refusal = options.refuse?.(request);
    if (refusal !== undefined) {
      socket.end(refusal, 'latin1');
      return;
    }
    echo.handleUpgrade(request, socket, head, (webSocket) => {
      webSocket.on('message', (data: Buffer, isBinary) => {
        webSocket.send(data, { binary: isBinary });
      });
      webSocket.on('error', () => {
        webSocket.terminate();
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${String(port)}`,
    seen,
    get open() {
      return echo.clients.size;
    },
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
