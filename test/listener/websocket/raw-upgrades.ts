/** WebSocket upgrades over raw TCP: a request, an upstream that accepts it, and connections that then do what no WebSocket library does. */
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { selectNoProxy } from '../../../src/platform/egress/proxy-selector.ts';
import { createUpgradeHandler } from '../../../src/listener/websocket/websocket.ts';
import { startProxy } from '../proxy.ts';
import type { Proxy, ProxyOptions } from '../proxy.ts';

/** Key and accept value of RFC 6455 §1.3. */
export const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';
const ACCEPT = 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=';

/** @param more header field lines, each with its line end */
export function upgradeRequest(more = '', key = `Sec-WebSocket-Key: ${KEY}\r\n`): string {
  return (
    'GET /feed HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
    `Sec-WebSocket-Version: 13\r\n${key}${more}\r\n`
  );
}

export const SWITCHING =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
  `Sec-WebSocket-Accept: ${ACCEPT}\r\n\r\n`;

export interface RawUpstream extends AsyncDisposable {
  readonly url: string;
  readonly sockets: readonly Socket[];
  /** Connections that have not been closed. */
  readonly open: number;
}

/**
 * Its connections stay half-open: a FIN is not followed by one of ours unless a test does so.
 * @param respond called once for each connection, with what came behind the head of its request, and with that head
 */
export async function startRawUpstream(
  respond: (socket: Socket, early: Buffer, head: string) => void,
): Promise<RawUpstream> {
  const sockets: Socket[] = [];
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
    sockets.push(socket);
    socket.on('error', () => socket.destroy());
    let received = Buffer.alloc(0);
    const read = (bytes: Buffer): void => {
      received = Buffer.concat([received, bytes]);
      const headEnd = received.indexOf('\r\n\r\n');
      if (headEnd < 0) return;
      socket.off('data', read);
      respond(socket, received.subarray(headEnd + 4), received.toString('latin1', 0, headEnd));
    };
    socket.on('data', read);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    sockets,
    get open() {
      return sockets.filter(({ destroyed }) => !destroyed).length;
    },
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

export function startUpgrading(upstreamUrl: string, options: ProxyOptions = {}): Promise<Proxy> {
  return startProxy(upstreamUrl, {
    serveUpgrade: createUpgradeHandler({
      trust: undefined,
      egress: selectNoProxy,
      connectTimeoutMs: 5000,
      maxHeaderBytes: 65_536,
    }),
    ...options,
  });
}
