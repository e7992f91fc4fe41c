/** The node:http server of the admin port, with limits so that slow or idle peers do not block health probes. server.ts handles requests. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { ConnectionSlots } from '../platform/connection-slots.ts';
import { createServer } from '../platform/http.ts';

/** Clients of the admin port send small requests and read at once. */
const SERVER_LIMITS = {
  headersTimeout: 5000,
  requestTimeout: 10_000,
  keepAliveTimeout: 5000,
  connectionsCheckingInterval: 1000,
  maxHeaderSize: 16 * 1024,
  // The guard checks Host.
  requireHostHeader: false,
  insecureHTTPParser: false,
};
/** Pipelined requests of one connection without a response; health probes and scrapers do not pipeline. */
const MAX_PIPELINED = 4;
const IDLE_SOCKET_MS = 10_000;

/** Resolves when the response has been written completely or its connection has closed. */
export type AdminHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/**
 * An HTTP server that is not listening yet; one per bound address.
 * @param slots shared by all servers of the port. When all are taken, a new connection displaces the one that has waited longest, in
 * its request head or for its peer to read
 */
export function createAdminServer(handler: AdminHandler, slots: ConnectionSlots): Server {
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!request.socket.destroyed) await handler(request, response);
    slots.endRequest(request.socket);
  };
  const server = createServer(SERVER_LIMITS, (request, response) => {
    const { socket } = request;
    // Responds after the whole packet was parsed, since a pipelined request in it may end the connection.
    if (slots.beginRequest(socket) > MAX_PIPELINED) socket.destroy();
    else setImmediate(() => void respond(request, response));
  });
  server.on('connection', (socket) => {
    const decision = slots.add(socket);
    if (decision.kind === 'displace') decision.socket.destroy();
    if (decision.kind === 'reject') socket.destroy();
    else socket.once('close', () => slots.remove(socket));
  });
  server.setTimeout(IDLE_SOCKET_MS);
  return server;
}
