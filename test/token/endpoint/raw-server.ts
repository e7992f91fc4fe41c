/** A server of raw bytes: it records requests and writes responses unchanged. */
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

export class RawServer {
  /** Whole requests, read as Latin-1. */
  readonly requests: string[] = [];
  readonly sockets = new Set<Socket>();
  readonly #server: Server;
  readonly #received = Promise.withResolvers<undefined>();

  /** @param respond runs once a whole request is there */
  private constructor(respond: (socket: Socket) => void) {
    this.#server = createServer((socket) => {
      let text = '';
      // Some tests close the connection early.
      this.sockets.add(socket.on('error', () => socket.destroy()));
      socket.on('data', (bytes) => {
        text += bytes.toString('latin1');
        if (!isWhole(text)) return;
        this.requests.push(text);
        respond(socket);
        this.#received.resolve(undefined);
      });
    });
  }

  static async listen(respond: (socket: Socket) => void): Promise<RawServer> {
    const server = new RawServer(respond);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get url(): URL {
    const { port } = this.#server.address() as AddressInfo;
    return new URL(`http://127.0.0.1:${String(port)}/oauth/token`);
  }

  /** Resolves when the first whole request has arrived. */
  get received(): Promise<void> {
    return this.#received.promise;
  }

  /** Resolves with the first connection. */
  get connected(): Promise<Socket> {
    return new Promise((resolve) => this.#server.once('connection', resolve));
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }
}

function isWhole(request: string): boolean {
  const [head = '', body] = request.split('\r\n\r\n');
  return body !== undefined && body.length >= Number(/content-length: (\d+)/i.exec(head)?.[1]);
}
