/**
 * Ends the connection of a response that has broken off with a reset: after a FIN, many HTTP stacks take what has come for the whole body
 * (RFC 9112 §8). A reset discards what the kernels still hold, so the client gets time to read that first: docs/adr/0035-reset-after-quiet.md.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../platform/clock.ts';
import { closingSockets } from './drain-then-close.ts';

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
