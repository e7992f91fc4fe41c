/** node:http as the proxy port wants it. What is heard and answered there is proxy-server.ts's. */
import type http from 'node:http';
import type { Socket } from 'node:net';
import { createServer } from '../platform/http.ts';

export interface ProxyHttpServerOptions {
  /** How long an idle connection is kept, milliseconds. */
  readonly keepAliveMs: number;
  /** A client that does not finish its field section within this time is answered 408. Default 60000. */
  readonly headersTimeoutMs?: number;
  /** A client that has sent FIN still waits for its answer. */
  readonly allowHalfClose: boolean;
}

const DEFAULT_HEADERS_TIMEOUT_MS = 60_000;

/**
 * A server that listens nowhere yet and answers nothing.
 * @param accept judges each new connection before node:http makes a parser for it; one that it refuses is its own to end
 */
export function createProxyHttpServer(
  options: ProxyHttpServerOptions,
  accept: (socket: Socket) => boolean,
): http.Server {
  const { keepAliveMs, headersTimeoutMs = DEFAULT_HEADERS_TIMEOUT_MS, allowHalfClose } = options;
  const server = createServer({
    keepAliveTimeout: keepAliveMs,
    headersTimeout: headersTimeoutMs,
    connectionsCheckingInterval: headersTimeoutMs / 4,
    // A queued request's body may stay unread for long; silence within a body is timed where it is read.
    requestTimeout: 0,
    noDelay: true,
    // Requests that declare no body come with one that has ended.
    optimizeEmptyRequests: true,
    // Node's own refusal would be neither a problem document nor told of; the guard counts the Host fields.
    requireHostHeader: false,
    // Also when NODE_OPTIONS has --insecure-http-parser.
    insecureHTTPParser: false,
  });
  const attachParser = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection').on('connection', (socket: Socket) => {
    if (accept(socket)) for (const attach of attachParser) attach.call(server, socket);
  });
  // The guard has to see every field; the size of the field section bounds their number.
  return Object.assign(server, { httpAllowHalfOpen: allowHalfClose, maxHeadersCount: 0 });
}
