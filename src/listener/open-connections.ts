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
/** A turn of the event loop with next to no work in it; one in which the machine stops the process is longer. */
const SHORT_TURN_MS = 0.1;
/** After which a port that never falls quiet is given up on, by a clock that stands still as well. */
const MOST_TURNS = 10_000;

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

  /**
   * Resolves when those that wait at the port are here: when a turn of the event loop brought no connection, and was so
   * short that hardly one can have come behind its look at the port. The longer it takes, the longer a turn may be.
   */
  async whenCaughtUp(longestMs: number): Promise<void> {
    const { clock } = this.#limit;
    // From one place in a turn to the same in the next: the port is looked at once in between.
    await nextTurn();
    const startedAt = clock.now();
    let [turnAt, isQuiet] = [startedAt, false];
    for (let turn = 0; !isQuiet && turn < MOST_TURNS && turnAt - startedAt < longestMs; turn++) {
      const before = this.#added;
      await nextTurn();
      const now = clock.now();
      isQuiet = this.#added === before && now - turnAt < SHORT_TURN_MS + (now - startedAt) / 50;
      turnAt = now;
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

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
