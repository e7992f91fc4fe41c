/** Sends one HTTP request over a connection of its own: at about one request per hour a kept connection saves nothing and may be dead. */
import type { Dispatcher } from 'undici';
import type { Socket } from 'node:net';
import { unzipSync } from 'node:zlib';
import { HeaderOverflow, type TriedAddress } from '../../platform/connection-faults.ts';
import { buildEgressConnector, type EgressConnectorOptions } from '../../platform/egress/connector.ts';
import { describeFault, type FaultSettings } from '../../platform/faults.ts';
import { GrowableBuffer } from '../../platform/growable-buffer.ts';
import { Client, request } from '../../platform/undici.ts';

export interface SingleRequest extends Omit<EgressConnectorOptions, 'destination' | 'lookUp'> {
  readonly url: URL;
  readonly method: 'GET' | 'POST';
  /** As a flat list [name, value, …] too. */
  readonly headers: Readonly<Record<string, string>> | string[];
  readonly body?: string;
  /** Aborts the request, also while the connection is being opened. */
  readonly signal: AbortSignal;
  /** Gets the connection, or why it was not opened, with the addresses that were tried. Default: not needed */
  readonly onConnection?: ((outcome: Socket | Error, tried: readonly TriedAddress[], url: URL) => void) | undefined;
}

/** Most bytes of names and values in the header section of a response. */
const MAX_HEADER_BYTES = 64 * 1024;

/** Resolves with what `read` returns. Redirects are not followed. @throws errors of undici, Node and `read`; ProxyFault */
export async function sendSingleRequest<T>(
  options: SingleRequest,
  read: (response: Dispatcher.ResponseData) => Promise<T>,
): Promise<T> {
  const { url, method, headers, body, signal, tried = [], onConnection } = options;
  const connect = buildEgressConnector({ ...options, tried, destination: url });
  let socketError: Error | undefined;
  const client = new Client(url.origin, MAX_HEADER_BYTES, {
    // The caller's signal is the only time limit.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (target, callback) => {
      // undici does not pass the signal to a connection that is being opened: the connector has it.
      connect(target, (...result) => {
        // undici reports only that the connection ended, not the TLS alert before it.
        const [error, socket] = result;
        onConnection?.(error ?? socket, tried, url);
        socket?.on('error', (fault: Error) => (socketError ??= client.describeOverflow(fault)));
        callback(...result);
      });
    },
  });
  try {
    const path = url.pathname + url.search;
    return await read(await request(client, { method, path, headers, body: body ?? null, reset: true, signal }));
  } catch (error) {
    throw socketError ?? error;
  } finally {
    await client.destroy();
  }
}

const TOKEN_SETTINGS: FaultSettings = {
  address: 'auth.url (SIDECAR_AUTH_URL)',
  ca: 'upstream.caFile (SIDECAR_CA_FILE), or auth.caFile (SIDECAR_AUTH_CA_FILE) for the token endpoint alone,',
  certificate: 'auth.tlsCertificateFile (SIDECAR_AUTH_TLS_CERTIFICATE_FILE)',
  groups: 'upstream.tlsGroups (SIDECAR_UPSTREAM_TLS_GROUPS)',
  limit: 'auth.timeoutMs (SIDECAR_AUTH_TIMEOUT_MS)',
};

/** Why `sendSingleRequest` failed, with what helps. It begins with `host`: name and port, no user information. */
export function describeConnectionFault(host: string, error: unknown): string {
  if (error instanceof HeaderOverflow) return `${host} ${error.text}`;
  const { words, advice } = describeFault(error, TOKEN_SETTINGS);
  return `${host} ${words}; ${advice}`;
}

/** The text, or why there is none; `fault` follows "answered with 200 and". */
export type BodyReadResult =
  | { readonly text: string; readonly fault?: never }
  | { readonly text?: never; readonly fault: string };

/** Content codings (RFC 9110 §8.4.1) that are read although none is requested: some gateways compress for any client. */
const ZLIB_CODINGS: ReadonlySet<string> = new Set(['gzip', 'x-gzip', 'deflate']);

/**
 * The whole body as text, decompressed.
 * @param maxBytes of what is received, and of what it contains
 * @throws errors of the connection
 */
export async function readBoundedText(
  { headers, body }: Pick<Dispatcher.ResponseData, 'headers'> & { readonly body: AsyncIterable<Buffer> },
  maxBytes: number,
): Promise<BodyReadResult> {
  const received = new GrowableBuffer();
  const tooLong = `more than ${String(maxBytes / 1024)} KiB`;
  for await (const chunk of body) {
    if (received.length + chunk.length > maxBytes) return { fault: tooLong };
    received.append(chunk);
  }
  const coding = String(headers['content-encoding'] ?? '').toLowerCase();
  const isPlain = coding === '' || coding === 'identity' || received.length === 0;
  if (!isPlain && !ZLIB_CODINGS.has(coding))
    return { fault: 'a body whose Content-Encoding is neither gzip nor deflate' };
  try {
    const content = isPlain ? received.bytes : unzipSync(received.bytes, { maxOutputLength: maxBytes });
    return { text: new TextDecoder().decode(content) };
  } catch (error) {
    const isTooLong = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE';
    return { fault: isTooLong ? tooLong : 'a compressed body that is damaged' };
  }
}
