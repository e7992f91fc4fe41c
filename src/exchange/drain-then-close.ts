/** What is done for a client that is still sending when it has been answered. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../platform/clock.ts';

const closingSockets = new WeakSet<Duplex>();

/** The response to a request that is still being sent closes the connection: what follows there is not processed (RFC 9112 §9.6). */
export function markClosing(socket: Duplex): void {
  closingSockets.add(socket);
}

export function isMarkedClosing(socket: Duplex): boolean {
  return closingSockets.has(socket);
}

/** How long an unread body is read away after an answer, so that the client gets to read the answer. */
export const UNREAD_BODY_DRAIN_MS = 1000;

/**
 * Ends a response that has been written, and so its connection, when its request has come to its end, or patience has (RFC 9112 §9.6).
 * @param maxBytes how much of the request is read away at most
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
  // Whoever was reading it may have paused it.
  request.on('data', count).on('end', stop).on('close', stop).resume();
}
