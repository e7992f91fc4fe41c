/**
 * Defers the write error of a connection until the connection has been read to its end. An upstream that refuses an upload sends its
 * response and closes: the next write fails, and Node.js destroys a socket whose write has failed, with the unread response in it.
 */
import type { Socket } from 'node:net';
import type { Cancel, Clock } from '../platform/clock.ts';
import type { ResponseReceiver } from './response-receiver.ts';

/** After a failed write the end of the connection is in its receive buffer; this long is waited for it otherwise. */
const READ_AFTER_ERROR_MS = 1_000;

type WriteCallback = (error?: Error | null) => void;

export class DeferredWriteError {
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #findReceiver: () => ResponseReceiver | undefined;
  #fault: Error | undefined;
  #cancel: Cancel | undefined;
  /** Ends the write in progress: a stream has one at a time. */
  #callback: WriteCallback = () => undefined;

  /** @param findReceiver the attempt that uses the connection now, if one does */
  constructor(socket: Socket, clock: Clock, findReceiver: () => ResponseReceiver | undefined) {
    this.#socket = socket;
    this.#clock = clock;
    this.#findReceiver = findReceiver;
    const write = socket._write.bind(socket);
    const writeMany = socket._writev?.bind(socket);
    const onWritten = (error?: Error | null): void => {
      if (error === undefined || error === null || socket.destroyed || socket.readableEnded) this.#callback(error);
      else this.#defer(error);
    };
    socket._write = (chunk, encoding, written) => {
      this.#callback = written;
      write(chunk, encoding, onWritten);
    };
    if (writeMany === undefined) return;
    socket._writev = (chunks, written) => {
      this.#callback = written;
      writeMany(chunks, onWritten);
    };
  }

  /** Lets the connection fail now, if a write has failed. */
  release(): void {
    const fault = this.#fault;
    if (fault === undefined) return;
    this.#fault = undefined;
    this.#cancel?.();
    this.#callback(fault);
  }

  #defer(error: Error): void {
    const socket = this.#socket;
    this.#fault = error;
    socket.prependOnceListener('end', () => {
      // A response body that ends with the connection may be incomplete.
      this.#findReceiver()?.onConnectionError(error);
      process.nextTick(() => this.release());
    });
    socket.once('close', () => this.#cancel?.());
    this.#cancel = this.#clock.after(READ_AFTER_ERROR_MS, () => {
      // Where a response has begun, its own time limits hold.
      if (this.#findReceiver()?.hasHead !== true) this.release();
    });
  }
}
