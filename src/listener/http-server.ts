/** Creates the node:http server of the proxy port with its timeouts and parser options. */
import type http from 'node:http';
import type { Socket } from 'node:net';
import { createServer } from '../platform/http.ts';
import { MAX_HEADER_FIELDS } from './guard.ts';
import { shouldUpgrade } from './ignored-upgrades.ts';

export interface ProxyHttpServerOptions {
  readonly keepAliveMs: number;
  /** Milliseconds in which a request head must arrive; then the reply is 408. Default 60000. */
  readonly headersTimeoutMs?: number;
  /** A client that has sent FIN still gets its response. */
  readonly allowHalfClose: boolean;
}

const DEFAULT_HEADERS_TIMEOUT_MS = 60_000;

/** @param accept decides about each new connection before node:http creates a parser for it, and ends those that it rejects */
export function createProxyHttpServer(
  options: ProxyHttpServerOptions,
  accept: (socket: Socket) => boolean,
): http.Server {
  const { keepAliveMs, headersTimeoutMs = DEFAULT_HEADERS_TIMEOUT_MS, allowHalfClose } = options;
  const server = createServer({
    keepAliveTimeout: keepAliveMs,
    headersTimeout: headersTimeoutMs,
    connectionsCheckingInterval: headersTimeoutMs / 4,
    // The body of a queued request stays unread for long; silence within a body is timed by its reader.
    requestTimeout: 0,
    noDelay: true,
    // The body of a request without one has ended from the start.
    optimizeEmptyRequests: true,
    // Node's own rejection would be neither a problem document nor recorded; the guard checks Host.
    requireHostHeader: false,
    // Overrides --insecure-http-parser in NODE_OPTIONS.
    insecureHTTPParser: false,
    shouldUpgradeCallback: shouldUpgrade,
  });
  const attachParser = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection').on('connection', (socket: Socket) => {
    if (accept(socket)) for (const attach of attachParser) attach.call(server, socket);
  });
  // Some versions drop further fields and report nothing: by one more than are allowed the guard sees that there are too many.
  return Object.assign(server, { httpAllowHalfOpen: allowHalfClose, maxHeadersCount: MAX_HEADER_FIELDS + 1 });
}
