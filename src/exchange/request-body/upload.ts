/** A client's body as a stream of its own: destroying it leaves the client's connection alone. */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { getReadLimiter, type ReadLimiter } from './read-limiter.ts';

interface UploadHooks {
  readonly onChunk: (chunk: Buffer) => void;
  /** Starts to watch for silence; gives the way to stop it. */
  readonly startIdleTimer: () => () => void;
}

export class Upload extends Readable {
  readonly #request: IncomingMessage;
  /** What was read already; goes first. */
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

  constructor(request: IncomingMessage, begun: Buffer, hooks: UploadHooks) {
    super({ highWaterMark: 64 * 1024 });
    this.#request = request;
    this.#prefix = begun;
    this.#hooks = hooks;
    this.#readLimiter = getReadLimiter(request.socket);
    request.on('data', this.#forward).on('end', this.#finish).pause();
  }

  override _read(): void {
    const begun = this.#prefix;
    this.#prefix = Buffer.alloc(0);
    if (begun.length > 0 && !this.push(begun)) return;
    // Its end may have been told before anybody streamed: it comes in the same turn as the last bytes.
    if (this.#request.readableEnded) {
      this.push(null);
      return;
    }
    // Silence counts only while somebody listens: a slow upstream is not the client's fault.
    this.#stopIdleTimer ??= this.#hooks.startIdleTimer();
    this.#request.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#stopIdleTimer?.();
    this.#request.off('data', this.#forward).off('end', this.#finish);
    // Who has been answered meanwhile may be read to the end of what it sends.
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
