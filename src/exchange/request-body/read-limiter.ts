/**
 * Keeps clients that send their bodies in very many small chunks from holding up the event loop. In one turn of it node:http reads up to 32
 * buffers from a connection, and a buffer of 64 KiB may hold 10 000 chunks. Connections with such buffers are read from one after another,
 * a buffer in a turn.
 */
import type { Socket } from 'node:net';

/** After so many chunks a connection is not read from until those that are held already have been. */
const CHUNKS_PER_ROUND = 256;

/** Those that are not read from now; the first is the next one. */
const pausedLimiters: ReadLimiter[] = [];

const limiters = new WeakMap<Socket, ReadLimiter>();

/** The pace of a connection; pipelined requests share it. */
export function getReadLimiter(socket: Socket): ReadLimiter {
  let pace = limiters.get(socket);
  if (pace === undefined) limiters.set(socket, (pace = new ReadLimiter(socket)));
  return pace;
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
    // What the buffer at hand still holds comes in any case.
    if (--this.#chunksLeft !== 0) return;
    // The request's own stream resumes the connection whenever it wants more.
    this.#socket.on('resume', this.#keepPaused).pause();
    if (pausedLimiters.push(this) === 1) setImmediate(resumeNext);
  }

  /** The connection is read from again. */
  resume(): void {
    this.#chunksLeft = CHUNKS_PER_ROUND;
    this.#socket.off('resume', this.#keepPaused).resume();
  }
}
