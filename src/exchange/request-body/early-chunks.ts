/**
 * Receives the first chunks of a chunked body before the body may be read. node:http keeps each chunk of an unread body as a buffer of its
 * own, so that chunks of one byte cost about a hundred times their size; here they are joined. When enough have come, the connection is
 * paused.
 */
import type { IncomingMessage } from 'node:http';
import { getReadLimiter, type ReadLimiter } from './read-limiter.ts';

export class EarlyChunks {
  readonly #request: IncomingMessage;
  readonly #append: (chunk: Buffer) => boolean;
  readonly #readLimiter: ReadLimiter;
  readonly #keepPaused = (): void => void this.#request.socket.pause();
  #isPaused = false;
  readonly #onData = (chunk: Buffer): void => {
    this.#readLimiter.countChunk();
    if (this.#append(chunk) || this.#isPaused) return;
    this.#isPaused = true;
    this.#request.socket.on('resume', this.#keepPaused).pause();
  };

  /** @param append returns false when enough has come; the rest of the current socket buffer is still passed to it */
  constructor(request: IncomingMessage, append: (chunk: Buffer) => boolean) {
    this.#request = request;
    this.#append = append;
    this.#readLimiter = getReadLimiter(request.socket);
    request.on('data', this.#onData);
  }

  /** Leaves the rest of the body, paused, to another reader. Later calls do nothing. */
  stop(): void {
    const request = this.#request;
    if (request.listenerCount('data', this.#onData) === 0) return;
    request.off('data', this.#onData).pause();
    if (this.#isPaused) request.socket.off('resume', this.#keepPaused).resume();
  }
}
