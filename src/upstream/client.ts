/**
 * The client of one upstream: HTTP/1.1 with keep-alive, without retries, redirects or decompression of undici's own. The origin is
 * fixed when the client is built; no request can change it.
 */
import type { Readable } from 'node:stream';
import { ResponseReceiver } from './response-receiver.ts';
import type { AttemptHandler } from './attempt-contract.ts';
import { ConnectionPool } from './connection-pool.ts';
import { createConnector, type ConnectorOptions } from './connector.ts';

export interface UpstreamOptions extends ConnectorOptions {
  /** An older connection takes no further request, so that changes of DNS are followed; 0 = no limit. */
  readonly maxConnectionAgeMs: number;
  /** At a time; one carries one request. */
  readonly maxConnections: number;
}

export interface UpstreamRequest {
  readonly method: string;
  /** Path and query on the upstream, base path included. */
  readonly path: string;
  /** Flat list [name, value, …], the token included, without Host and framing. `send` may add to it. */
  readonly headers: string[];
  /** A buffer is sent with its length; a stream with `contentLength`, or chunked when that is undefined. */
  readonly body: Buffer | Readable | undefined;
  /** Of a stream. */
  readonly contentLength: number | undefined;
  /** Not on a kept connection: where one has just broken, the others may break as well. */
  readonly needsNewConnection: boolean;
}

export interface Upstream {
  readonly baseUrl: URL;
  /** Starts one attempt; its outcome is a value, never an exception. */
  send(request: UpstreamRequest, handler: AttemptHandler): ResponseReceiver;
  /** Changes `maxConnections`. Requests in flight go on; idle connections beyond the bound are closed. */
  resize(maxConnections: number): void;
  /** Closes every connection, also those in use. */
  close(): Promise<void>;
}

export function createUpstream(options: UpstreamOptions): Upstream {
  const { clock, baseUrl, maxConnections, maxConnectionAgeMs } = options;
  const origin = new URL(baseUrl.origin);
  const connect = createConnector(options);
  const connections = new ConnectionPool({ clock, origin, connect, maxConnections, maxConnectionAgeMs });
  return {
    baseUrl,
    send({ path, method, headers, body = null, contentLength, needsNewConnection }, handler) {
      const receiver = new ResponseReceiver(clock, handler, method);
      if (contentLength !== undefined) headers.push('content-length', String(contentLength));
      const request = { path, method, headers, body };
      if (needsNewConnection) connections.dispatchOnNew(request, receiver);
      else connections.dispatch(request, receiver);
      return receiver;
    },
    resize: (bound) => connections.resize(bound),
    close: () => connections.close(),
  };
}
