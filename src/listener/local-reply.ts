/**
 * Turns every SidecarError into a local reply: problem+json (RFC 9457) with Proxy-Status (RFC 9209), which tells it from an upstream
 * response. A reply is never a 401, and contains no secret and no stack.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { UNREAD_BODY_DRAIN_MS, drainThenClose } from '../exchange/connection-end.ts';
import { expectsContinue } from '../exchange/expect-continue.ts';
import { isFullyReceived } from '../exchange/request-body/request-receipt.ts';
import { systemClock, type Clock } from '../platform/clock.ts';
import { LOCAL_REPLIES, type LocalReplyCode, type SidecarError } from '../platform/errors.ts';
import type { Redact } from '../platform/secret-redaction.ts';
import { STATUS_CODES } from '../platform/http.ts';
import { corsHeaders } from '../upstream/headers.ts';
import { resumeReading } from './connection-reading.ts';
import { buildHttp2LocalReply, hasFirstRequest } from './http2-local-reply.ts';

const DEFAULT_ALLOW = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

export interface LocalReply {
  readonly status: number;
  /** Flat list [name, value, …], framing included. */
  readonly headers: readonly string[];
  readonly body: string;
}

export interface ReplyFacts {
  /** Valid, and so fit for a header field. */
  readonly requestId: string;
  readonly isOutcomeUnknown: boolean;
  /** For the text of the error, which may quote an upstream or the client. */
  readonly mask: Redact;
}

export function buildLocalReply(error: SidecarError, { requestId, isOutcomeUnknown, mask }: ReplyFacts): LocalReply {
  const { status, proxyStatus, title, retryAfterMs } = LOCAL_REPLIES[error.code];
  const body = `${JSON.stringify({
    type: `urn:bearer-sidecar:${error.code.toLowerCase().replaceAll('_', '-')}`,
    title,
    status,
    detail: `${mask(error.message)}${isOutcomeUnknown ? '; the upstream may have carried the call out' : ''}`,
    code: error.code,
    requestId,
    ...(isOutcomeUnknown && { outcome: 'unknown' }),
  })}\n`;
  const headers = [
    'Content-Type',
    'application/problem+json',
    'Content-Length',
    String(Buffer.byteLength(body)),
    'Cache-Control',
    'no-store',
    'Proxy-Status',
    `bearer-sidecar; error=${error.proxyStatus ?? proxyStatus}`,
    'X-Request-Id',
    requestId,
  ];
  if (status === 405) headers.push('Allow', error.allow?.join(', ') ?? DEFAULT_ALLOW);
  if (retryAfterMs !== undefined) headers.push('Retry-After', toSeconds(error.retryAfterMs ?? retryAfterMs));
  return { status, headers, body };
}

function toSeconds(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  return String(Number.isFinite(seconds) ? Math.max(1, seconds) : 1);
}

/** How much of a rejected body, or behind the last request of a connection, is read and discarded. */
export const MAX_DISCARDED_BYTES = 1024 * 1024;

/** The head cannot be trusted, or was not kept whole, or there will be no further request. */
const CLOSING_CODES: ReadonlySet<LocalReplyCode> = new Set(['BAD_REQUEST', 'HEADERS_TOO_LARGE', 'DRAINING']);

export interface LocalReplyOptions {
  /** Flat list [name, value, …]. Default: none. */
  readonly extraHeaders?: readonly string[];
  /** The framing of the request is broken, so that its rest cannot be read. Default false. */
  readonly isBroken?: boolean;
  /** For the moment before closing. Default: the process's own. */
  readonly clock?: Clock;
}

/**
 * Replies to a request with an error. While its body is still arriving, the connection is closed a moment after the reply (RFC 9112
 * §9.6): closing at once would reset it before the client has read the reply.
 * @returns bytes of the body sent
 */
export function sendLocalReply(
  request: IncomingMessage,
  response: ServerResponse,
  error: SidecarError,
  facts: ReplyFacts,
  { extraHeaders = [], isBroken = false, clock = systemClock }: LocalReplyOptions = {},
): number {
  const { status, headers, body } = buildLocalReply(error, facts);
  const isWhole = isFullyReceived(request);
  const mustClose = !isWhole || CLOSING_CODES.has(error.code);
  if (mustClose) response.shouldKeepAlive = false;
  response.writeHead(status, [...headers, ...extraHeaders]);
  if (isWhole || isBroken) {
    response.end(body);
    // node:http keeps a request in memory until its content has been read.
    if (isWhole) request.resume();
  } else {
    response.write(body);
    drainThenClose(request, response, clock, MAX_DISCARDED_BYTES);
  }
  return Buffer.byteLength(body);
}

/**
 * Replies on a bare connection (parser errors, CONNECT, upgrades) and closes it a moment later, so that a client that is still sending
 * can read the reply first.
 * @param clock for the moment before closing. Default: the process's own
 */
export function sendRawLocalReply(socket: Duplex, error: SidecarError, facts: ReplyFacts, clock = systemClock): void {
  const { status, headers, body } = buildLocalReply(error, facts);
  const lines = [`HTTP/1.1 ${String(status)} ${STATUS_CODES[status] ?? ''}`];
  for (let index = 0; index < headers.length; index += 2)
    lines.push(`${headers[index] ?? ''}: ${headers[index + 1] ?? ''}`);
  const end = `Connection: close\r\nDate: ${new Date().toUTCString()}\r\n\r\n${body}`;
  endConnection(socket, `${lines.join('\r\n')}\r\n${end}`, clock);
}

/** The first request of a client of HTTP/2 may follow its preface in another packet. */
const HTTP2_REQUEST_WAIT_MS = 200;
const HTTP2_REQUEST_MAX_BYTES = 64 * 1024;

/** The same in HTTP/2, in response to the first request. @param received what the client has sent, from its preface on */
export function sendHttp2LocalReply(
  socket: Duplex,
  error: SidecarError,
  facts: ReplyFacts,
  received: Uint8Array,
): void {
  // A client may reset the connection within the wait.
  socket.on('error', () => socket.destroy());
  let bytes = Buffer.from(received);
  const reply = (): void => {
    cancel();
    socket.off('data', onData).off('close', cancel);
    const { requestId, mask } = facts;
    endConnection(
      socket,
      buildHttp2LocalReply(bytes, buildLocalReply(error, facts), requestId, mask(error.message)),
      systemClock,
    );
  };
  const onData = (chunk: Buffer): void => {
    bytes = Buffer.concat([bytes, chunk]);
    if (hasFirstRequest(bytes) || bytes.length > HTTP2_REQUEST_MAX_BYTES) reply();
  };
  const cancel = systemClock.after(hasFirstRequest(bytes) ? 0 : HTTP2_REQUEST_WAIT_MS, reply);
  socket.on('data', onData).once('close', cancel);
}

function endConnection(socket: Duplex, bytes: string | Buffer, clock: Pick<Clock, 'after'>): void {
  // node:http removes its own listener from a connection that it hands over; without one, a reset would end the process.
  socket.on('error', () => socket.destroy());
  // A reply was sent already, or the client has left.
  if (!socket.writable) return;
  socket.end(bytes);
  resumeReading(socket);
  socket.once(
    'close',
    clock.after(UNREAD_BODY_DRAIN_MS, () => socket.destroy()),
  );
}

export const PREFLIGHT_STATUS = 204;

/** Allows every method and header field that the page asks for: the upstream decides about the request itself. */
export function replyToPreflight(request: IncomingMessage, response: ServerResponse, origin: string): void {
  const { headers } = request;
  // A body that waits for a 100 may never come.
  if (expectsContinue(request) && !isFullyReceived(request)) response.shouldKeepAlive = false;
  response.writeHead(PREFLIGHT_STATUS, [
    ...corsHeaders(origin),
    'Access-Control-Allow-Methods',
    headers['access-control-request-method'] ?? '',
    'Access-Control-Allow-Headers',
    headers['access-control-request-headers'] ?? '',
    'Access-Control-Max-Age',
    '600',
  ]);
  response.end();
}
