/**
 * The way to the one upstream: an undici pool with HTTP/1.1, keep-alive and no retries, redirects or decompression of
 * its own. The origin is fixed when the client is built; nothing of a request can change it.
 */
import { buildConnector, Client, Pool, type Dispatcher } from 'undici';
import type { Readable } from 'node:stream';
import type { SecureContext } from 'node:tls';
import type { Clock } from '../clock.ts';
import { Attempt, type AttemptTerms } from './attempt.ts';

export interface UpstreamOptions {
  readonly clock: Clock;
  readonly baseUrl: URL;
  /** Trust for `https:`; undefined for `http:`. */
  readonly secureContext: SecureContext | undefined;
  readonly connectTimeoutMs: number;
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
}

export interface Upstream {
  readonly baseUrl: URL;
  /** Starts one attempt; its outcome is a value, never an exception. */
  send(request: UpstreamRequest, terms: AttemptTerms): Attempt;
  /** Closes every connection, whatever is under way. */
  close(): Promise<void>;
}

export function createUpstream(options: UpstreamOptions): Upstream {
  const { clock, baseUrl, secureContext, connectTimeoutMs, connections } = options;
  const connect = buildConnector({
    timeout: connectTimeoutMs,
    allowH2: false,
    ...(secureContext === undefined ? {} : { secureContext }),
  });
  const pool = new Pool(baseUrl.origin, {
    connections,
    pipelining: 1,
    allowH2: false,
    // The attempt keeps time itself.
    headersTimeout: 0,
    bodyTimeout: 0,
    factory: (origin, clientOptions) => new SturdyClient(origin, clientOptions, connect),
  });
  return {
    baseUrl,
    send(request, terms) {
      const attempt = new Attempt(clock, terms);
      pool.dispatch(
        {
          path: request.path,
          method: request.method,
          headers: withFraming(request),
          body: request.body ?? null,
        },
        attempt,
      );
      return attempt;
    },
    close: () => pool.destroy(),
  };
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
