/** A client's body as a separate stream: destroying it does not close the client's connection. */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { getReadLimiter, type ReadLimiter } from './read-limiter.ts';

interface UploadHooks {
  readonly onChunk: (chunk: Buffer) => void;
  /** @returns stops the timer */
  readonly startIdleTimer: () => () => void;
}

export class Upload extends Readable {
  readonly #request: IncomingMessage;
  /** Received before; goes first. */
  #prefix: Buffer;
  readonly #hooks: UploadHooks;
  #stopIdleTimer: (() => void) | undefined;
  readonly #readLimiter: ReadLimiter;
  readonly #forward = (chunk: Buffer): void => {
    this.#readLimiter.countChunk();
    this.#hooks.onChunk(chunk);
    if (!this.push(chunk)) this.#pause();
  };
  readonly #finish = (): void => {
    this.#pause();
    this.push(null);
  };

  constructor(request: IncomingMessage, prefix: Buffer, hooks: UploadHooks) {
    super({ highWaterMark: 64 * 1024 });
    this.#request = request;
    this.#prefix = prefix;
    this.#hooks = hooks;
    this.#readLimiter = getReadLimiter(request.socket);
    request.on('data', this.#forward).on('end', this.#finish).pause();
  }

  override _read(): void {
    const prefix = this.#prefix;
    this.#prefix = Buffer.alloc(0);
    if (prefix.length > 0 && !this.push(prefix)) return;
    // 'end' may have been emitted before: it comes in the same turn as the last bytes.
    if (this.#request.readableEnded) {
      this.push(null);
      return;
    }
    // The idle time-out runs only while the upstream reads: a slow upstream is not the client's fault.
    this.#stopIdleTimer ??= this.#hooks.startIdleTimer();
    this.#request.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#stopIdleTimer?.();
    this.#request.off('data', this.#forward).off('end', this.#finish);
    // After an early response, the rest of the body is being discarded.
    if (this.#request.listenerCount('data') > 0) this.#request.resume();
    else this.#request.pause();
    done(error);
  }

  #pause(): void {
    this.#stopIdleTimer?.();
    this.#stopIdleTimer = undefined;
    this.#request.pause();
  }
}
