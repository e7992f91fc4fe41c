/** What node:http shows of a request that nothing has read yet. */
import type { IncomingMessage } from 'node:http';

/** The declared length of the body (RFC 9112 §6.3); undefined when it is chunked, 0 without a body. */
export function declaredLength({ headers }: IncomingMessage): number | undefined {
  if (headers['transfer-encoding'] !== undefined) return undefined;
  return Number(headers['content-length'] ?? 0);
}

/**
 * Whether the last byte of the request has been received, read or not. `complete` alone is not enough: node:http sets it in a
 * later microtask than the one in which the last byte is in the stream's buffer.
 * @param readBytes bytes of the body that have been read from the stream already. Default 0
 */
export function isFullyReceived(request: IncomingMessage, readBytes = 0): boolean {
  return request.complete || readBytes + request.readableLength === declaredLength(request);
}

/**
 * Calls `listener` once when the last byte of an unread request has been received; not at once if it has been already. Nothing is read.
 * @returns ends it; to be called before anything reads the request
 */
export function onFullyReceived(request: IncomingMessage, listener: () => void): () => void {
  const look = (): void => {
    if (!isFullyReceived(request)) return;
    stop();
    listener();
  };
  const stop = (): void => void request.off('readable', look);
  request.on('readable', look);
  return stop;
}
