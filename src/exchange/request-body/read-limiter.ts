/**
 * Keeps clients that send their bodies in very small chunks from blocking the event loop. In one turn node:http reads up to 32 buffers from
 * a connection, and a buffer of 64 KiB may hold 10 000 chunks. Such connections are read one after another, one buffer per turn.
 */
import type { Socket } from 'node:net';

/** After this many chunks a connection is paused until the connections paused before it have been read. */
const CHUNKS_PER_ROUND = 256;

/** In the order in which they are resumed. */
const pausedLimiters: ReadLimiter[] = [];

const limiters = new WeakMap<Socket, ReadLimiter>();

/** The limiter of a connection; pipelined requests share it. */
export function getReadLimiter(socket: Socket): ReadLimiter {
  let limiter = limiters.get(socket);
  if (limiter === undefined) limiters.set(socket, (limiter = new ReadLimiter(socket)));
  return limiter;
}

function resumeNext(): void {
  pausedLimiters.shift()?.resume();
  if (pausedLimiters.length > 0) setImmediate(resumeNext);
}

export class ReadLimiter {
  readonly #socket: Socket;
  readonly #keepPaused = (): void => void this.#socket.pause();
  #chunksLeft = CHUNKS_PER_ROUND;

  /** @param socket the connection that the body comes from */
  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** To be called for each chunk. */
  countChunk(): void {
    // The rest of the current socket buffer comes in any case.
    if (--this.#chunksLeft !== 0) return;
    // The request's stream resumes the connection when it wants more.
    this.#socket.on('resume', this.#keepPaused).pause();
    if (pausedLimiters.push(this) === 1) setImmediate(resumeNext);
  }

  /** Reads from the connection again. */
  resume(): void {
    this.#chunksLeft = CHUNKS_PER_ROUND;
    this.#socket.off('resume', this.#keepPaused).resume();
  }
}
