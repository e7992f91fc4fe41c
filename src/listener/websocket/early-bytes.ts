/**
 * The client's connection until its upgrade is decided: read all the time, so that its end is noticed at once, with what comes kept for
 * the upstream. RFC 6455 §4.1 forbids a client to send before the 101; some do.
 */
import type { Socket } from 'node:net';

/** What is kept of one client. */
const MOST_BYTES = 64 * 1024;

export class EarlyBytes {
  readonly #socket: Socket;
  readonly #chunks: Buffer[] = [];
  #length = 0;
  readonly #onOverflow: () => void;

  /**
   * @param head what node:http has read already
   * @param onOverflow called when more has come than is kept
   */
  constructor(socket: Socket, head: Buffer, onOverflow: () => void) {
    this.#socket = socket;
    this.#onOverflow = onOverflow;
    // A client that half-closes before the 101 has left: no protocol is in use on the connection yet.
    socket.once('end', this.#leave).on('data', this.#keep);
    if (head.length > 0) this.#keep(head);
  }

  /** Ends the reading, and puts what has come back in front of what will come. */
  putBack(): void {
    this.#socket.off('end', this.#leave).off('data', this.#keep).pause();
    if (this.#length > 0) this.#socket.unshift(Buffer.concat(this.#chunks.splice(0)));
  }

  /** From now on what comes is not kept; the connection is read on. */
  drop(): void {
    this.#socket.off('data', this.#keep);
    this.#chunks.length = 0;
  }

  readonly #leave = (): void => void this.#socket.destroy();

  readonly #keep = (chunk: Buffer): void => {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length <= MOST_BYTES) return;
    this.drop();
    this.#onOverflow();
  };
}
