/**
 * How the connection of a client ends with a response. A client that is still sending its request gets time to read the response (RFC 9112
 * §9.6). One whose response has broken off gets a reset: after a FIN, many HTTP stacks take what has come for the whole body (§8). A reset
 * discards what the kernels still hold, so the client gets time to read that first: docs/adr/0035-reset-after-quiet.md.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../platform/clock.ts';

/** The connections that are closed by the response to a request that is still being sent: no later request on them is processed. */
export const closingSockets = new WeakSet<Duplex>();

/** How long the rest of a request body is discarded after the response, so that the client can read the response. */
export const UNREAD_BODY_DRAIN_MS = 1000;

/**
 * Ends a response that has been written, and so its connection, at the end of its request or after `UNREAD_BODY_DRAIN_MS`.
 * @param maxBytes how much of the request is discarded at most
 */
export function drainThenClose(
  request: IncomingMessage,
  response: ServerResponse,
  clock: Clock,
  maxBytes: number,
): void {
  let leftBytes = maxBytes;
  const stop = (): void => {
    cancel();
    request.off('data', count).off('end', stop).off('close', stop);
    response.end();
  };
  const count = (chunk: Buffer): void => {
    leftBytes -= chunk.length;
    if (leftBytes <= 0) stop();
  };
  const cancel = clock.after(UNREAD_BODY_DRAIN_MS, stop);
  // An earlier reader may have paused it.
  request.on('data', count).on('end', stop).on('close', stop).resume();
}

/** From the moment at which the kernel has taken everything: whether the client takes it from there cannot be seen. */
const QUIET_MS = 200;
const LONGEST_WAIT_MS = 2000;

/** Their requests came before an earlier response of the connection had been written: the client may not have read that. */
export const pipelinedResponses = new WeakSet<ServerResponse>();
const brokenSockets = new WeakSet<Socket>();

/** Resets the connection of a response, once it has the connection, as `resetWhenRead` does. No further request of it is processed. */
export function breakOff(response: ServerResponse, clock: Clock): void {
  const { socket } = response.req;
  closingSockets.add(socket);
  brokenSockets.add(socket);
  if (response.destroyed) return;
  const start = (): void => resetWhenRead(socket, clock, pipelinedResponses.has(response));
  if (response.socket !== null) start();
  // By the next turn node:http has written to it what waited for it.
  else response.once('socket', () => setImmediate(start));
}

/** Resets a connection 200 ms after the kernel has taken everything, where nothing earlier may be unread; else, and at most, after 2 s. */
export function resetWhenRead(socket: Socket, clock: Clock, hasEarlier = false): void {
  brokenSockets.add(socket);
  const reset = (): void => closeAtOnce(socket);
  const cancels = [clock.after(LONGEST_WAIT_MS, reset)];
  socket.write('', (error) => {
    if (!error && !hasEarlier) cancels.push(clock.after(QUIET_MS, reset));
  });
  // Before node:http's own listener: a connection that is being ended cannot be reset.
  socket.prependOnceListener('end', reset);
  socket.once('close', () => cancels.forEach((cancel) => cancel()));
}

/** Closes a connection: by a reset if its response has broken off. */
export function closeAtOnce(socket: Socket): void {
  const isBroken = brokenSockets.has(socket) && !socket.writableEnded;
  // A Unix socket has neither a reset nor an address.
  if (isBroken && socket.remoteAddress !== undefined) socket.resetAndDestroy();
  else socket.destroy();
}
