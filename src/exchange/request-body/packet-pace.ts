/**
 * Keeps clients that send their bodies in very many small chunks from holding up the event loop. In one turn of it node:http reads up to 32
 * buffers from a connection, and a buffer of 64 KiB may hold 10 000 chunks. Connections with such buffers are read from one after another,
 * a buffer in a turn.
 */
import type { Socket } from 'node:net';

/** After so many chunks a connection is not read from until those that are held already have been. */
const CHUNKS_PER_ROUND = 256;

/** Those that are not read from now; the first is the next one. */
const held: PacketPace[] = [];

const paces = new WeakMap<Socket, PacketPace>();

/** The pace of a connection; pipelined requests share it. */
export function paceOf(socket: Socket): PacketPace {
  let pace = paces.get(socket);
  if (pace === undefined) paces.set(socket, (pace = new PacketPace(socket)));
  return pace;
}

function resumeNext(): void {
  held.shift()?.resume();
  if (held.length > 0) setImmediate(resumeNext);
}

export class PacketPace {
  readonly #socket: Socket;
  readonly #hold = (): void => void this.#socket.pause();
  #chunksLeft = CHUNKS_PER_ROUND;

  /** @param socket the connection that the body comes from */
  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** To be called for each chunk. */
  count(): void {
    // What the buffer at hand still holds comes in any case.
    if (--this.#chunksLeft !== 0) return;
    // The request's own stream resumes the connection whenever it wants more.
    this.#socket.on('resume', this.#hold).pause();
    if (held.push(this) === 1) setImmediate(resumeNext);
  }

  /** The connection is read from again. */
  resume(): void {
    this.#chunksLeft = CHUNKS_PER_ROUND;
    this.#socket.off('resume', this.#hold).resume();
  }
}
