/**
 * Reads the client's connection while its upgrade is pending, so that its end is noticed at once, and keeps the bytes for the upstream.
 * RFC 6455 §4.1 forbids a client to send before the 101; some do.
 */
import type { Socket } from 'node:net';

const MAX_KEPT_BYTES = 64 * 1024;

export class EarlyBytes {
  readonly #socket: Socket;
  readonly #chunks: Buffer[] = [];
  #length = 0;
  readonly #onBufferExceeded: () => void;

  /**
   * @param head the bytes that node:http has read already
   * @param onBufferExceeded called once, when more than 64 KiB have come
   */
  constructor(socket: Socket, head: Buffer, onBufferExceeded: () => void) {
    this.#socket = socket;
    this.#onBufferExceeded = onBufferExceeded;
    // A client that half-closes before the 101 has left: no protocol that allows it is in use yet.
    socket.once('end', this.#onEnd).on('data', this.#onData);
    if (head.length > 0) this.#onData(head);
  }

  /** Stops reading, and puts the kept bytes back in front of later ones. */
  unshift(): void {
    this.#socket.off('end', this.#onEnd).off('data', this.#onData).pause();
    if (this.#length > 0) this.#socket.unshift(Buffer.concat(this.#chunks.splice(0)));
  }

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
