/**
 * One request with a connection of its own: one an hour gains nothing from a kept one, and meets no socket that died in the
 * meantime. What is asked, and what the answer means, is the caller's.
 */
import type { Dispatcher } from 'undici';
import type { SecureContext } from 'node:tls';
import type { Clock } from '../../platform/clock.ts';
import { buildEgressConnector } from '../../platform/egress/connector.ts';
import type { ProxySelector } from '../../platform/egress/proxy-selector.ts';
import { Client, request } from '../../platform/undici.ts';

export interface SingleRequest {
  readonly url: URL;
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** For `https:`. */
  readonly secureContext: SecureContext | undefined;
  readonly egress: ProxySelector;
  readonly clock: Pick<Clock, 'after'>;
  /** Longest time for the connection to open, milliseconds. */
  readonly timeoutMs: number;
  /** Ends the exchange, the connection that is being opened included. */
  readonly signal: AbortSignal;
}

/**
 * Resolves with what `read` makes of the answer; redirects are not followed.
 * @throws errors of undici, Node and `read`; ProxyFault
 */
export async function sendSingleRequest<T>(
  exchange: SingleRequest,
  read: (answer: Dispatcher.ResponseData) => Promise<T>,
): Promise<T> {
  const { url, method, headers, body, signal, secureContext, egress, clock, timeoutMs } = exchange;
  const connect = buildEgressConnector({ destination: url, egress, secureContext, timeoutMs, clock, signal });
  let brokenBy: Error | undefined;
  const client = new Client(url.origin, {
    // The caller's signal is sooner than any of these would need to be.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (terms, callback) => {
      // Undici alone would leave a connection that is being opened to its own time-out: the signal goes to the socket too.
      connect(terms, (...outcome) => {
        // Undici would tell of the end of the connection alone, and not of the alert with which TLS has announced it.
        outcome[1]?.on('error', (error: Error) => (brokenBy ??= error));
        callback(...outcome);
      });
    },
  });
  try {
    const path = url.pathname + url.search;
    return await read(await request(client, { method, path, headers, body: body ?? null, reset: true, signal }));
  } catch (error) {
    throw brokenBy ?? error;
  } finally {
    await client.destroy();
  }
}

/** The whole body as text; undefined when it is longer than the bound. */
export async function readBoundedText(body: AsyncIterable<Buffer>, largestBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > largestBytes) return undefined;
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}
