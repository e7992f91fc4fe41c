/**
 * The client of one upstream: HTTP/1.1 with keep-alive, to a fixed origin. Each connection is an undici client that carries one request. The
 * one used last is used first, so that few stay in use and idle ones time out. Undici's own Pool looks at all its clients for every request;
 * here a free one is taken from a stack.
 */
import { Readable } from 'node:stream';
import type { buildConnector, Dispatcher } from 'undici';
import type { Clock } from '../platform/clock.ts';
import { Client, errors } from '../platform/undici.ts';
import { createConnector, type ConnectorOptions } from './connector.ts';
import { DeferredWriteError } from './deferred-write-error.ts';
import { ResponseReceiver, type AttemptHandler } from './response-receiver.ts';

export interface UpstreamOptions extends ConnectorOptions {
  /** An older connection takes no further request, so that changes of DNS are followed; 0 = no limit. */
  readonly maxConnectionAgeMs: number;
  /** At a time; one carries one request. */
  readonly maxConnections: number;
  /** Most bytes of names and values in the header section of a response, and in its trailer section. */
  readonly maxHeaderBytes: number;
}

export interface UpstreamRequest {
  readonly method: string;
  readonly path: string;
  /** Flat list [name, value, …], the token included, without Host and framing. `send` may add to it. */
  readonly headers: string[];
  /** A buffer is sent with its length; a stream with `contentLength`, or chunked when that is undefined. */
  readonly body: Buffer | Readable | undefined;
  readonly contentLength: number | undefined;
  /** Not on a kept connection: where one has just broken, the others may break as well. */
  readonly needsNewConnection: boolean;
}

/** Time-outs are the attempt's. */
const CLIENT_OPTIONS = { pipelining: 1, headersTimeout: 0, bodyTimeout: 0, allowH2: false };

type QueuedAttempt = Parameters<Connection['send']>;

export class Upstream {
  readonly #options: UpstreamOptions;
  readonly #clock: Clock;
  readonly #connect: buildConnector.connector;
  /** The one used last comes last. */
  readonly #idle: Connection[] = [];
  readonly #open = new Set<Connection>();
  readonly #singleUse = new Set<Connection>();
  readonly #waiting: QueuedAttempt[] = [];
  readonly #events: ConnectionEvents = {
    onFree: (connection) => {
      if (this.#isClosed) return;
      if (this.#open.size > this.#maxConnections) this.#discard(connection);
      else this.#idle.push(connection);
      if (this.#waiting.length > 0) this.#dispatchWaiting();
    },
    onClosed: (connection) => {
      if (this.#idle.includes(connection)) this.#discard(connection);
    },
  };
  #maxConnections: number;
  #isClosed = false;

  constructor(options: UpstreamOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#maxConnections = options.maxConnections;
    this.#connect = createConnector(options);
  }

  /**
   * Starts one attempt, on a free connection, on a new one, or when one is free again. Its outcome is a value, never an exception.
   * @param now what the clock has just given. Default: it is read
   */
  send(request: UpstreamRequest, handler: AttemptHandler, now = this.#clock.now()): ResponseReceiver {
    const { path, method, headers, body = null, contentLength, needsNewConnection } = request;
    const receiver = new ResponseReceiver(this.#clock, handler, method);
    if (contentLength !== undefined) headers.push('content-length', String(contentLength));
    const options = { path, method, headers, body };
    if (this.#isClosed) {
      receiver.onResponseError(null, new errors.ClientDestroyedError());
    } else if (needsNewConnection) {
      this.#sendOnOwnConnection({ ...options, reset: true }, receiver);
    } else {
      const connection = this.#acquire(now);
      if (connection === undefined) this.#enqueue(options, receiver);
      else connection.send(options, receiver);
    }
    return receiver;
  }

  #sendOnOwnConnection(options: Dispatcher.DispatchOptions, receiver: ResponseReceiver): void {
    const ignored: ConnectionEvents = { onFree: () => undefined, onClosed: () => undefined };
    const connection = new Connection(this.#options, this.#connect, ignored);
    this.#singleUse.add(connection);
    void receiver.ended.then(() => {
      this.#singleUse.delete(connection);
      return connection.destroy();
    });
    connection.send(options, receiver);
  }

  /** Changes `maxConnections`. Requests in flight go on; idle connections beyond the bound are closed. */
  resize(maxConnections: number): void {
    this.#maxConnections = maxConnections;
    while (this.#open.size > this.#maxConnections) {
      const [oldest] = this.#idle;
      if (oldest === undefined) break;
      this.#discard(oldest);
    }
    this.#dispatchWaiting();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const [, receiver] of this.#waiting.splice(0))
      receiver.onResponseError(null, new errors.ClientDestroyedError());
    await Promise.all([...this.#open, ...this.#singleUse].map((connection) => connection.destroy()));
  }

  /** An attempt that ends while it waits leaves at once: it would be sent and aborted, and a good connection lost with it. */
  #enqueue(...waiting: QueuedAttempt): void {
    const [{ body }, receiver] = waiting;
    this.#waiting.push(waiting);
    void receiver.ended.then(() => {
      const at = this.#waiting.indexOf(waiting);
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      if (body instanceof Readable) body.destroy();
    });
  }

  #acquire(now: number): Connection | undefined {
    const { maxConnectionAgeMs } = this.#options;
    const openedFrom = maxConnectionAgeMs > 0 ? now - maxConnectionAgeMs : -Infinity;
    for (let free = this.#idle.pop(); free !== undefined; free = this.#idle.pop()) {
      if (free.openedAt >= openedFrom) return free;
      this.#discard(free);
    }
    return this.#open.size < this.#maxConnections ? this.#openConnection() : undefined;
  }

  #openConnection(): Connection {
    const connection = new Connection(this.#options, this.#connect, this.#events);
    this.#open.add(connection);
    return connection;
  }

  #dispatchWaiting(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const [, { hasEnded }] = next;
      // An attempt that has just ended takes no connection.
      const free = hasEnded ? undefined : this.#acquire(this.#clock.now());
      if (free === undefined && !hasEnded) return;
      this.#waiting.shift();
      free?.send(...next);
    }
  }

  #discard(connection: Connection): void {
    this.#open.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    void connection.destroy();
  }
}

interface ConnectionEvents {
  readonly onFree: (connection: Connection) => void;
  /** The socket has closed; with the next request the connection would open another. */
  readonly onClosed: (connection: Connection) => void;
}

/**
 * A client that reports the fault of its connection to the attempt. Undici takes a reset for the end of a response that ends with its
 * connection, and reports a client that rejected a request outright as busy.
 */
class Connection extends Client {
  /** Monotonic; Infinity before it is open. */
  openedAt = Infinity;
  readonly #events: ConnectionEvents;
  #receiver: ResponseReceiver | undefined;
  #writeError: DeferredWriteError | undefined;
  #isBusy = false;

  constructor(
    { baseUrl, clock, maxHeaderBytes }: UpstreamOptions,
    connect: buildConnector.connector,
    events: ConnectionEvents,
  ) {
    super(baseUrl.origin, maxHeaderBytes, {
      ...CLIENT_OPTIONS,
      connect: (options, callback) => {
        connect(options, (...outcome) => {
          this.openedAt = clock.now();
          // Added before undici's own listeners, so that the fault is known before the response is taken for whole.
          const [, socket] = outcome;
          socket?.on('error', (error: Error) => this.#receiver?.onConnectionError(this.describeOverflow(error)));
          // On a fault some connectors pass no second argument.
          this.#writeError = socket ? new DeferredWriteError(socket, clock, () => this.#receiver) : undefined;
          callback(...outcome);
        });
      },
    });
    this.#events = events;
    this.on('drain', () => this.#release());
    this.on('disconnect', () => events.onClosed(this));
  }

  /** Never throws: the attempt gets the error of a request that cannot be sent. */
  send(options: Dispatcher.DispatchOptions, receiver: ResponseReceiver): void {
    this.#receiver = receiver;
    this.#isBusy = true;
    const hasRoom = this.dispatch(options, receiver);
    if (hasRoom || receiver.isUnsendable) this.#release();
  }

  #release(): void {
    if (!this.#isBusy) return;
    this.#isBusy = false;
    // Nothing more can be sent on a connection on which a write has failed.
    this.#writeError?.release();
    // An idle connection may be kept for long, and would keep the request and the response with it.
    this.#receiver = undefined;
    this.#events.onFree(this);
  }
}
