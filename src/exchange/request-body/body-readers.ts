/**
 * Two readers of a request body: before it may be read, and as a stream for the upstream. Each counts the chunks of its connection, so that
 * very small ones do not block the event loop: in one turn node:http reads up to 32 buffers from a connection.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { resumeInTurn } from '../../platform/reading-rounds.ts';

/** After this many chunks a connection is paused until the connections paused before it have been read. */
const CHUNKS_PER_ROUND = 256;

const limiters = new WeakMap<Socket, ReadLimiter>();

/** The limiter of a connection; pipelined requests share it. */
export function getReadLimiter(socket: Socket): ReadLimiter {
  let limiter = limiters.get(socket);
  if (limiter === undefined) limiters.set(socket, (limiter = new ReadLimiter(socket)));
  return limiter;
}

export class ReadLimiter {
  readonly #socket: Socket;
  readonly #keepPaused = (): void => void this.#socket.pause();
  #chunksLeft = CHUNKS_PER_ROUND;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  countChunk(): void {
    // The rest of the current socket buffer comes in any case.
    if (--this.#chunksLeft !== 0) return;
    // The request's stream resumes the connection when it wants more.
    this.#socket.on('resume', this.#keepPaused).pause();
    resumeInTurn(() => this.resume());
  }

  resume(): void {
    this.#chunksLeft = CHUNKS_PER_ROUND;
    this.#socket.off('resume', this.#keepPaused).resume();
  }
}

/**
 * Receives the first chunks of a chunked body before the body may be read, and joins them: node:http keeps each as a buffer of its own, so
 * that chunks of one byte cost about a hundred times their size. When enough have come, the connection is paused.
 */
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

interface UploadHooks {
  readonly onChunk: (chunk: Buffer) => void;
  readonly startIdleTimer: () => () => void;
}

/** The body as a separate stream: destroying it does not close the client's connection. */
export class Upload extends Readable {
  readonly #request: IncomingMessage;
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
    // The end of a chunked body may come long after its last byte.
    this.#hooks.onChunk(Buffer.alloc(0));
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
