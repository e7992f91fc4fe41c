/**
 * The way to the one upstream: an undici pool with HTTP/1.1, keep-alive and no retries, redirects or decompression of
 * its own. The origin is fixed when the client is built; nothing of a request can change it.
 */
import { Client, Pool, type buildConnector, type Dispatcher } from 'undici';
import type { Readable } from 'node:stream';
import { Attempt, type AttemptTerms } from './attempt.ts';
import { createConnector, type ConnectorOptions } from './connector.ts';

export interface UpstreamOptions extends ConnectorOptions {
  /** A connection older than this takes no further request, so that changes of DNS are followed; 0 = no limit. */
  readonly maxConnectionAgeMs: number;
  /** Most connections at a time; one carries one request. */
  readonly connections: number;
}

export interface UpstreamRequest {
  readonly method: string;
  /** Path and query on the upstream, base path included. */
  readonly path: string;
  /** Flat list [name, value, …], the bearer included, without Host and framing. */
  readonly fields: readonly string[];
  /** A buffer is sent with its length; a stream with `contentLength`, or chunked when that is undefined. */
  readonly body: Buffer | Readable | undefined;
  readonly contentLength: number | undefined;
  /**
   * Not on a kept connection: where one has just broken the others may be about to, and a retry is not for meeting the same
   * fate again.
   */
  readonly needsNewConnection: boolean;
}

export interface Upstream {
  readonly baseUrl: URL;
  /** Starts one attempt; its outcome is a value, never an exception. */
  send(request: UpstreamRequest, terms: AttemptTerms): Attempt;
  /** Another bound for the connections at a time. What is under way goes on where it is, beside it; idle connections are given up. */
  resize(connections: number): void;
  /** Closes every connection, whatever is under way. */
  close(): Promise<void>;
}

/** The attempt keeps time itself. */
const CLIENT_OPTIONS = { pipelining: 1, headersTimeout: 0, bodyTimeout: 0 };

export function createUpstream(options: UpstreamOptions): Upstream {
  const { clock, baseUrl, maxConnectionAgeMs } = options;
  const connect = createConnector(options);
  const openPool = (connections: number): Pool =>
    new Pool(baseUrl.origin, {
      ...CLIENT_OPTIONS,
      connections,
      allowH2: false,
      clientTtl: maxConnectionAgeMs,
      factory: (origin, poolOptions) => new SturdyClient(origin, poolOptions, connect),
    });
  const pools = new Pools(openPool, options.connections);
  const onceOnly = new Set<Client>();
  const newConnectionFor = (attempt: Attempt): Client => {
    const client = new SturdyClient(baseUrl, CLIENT_OPTIONS, connect);
    onceOnly.add(client);
    void attempt.ended.then(() => {
      onceOnly.delete(client);
      return client.destroy();
    });
    return client;
  };
  return {
    baseUrl,
    send(request, terms) {
      const attempt = new Attempt(clock, terms);
      const { path, method, needsNewConnection } = request;
      const options = { path, method, headers: withFraming(request), body: request.body ?? null };
      if (needsNewConnection) newConnectionFor(attempt).dispatch({ ...options, reset: true }, attempt);
      else pools.current.dispatch(options, attempt);
      return attempt;
    },
    resize: (connections) => pools.replace(connections),
    async close() {
      await Promise.all([...pools.open, ...onceOnly].map((dispatcher) => dispatcher.destroy()));
    },
  };
}

/** The pool in use, and those that it has replaced while something is under way on them. */
class Pools {
  readonly #create: (connections: number) => Pool;
  readonly #former = new Set<Pool>();
  #connections: number;
  #current: Pool;

  constructor(create: (connections: number) => Pool, connections: number) {
    this.#create = create;
    this.#connections = connections;
    this.#current = create(connections);
  }

  get current(): Pool {
    return this.#current;
  }

  get open(): readonly Pool[] {
    return [this.#current, ...this.#former];
  }

  replace(connections: number): void {
    if (connections === this.#connections) return;
    this.#connections = connections;
    const former = this.#current;
    this.#current = this.#create(connections);
    this.#former.add(former);
    // Resolves when all that is under way has ended, and has nothing to reject with.
    void former.close().then(() => this.#former.delete(former));
  }
}

function withFraming(request: UpstreamRequest): string[] {
  const fields = [...request.fields];
  if (request.contentLength !== undefined && !Buffer.isBuffer(request.body)) {
    fields.push('content-length', String(request.contentLength));
  }
  return fields;
}

/**
 * Sets right two habits of undici's. Its pool takes `false` from a client's dispatch for "busy" and waits for its drain
 * event, which a client that refused the request outright never sends: each refusal would cost the pool one client for
 * good. And it takes a reset for the proper end of an answer that only the end of its connection completes.
 */
class SturdyClient extends Client {
  #attempt: Attempt | undefined;

  constructor(origin: URL, options: Client.Options, connect: buildConnector.connector) {
    super(origin, {
      ...options,
      connect: (terms, callback) => {
        connect(terms, (...outcome) => {
          // Added before undici's own listeners, so that the fault is known before the answer is taken for whole.
          outcome[1]?.on('error', (error: Error) => this.#attempt?.breakOff(error));
          callback(...outcome);
        });
      },
    });
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (handler instanceof Attempt) this.#attempt = handler;
    const hasRoom = super.dispatch(options, handler);
    return hasRoom || (handler instanceof Attempt && handler.refused);
  }
}
