/**
 * The way to the one upstream: HTTP/1.1 with keep-alive, without retries, redirects or decompression of undici's own. The origin is
 * fixed when the client is built; nothing of a request can change it.
 */
import type { Readable } from 'node:stream';
import { Attempt } from './attempt.ts';
import type { AttemptHandler } from './attempt-contract.ts';
import { ConnectionPool } from './connection-pool.ts';
import { createConnector, type ConnectorOptions } from './connector.ts';

export interface UpstreamOptions extends ConnectorOptions {
  /** A connection older than this takes no further request, so that changes of DNS are followed; 0 = no limit. */
  readonly maxConnectionAgeMs: number;
  /** Most connections at a time; one carries one request. */
  readonly maxConnections: number;
}

export interface UpstreamRequest {
  readonly method: string;
  /** Path and query on the upstream, base path included. */
  readonly path: string;
  /** Flat list [name, value, …], the bearer included, without Host and framing. */
  readonly headers: string[];
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
  send(request: UpstreamRequest, terms: AttemptHandler): Attempt;
  /** Another bound for the connections at a time. What is under way goes on; idle connections beyond it are given up. */
  resize(connections: number): void;
  /** Closes every connection, whatever is under way. */
  close(): Promise<void>;
}

export function createUpstream(options: UpstreamOptions): Upstream {
  const { clock, baseUrl, maxConnections: most, maxConnectionAgeMs } = options;
  const origin = new URL(baseUrl.origin);
  const connect = createConnector(options);
  const connections = new ConnectionPool({ clock, origin, connect, maxConnections: most, maxConnectionAgeMs });
  return {
    baseUrl,
    send(request, terms) {
      const { path, method, needsNewConnection, body = null } = request;
      const attempt = new Attempt(clock, terms, method);
      const options = { path, method, headers: withContentLength(request), body };
      if (needsNewConnection) connections.dispatchOnNew(options, attempt);
      else connections.dispatch(options, attempt);
      return attempt;
    },
    resize: (bound) => connections.resize(bound),
    close: () => connections.close(),
  };
}

function withContentLength({ headers, body, contentLength }: UpstreamRequest): string[] {
  if (contentLength === undefined || Buffer.isBuffer(body)) return headers;
  return [...headers, 'content-length', String(contentLength)];
}
