/**
 * Receives what comes of a chunked body before that may be read. node:http keeps each chunk of an unread body as a buffer of its own, so that
 * chunks of one byte cost some hundred times their size; here they can be joined as they come. When there is enough of them the
 * connection is not read from.
 */
import type { IncomingMessage } from 'node:http';
import { paceOf, type PacketPace } from './packet-pace.ts';

export class EarlyChunks {
  readonly #request: IncomingMessage;
  readonly #keep: (chunk: Buffer) => boolean;
  readonly #pace: PacketPace;
  readonly #hold = (): void => void this.#request.socket.pause();
  #isHeld = false;
  readonly #onData = (chunk: Buffer): void => {
    this.#pace.count();
    if (this.#keep(chunk) || this.#isHeld) return;
    this.#isHeld = true;
    this.#request.socket.on('resume', this.#hold).pause();
  };

  /** @param keep returns false when it is enough; what the buffer at hand still holds comes all the same */
  constructor(request: IncomingMessage, keep: (chunk: Buffer) => boolean) {
    this.#request = request;
    this.#keep = keep;
    this.#pace = paceOf(request.socket);
    request.on('data', this.#onData);
  }

  /** Leaves the rest of the body, paused, to another reader. Further calls do nothing. */
  stop(): void {
    const request = this.#request;
    if (request.listenerCount('data', this.#onData) === 0) return;
    request.off('data', this.#onData).pause();
    if (this.#isHeld) request.socket.off('resume', this.#hold).resume();
  }
}
