/**
 * The open connections of the proxy port, those of all its address families together: how many there may be, and their
 * end. What is said on them is proxy-server's.
 */
import type { Socket } from 'node:net';
import type { Clock } from '../clock.ts';
import type { Observe } from '../telemetry/events.ts';

export interface ConnectionLimit {
  /** `listen.maxConnections`. */
  readonly max: number;
  readonly clock: Clock;
  readonly observe: Observe;
}

/** A full port is told of at most this often. */
const WARN_EVERY_MS = 60_000;
/** Turns of the event loop after which a port that never falls quiet is given up on. */
const MOST_TURNS = 1000;

export class OpenConnections {
  readonly #limit: ConnectionLimit;
  readonly #sockets = new Set<Socket>();
  #added = 0;
  #noneWaiters: (() => void)[] = [];
  #warnAgainAt = -Infinity;
  #refused = 0;

  constructor(limit: ConnectionLimit) {
    this.#limit = limit;
  }

  /** Keeps a connection in mind until it ends; one too many is closed before anything is read from it. */
  add(socket: Socket): void {
    if (this.#sockets.size >= this.#limit.max) {
      socket.destroy();
      this.#warn();
      return;
    }
    this.#sockets.add(socket);
    this.#added++;
    socket.once('close', () => {
      this.#sockets.delete(socket);
      if (this.#sockets.size > 0) return;
      for (const wake of this.#noneWaiters.splice(0)) wake();
    });
  }

  /** Resolves when turns of the event loop bring no further connection: those that wait at the port are here. */
  async whenCaughtUp(): Promise<void> {
    let quietTurns = 0;
    for (let turn = 0; turn < MOST_TURNS && quietTurns < 2; turn++) {
      const before = this.#added;
      await new Promise((resolve) => setImmediate(resolve));
      quietTurns = this.#added === before ? quietTurns + 1 : 0;
    }
  }

  /** Resolves when none is open. */
  whenNone(): Promise<void> {
    if (this.#sockets.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#noneWaiters.push(resolve));
  }

  closeAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #warn(): void {
    const { max, clock, observe } = this.#limit;
    this.#refused++;
    if (clock.now() < this.#warnAgainAt) return;
    this.#warnAgainAt = clock.now() + WARN_EVERY_MS;
    const message = `as many connections are open as listen.maxConnections allows (${String(max)}); refused so far: ${String(this.#refused)}`;
    observe({ kind: 'warning', message });
  }
}
