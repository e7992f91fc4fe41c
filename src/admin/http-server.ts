/** node:http as the admin port wants it: slow and idle peers must not keep a probe out. What is answered there is server.ts's. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ConnectionSlots } from '../platform/connection-slots.ts';
import { createServer } from '../platform/http.ts';

/** Clients of the admin port ask little and read at once. */
const SERVER_LIMITS = {
  headersTimeout: 5000,
  requestTimeout: 10_000,
  keepAliveTimeout: 5000,
  connectionsCheckingInterval: 1000,
  maxHeaderSize: 16 * 1024,
  // The guard counts the Host fields, and says what it expects.
  requireHostHeader: false,
  insecureHTTPParser: false,
};
/** Requests of one connection that are not answered yet; no probe or scraper pipelines. */
const MAX_PIPELINED = 4;
const IDLE_SOCKET_MS = 10_000;

/** Resolves when the response has been given, to be sent as fast as the client reads; that of an event stream when it has closed. */
export type AdminHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/**
 * An HTTP server with the limits of the admin port, not listening yet; one for each address that is bound.
 * @param slots of all of them together. When they are taken, a new connection is served in place of the one that has waited longest, in its head
 * or for its peer to read
 */
export function createAdminServer(handler: AdminHandler, slots: ConnectionSlots): Server {
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!request.socket.destroyed) await handler(request, response);
    slots.endRequest(request.socket);
  };
  const server = createServer(SERVER_LIMITS, (request, response) => {
    const { socket } = request;
    // All of a packet has been read before the first response is made: that of a connection which ends here would be in vain.
    if (slots.beginRequest(socket) > MAX_PIPELINED) socket.destroy();
    else setImmediate(() => void answer(request, response));
  });
  server.on('connection', (socket) => acceptConnection(socket, slots));
  server.setTimeout(IDLE_SOCKET_MS);
  return server;
}

function acceptConnection(socket: Socket, slots: ConnectionSlots): void {
  const decision = slots.add(socket);
  if (decision.kind === 'displace') decision.socket.destroy();
  if (decision.kind === 'refuse') socket.destroy();
  else socket.once('close', () => slots.remove(socket));
}
