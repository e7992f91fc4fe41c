/** Closes the connection of a client that is still sending its request when it gets the response (RFC 9112 §9.6). */
import type { IncomingMessage, ServerResponse } from 'node:http';
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
