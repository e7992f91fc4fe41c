/**
 * Keeps clients that send their bodies in very small chunks from blocking the event loop: in one turn node:http reads up to 32 buffers from
 * a connection. The order in which connections are read is reading-rounds.ts's.
 */
import type { Socket } from 'node:net';
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
    resumeInTurn(() => this.resume());
  }

  /** Reads from the connection again. */
  resume(): void {
    this.#chunksLeft = CHUNKS_PER_ROUND;
    this.#socket.off('resume', this.#keepPaused).resume();
  }
}
