/**
 * Receives what comes of a chunked body before that may be read. node:http keeps each chunk of an unread body as a buffer of its own, so that
 * chunks of one byte cost some hundred times their size; here they can be joined as they come. When there is enough of them the
 * connection is not read from.
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

  /** @param keep returns false when it is enough; what the buffer at hand still holds comes all the same */
  constructor(request: IncomingMessage, keep: (chunk: Buffer) => boolean) {
    this.#request = request;
    this.#append = keep;
    this.#readLimiter = getReadLimiter(request.socket);
    request.on('data', this.#onData);
  }

  /** Leaves the rest of the body, paused, to another reader. Further calls do nothing. */
  stop(): void {
    const request = this.#request;
    if (request.listenerCount('data', this.#onData) === 0) return;
    request.off('data', this.#onData).pause();
    if (this.#isPaused) request.socket.off('resume', this.#keepPaused).resume();
  }
}
