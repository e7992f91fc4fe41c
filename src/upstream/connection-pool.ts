/**
 * The connections to one upstream: undici clients that carry one request each, the one used last being used first, so that few are
 * kept warm and idle ones grow old. Undici's own Pool looks at each of its clients for every request, and at the time for each of
 * them; here a free one is taken from a stack. Which request goes out when is the throttle's.
 */
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { buildConnector, Dispatcher } from 'undici';
import type { Clock } from '../platform/clock.ts';
import { Client, errors } from '../platform/undici.ts';
import type { Attempt } from './attempt.ts';
import { DeferredWriteError } from './deferred-write-error.ts';

export interface ConnectionPoolOptions {
  readonly clock: Clock;
  readonly origin: URL;
  readonly connect: buildConnector.connector;
  /** Most at a time. */
  readonly maxConnections: number;
  /** An older one takes no further request; 0 = no limit. */
  readonly maxConnectionAgeMs: number;
}

/** The attempt keeps time itself. */
const CLIENT_OPTIONS = { pipelining: 1, headersTimeout: 0, bodyTimeout: 0, allowH2: false };

interface QueuedAttempt {
  readonly options: Dispatcher.DispatchOptions;
  readonly attempt: Attempt;
}

export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  /** The one that was used last comes last. */
  readonly #idle: Connection[] = [];
  readonly #open = new Set<Connection>();
  readonly #singleUse = new Set<Connection>();
  readonly #waiting: QueuedAttempt[] = [];
  #maxConnections: number;
  #isClosed = false;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    this.#maxConnections = options.maxConnections;
  }

  /** Sends an attempt on a free connection, on a new one, or when one is free again. */
  dispatch(options: Dispatcher.DispatchOptions, attempt: Attempt): void {
    const connection = this.#isClosed ? undefined : this.#acquire();
    if (connection !== undefined) connection.send(options, attempt);
    else if (this.#isClosed) attempt.onResponseError(null, new errors.ClientDestroyedError());
    else this.#enqueue({ options, attempt });
  }

  /** Sends an attempt on a connection of its own, which is closed behind it. */
  dispatchOnNew(options: Dispatcher.DispatchOptions, attempt: Attempt): void {
    if (this.#isClosed) {
      attempt.onResponseError(null, new errors.ClientDestroyedError());
      return;
    }
    const connection = new Connection(this.#options, {});
    this.#singleUse.add(connection);
    void attempt.ended.then(() => {
      this.#singleUse.delete(connection);
      return connection.destroy();
    });
    connection.send({ ...options, reset: true }, attempt);
  }

  /** Another bound. What is under way goes on; idle connections beyond it are given up. */
  resize(connections: number): void {
    this.#maxConnections = connections;
    while (this.#open.size > this.#maxConnections) {
      const [oldest] = this.#idle;
      if (oldest === undefined) break;
      this.#discard(oldest);
    }
    this.#dispatchWaiting();
  }

  /** Closes every connection, whatever is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { attempt } of this.#waiting.splice(0)) attempt.onResponseError(null, new errors.ClientDestroyedError());
    await Promise.all([...this.#open, ...this.#singleUse].map((connection) => connection.destroy()));
  }

  /** Who gives up leaves at once: sent all the same, it would be broken off, and a good connection with it. */
  #enqueue(waiting: QueuedAttempt): void {
    this.#waiting.push(waiting);
    void waiting.attempt.ended.then(() => {
      const at = this.#waiting.indexOf(waiting);
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      const { body } = waiting.options;
      if (body instanceof Readable) body.destroy();
    });
  }

  #acquire(): Connection | undefined {
    for (let free = this.#idle.pop(); free !== undefined; free = this.#idle.pop()) {
      if (!this.#isTooOld(free)) return free;
      this.#discard(free);
    }
    return this.#open.size < this.#maxConnections ? this.#openConnection() : undefined;
  }

  #openConnection(): Connection {
    const connection: Connection = new Connection(this.#options, {
      onFree: () => this.#returnToIdle(connection),
      onClosed: () => {
        if (this.#idle.includes(connection)) this.#discard(connection);
      },
    });
    this.#open.add(connection);
    return connection;
  }

  #returnToIdle(connection: Connection): void {
    if (this.#isClosed) return;
    if (this.#open.size > this.#maxConnections) this.#discard(connection);
    else this.#idle.push(connection);
    this.#dispatchWaiting();
  }

  #dispatchWaiting(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      // One that has just ended takes no connection; it leaves by itself.
      const free = next.attempt.hasEnded ? undefined : this.#acquire();
      if (free === undefined && !next.attempt.hasEnded) return;
      this.#waiting.shift();
      free?.send(next.options, next.attempt);
    }
  }

  #isTooOld({ openedAt }: Connection): boolean {
    const { maxConnectionAgeMs, clock } = this.#options;
    return maxConnectionAgeMs > 0 && clock.now() - openedAt > maxConnectionAgeMs;
  }

  #discard(connection: Connection): void {
    this.#open.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    void connection.destroy();
  }
}

interface ConnectionEvents {
  /** It can carry another. */
  readonly onFree?: () => void;
  /** Its socket is gone; with the next request it would open another. */
  readonly onClosed?: () => void;
}

/**
 * A client that tells an attempt of its connection's fault. Undici takes a reset for the proper end of an answer that only the end of
 * its connection completes; and it says "busy" of a client that refused a request outright, although it never was.
 */
class Connection extends Client {
  /** Monotonic; Infinity before it is open. */
  openedAt = Infinity;
  readonly #onFree: () => void;
  #attempt: Attempt | undefined;
  #writeError: DeferredWriteError | undefined;
  #isBusy = false;

  constructor({ origin, connect, clock }: ConnectionPoolOptions, { onFree, onClosed }: ConnectionEvents) {
    super(origin, {
      ...CLIENT_OPTIONS,
      connect: (terms, callback) => {
        connect(terms, (...outcome) => {
          this.openedAt = clock.now();
          // Added before undici's own listeners, so that the fault is known before the answer is taken for whole.
          const [, socket] = outcome;
          socket?.on('error', (error: Error) => this.#attempt?.onConnectionError(error));
          // On a fault some connectors give no second argument at all.
          this.#writeError = socket ? this.#deferWriteErrors(socket, clock) : undefined;
          callback(...outcome);
        });
      },
    });
    this.#onFree = onFree ?? (() => undefined);
    this.on('drain', () => this.#release());
    if (onClosed !== undefined) this.on('disconnect', onClosed);
  }

  /** Never throws: what cannot be sent is told to the attempt. */
  send(options: Dispatcher.DispatchOptions, attempt: Attempt): void {
    this.#attempt = attempt;
    this.#isBusy = true;
    const hasRoom = this.dispatch(options, attempt);
    if (hasRoom || attempt.isRefused) this.#release();
  }

  #deferWriteErrors(socket: Socket, clock: Clock): DeferredWriteError {
    return new DeferredWriteError(socket, {
      clock,
      onEnd: (fault) => this.#attempt?.onConnectionError(fault),
      hasResponseHead: () => this.#attempt?.hasHead === true,
    });
  }

  #release(): void {
    if (!this.#isBusy) return;
    this.#isBusy = false;
    // Nothing more can be sent on a connection on which a write has failed.
    this.#writeError?.release();
    // It holds its request and answer, and an idle connection may be kept for long.
    this.#attempt = undefined;
    this.#onFree();
  }
}
