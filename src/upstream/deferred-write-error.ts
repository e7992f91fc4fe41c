/**
 * A write fault of a connection, kept back until the connection has been read to its end. An upstream that refuses an upload sends its
 * response and closes: the next write fails, and Node.js destroys a socket whose write has failed with all that is unread in it.
 */
import type { Socket } from 'node:net';
import type { Cancel, Clock } from '../platform/clock.ts';

/** A connection on which a write has failed has its end in its receive buffer: this long is for one that does not show it. */
const READ_AFTER_ERROR_MS = 1_000;

type WriteCallback = (error?: Error | null) => void;

interface DeferredWriteErrorOptions {
  readonly clock: Clock;
  /** Called at the end of what was received: a body that only that end completes may be a part of one. */
  readonly onEnd: (fault: Error) => void;
  /** Whether a response has begun, whose own time limits hold from then on. */
  readonly hasResponseHead: () => boolean;
}

export class DeferredWriteError {
  readonly #socket: Socket;
  readonly #options: DeferredWriteErrorOptions;
  #fault: Error | undefined;
  #cancel: Cancel | undefined;
  /** Of the write under way: a stream has one at a time. */
  #callback: WriteCallback = () => undefined;

  constructor(socket: Socket, options: DeferredWriteErrorOptions) {
    this.#socket = socket;
    this.#options = options;
    const write = socket._write.bind(socket);
    const writeMany = socket._writev?.bind(socket);
    const onWritten = (error?: Error | null): void => this.#onWritten(error);
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

  /** Lets the connection fail now, if a write has. Does nothing otherwise, and when called again. */
  release(): void {
    const fault = this.#fault;
    if (fault === undefined) return;
    this.#fault = undefined;
    this.#cancel?.();
    this.#callback(fault);
  }

  #onWritten(error?: Error | null): void {
    const socket = this.#socket;
    if (error === undefined || error === null || socket.destroyed || socket.readableEnded) {
      this.#callback(error);
      return;
    }
    this.#fault = error;
    socket.prependOnceListener('end', () => {
      this.#options.onEnd(error);
      process.nextTick(() => this.release());
    });
    socket.once('close', () => this.#cancel?.());
    this.#cancel = this.#options.clock.after(READ_AFTER_ERROR_MS, () => {
      if (!this.#options.hasResponseHead()) this.release();
    });
  }
}
