/**
 * The client's connection until its upgrade is decided: read all the time, so that its end is noticed at once, with what comes kept for
 * the upstream. RFC 6455 §4.1 forbids a client to send before the 101; some do.
 */
import type { Socket } from 'node:net';

/** What is kept of one client. */
const MAX_KEPT_BYTES = 64 * 1024;

export class EarlyBytes {
  readonly #socket: Socket;
  readonly #chunks: Buffer[] = [];
  #length = 0;
  readonly #onBufferExceeded: () => void;

  /**
   * @param head what node:http has read already
   * @param onOverflow called when more has come than is kept
   */
  constructor(socket: Socket, head: Buffer, onOverflow: () => void) {
    this.#socket = socket;
    this.#onBufferExceeded = onOverflow;
    // A client that half-closes before the 101 has left: no protocol is in use on the connection yet.
    socket.once('end', this.#onEnd).on('data', this.#onData);
    if (head.length > 0) this.#onData(head);
  }

  /** Ends the reading, and puts what has come back in front of what will come. */
  unshift(): void {
    this.#socket.off('end', this.#onEnd).off('data', this.#onData).pause();
    if (this.#length > 0) this.#socket.unshift(Buffer.concat(this.#chunks.splice(0)));
  }

  /** From now on what comes is not kept; the connection is read on. */
  stopKeeping(): void {
    this.#socket.off('data', this.#onData);
    this.#chunks.length = 0;
  }

  readonly #onEnd = (): void => void this.#socket.destroy();

  readonly #onData = (chunk: Buffer): void => {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length <= MAX_KEPT_BYTES) return;
    this.stopKeeping();
    this.#onBufferExceeded();
  };
}
