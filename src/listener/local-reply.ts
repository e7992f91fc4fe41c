/**
 * The one door through which the sidecar's own faults leave: problem+json (RFC 9457) with Proxy-Status (RFC 9209), so
 * that nobody mistakes them for the upstream's answers. Never a 401, never a secret, never a stack.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { STATUS_CODES } from '../platform/http.ts';
import type { Duplex } from 'node:stream';
import { systemClock } from '../platform/clock.ts';
import type { LocalReplyCode, ProxyStatusError, SidecarError } from '../platform/errors.ts';
import { UNREAD_BODY_DRAIN_MS, drainThenClose } from '../exchange/drain-then-close.ts';
import { isFullyReceived } from '../exchange/request-body/request-receipt.ts';

interface ReplyTemplate {
  readonly status: number;
  readonly proxyStatus: ProxyStatusError;
  readonly title: string;
}

function getReplyTemplate(code: LocalReplyCode): ReplyTemplate {
  switch (code) {
    case 'HOST_NOT_ALLOWED':
      return { status: 403, proxyStatus: 'http_request_denied', title: 'Host not allowed' };
    case 'ORIGIN_NOT_ALLOWED':
      return { status: 403, proxyStatus: 'http_request_denied', title: 'Origin not allowed' };
    case 'REQUEST_NOT_ALLOWED':
      return { status: 403, proxyStatus: 'http_request_denied', title: 'Request not allowed' };
    case 'UPGRADE_NOT_ALLOWED':
      return { status: 403, proxyStatus: 'http_request_denied', title: 'Upgrade not allowed' };
    case 'BAD_REQUEST':
      return { status: 400, proxyStatus: 'http_request_denied', title: 'Bad request' };
    case 'METHOD_NOT_ALLOWED':
      return { status: 405, proxyStatus: 'http_request_denied', title: 'Method not allowed' };
    case 'HEADERS_TOO_LARGE':
      return { status: 431, proxyStatus: 'http_request_denied', title: 'Header fields too large' };
    case 'REQUEST_TIMEOUT':
      return { status: 408, proxyStatus: 'http_request_error', title: 'Request body timeout' };
    case 'QUEUE_FULL':
      return { status: 503, proxyStatus: 'connection_limit_reached', title: 'Queue full' };
    case 'QUEUE_TIMEOUT':
      return { status: 503, proxyStatus: 'connection_limit_reached', title: 'Queue timeout' };
    case 'DRAINING':
      return { status: 503, proxyStatus: 'destination_unavailable', title: 'Shutting down' };
    case 'TOKEN_REJECTED':
      return { status: 502, proxyStatus: 'destination_unavailable', title: 'Credentials rejected' };
    case 'TOKEN_UNAVAILABLE':
      return { status: 503, proxyStatus: 'destination_unavailable', title: 'No access token' };
    case 'UPSTREAM_UNREACHABLE':
      return { status: 502, proxyStatus: 'destination_unavailable', title: 'Upstream unreachable' };
    case 'UPSTREAM_RESET':
      return { status: 502, proxyStatus: 'connection_terminated', title: 'Upstream closed the connection' };
    case 'UPSTREAM_PROTOCOL_ERROR':
      return { status: 502, proxyStatus: 'http_protocol_error', title: 'Upstream answered invalid HTTP' };
    case 'UPSTREAM_TIMEOUT':
      return { status: 504, proxyStatus: 'http_response_timeout', title: 'Upstream timeout' };
  }
}

const DEFAULT_ALLOW = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

export interface LocalReply {
  readonly status: number;
  /** Flat list [name, value, …], framing included. */
  readonly headers: readonly string[];
  readonly body: string;
}

/** What a fault looks like on the wire. */
export function buildLocalReply(error: SidecarError): LocalReply {
  const shape = getReplyTemplate(error.code);
  const body = `${JSON.stringify({
    type: `urn:bearer-sidecar:${error.code.toLowerCase().replaceAll('_', '-')}`,
    title: shape.title,
    status: shape.status,
    detail: error.message,
    code: error.code,
  })}\n`;
  const fields = [
    'Content-Type',
    'application/problem+json',
    'Content-Length',
    String(Buffer.byteLength(body)),
    'Cache-Control',
    'no-store',
    'Proxy-Status',
    `bearer-sidecar; error=${error.proxyStatus ?? shape.proxyStatus}`,
  ];
  if (shape.status === 405) fields.push('Allow', error.allow?.join(', ') ?? DEFAULT_ALLOW);
  if (shape.status === 503) fields.push('Retry-After', String(retryAfterSeconds(error)));
  return { status: shape.status, headers: fields, body };
}

function retryAfterSeconds(error: SidecarError): number {
  const seconds = Math.ceil((error.retryAfterMs ?? 1000) / 1000);
  return Number.isFinite(seconds) ? Math.max(1, seconds) : 1;
}

/** How much of what it has refused the sidecar reads away. */
const MAX_DISCARDED_BYTES = 1024 * 1024;

/**
 * Answers a request with a fault. A request whose body is still coming gets its connection closed after the reply
 * (RFC 9112 §9.6), with some patience: closing at once would reset it before the reply was read.
 * @param isBroken the rest of the request cannot be read: its framing is broken
 * @param clock for that patience. Default: the process's own
 * @returns bytes of the body sent
 */
export function sendLocalReply(
  request: IncomingMessage,
  response: ServerResponse,
  error: SidecarError,
  extraFields: readonly string[] = [],
  isBroken = false,
  clock = systemClock,
): number {
  const { status, headers, body } = buildLocalReply(error);
  const isWhole = isFullyReceived(request);
  const mustClose = !isWhole || error.code === 'BAD_REQUEST' || error.code === 'DRAINING';
  if (mustClose) response.shouldKeepAlive = false;
  response.writeHead(status, [...headers, ...extraFields]);
  if (isWhole || isBroken) {
    response.end(body);
    // node:http keeps a request until its content has been read, for as long as the connection is idle.
    if (isWhole) request.resume();
  } else {
    response.write(body);
    drainThenClose(request, response, clock, MAX_DISCARDED_BYTES);
  }
  return Buffer.byteLength(body);
}

/**
 * Answers on a bare connection (parser errors, CONNECT, upgrades) and closes it, with some patience: a client that is
 * still sending, or keeps its own side open, gets to read the reply first.
 * @param clock for that patience. Default: the process's own
 */
export function sendRawLocalReply(socket: Duplex, error: SidecarError, clock = systemClock): void {
  // node:http takes its own listener off a connection that it hands over; unheard, a reset would end the process.
  socket.on('error', () => socket.destroy());
  // Already answered, or nobody is there.
  if (!socket.writable) return;
  const { status, headers, body } = buildLocalReply(error);
  const lines = [`HTTP/1.1 ${String(status)} ${STATUS_CODES[status] ?? ''}`];
  for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at] ?? ''}: ${headers[at + 1] ?? ''}`);
  socket.end(`${lines.join('\r\n')}\r\nConnection: close\r\nDate: ${new Date().toUTCString()}\r\n\r\n${body}`);
  socket.resume();
  socket.once(
    'close',
    clock.after(UNREAD_BODY_DRAIN_MS, () => socket.destroy()),
  );
}
