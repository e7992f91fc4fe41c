/** How much of an unread request node:http has received. */
import type { IncomingMessage } from 'node:http';

/** The declared length of the body (RFC 9112 §6.3); undefined when it is chunked, 0 without a body. */
export function declaredLength({ headers }: IncomingMessage): number | undefined {
  if (headers['transfer-encoding'] !== undefined) return undefined;
  return Number(headers['content-length'] ?? 0);
}

/**
 * Whether the last byte of the request has been received, read or not. `complete` alone is not enough: node:http sets it a
 * microtask after the last byte is in the stream's buffer.
 * @param readBytes bytes of the body that have been read from the stream. Default 0
 */
export function isFullyReceived(request: IncomingMessage, readBytes = 0): boolean {
  return request.complete || readBytes + request.readableLength === declaredLength(request);
}

/**
 * Calls `listener` once when the last byte of an unread request is received; not if it has been received before. Reads nothing.
 * @returns removes the listener; to be called before the request is read
 */
export function onFullyReceived(request: IncomingMessage, listener: () => void): () => void {
  const check = (): void => {
    if (!isFullyReceived(request)) return;
    stop();
    listener();
  };
  const stop = (): void => void request.off('readable', check);
  request.on('readable', check);
  return stop;
}
