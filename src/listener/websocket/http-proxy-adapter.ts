/**
 * What http-proxy-3 needs around it: header fields in its form; a check of the response, since it joins the connections on any 101;
 * backpressure and an idle timeout for the body of another response, which it writes without regard to how fast the client reads.
 */
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { RouteContext } from '../../exchange/exchange.ts';
import type { Cancel } from '../../platform/clock.ts';
import { HeaderOverflow, MAX_RESPONSE_FIELDS } from '../../platform/connection-faults.ts';
import type { ClientView } from '../../upstream/client-view.ts';
import { headerOverflowFailure, idleTimeoutFailure, type UpstreamFailure } from '../../upstream/failure.ts';
import { rewriteResponseHeaders, type FilterRequestHeaders } from '../../upstream/headers.ts';
import { checkHandshakeResponse, createMismatchFailure } from './handshake-rules.ts';

const UPGRADED_CONNECTION = { connection: 'Upgrade', upgrade: 'websocket' };

/** The end-to-end fields of the request, and the two connection-specific ones that an upgrade needs. */
export function buildUpgradeRequestHeaders(
  request: IncomingMessage,
  filter: FilterRequestHeaders,
): { readonly headers: Record<string, string>; readonly hadAuthorization: boolean } {
  const { headers: filtered, hadAuthorization } = filter(request.rawHeaders);
  const headers = Object.create(null) as Record<string, string>;
  for (let index = 0; index + 1 < filtered.length; index += 2) {
    const name = (filtered[index] ?? '').toLowerCase();
    const value = filtered[index + 1] ?? '';
    const earlier = headers[name];
    headers[name] = earlier === undefined ? value : `${earlier}, ${value}`;
  }
  return { headers: Object.assign(headers, UPGRADED_CONNECTION), hadAuthorization };
}

/**
 * The end-to-end fields of the response to an upgrade, as its client can use them, and the connection-specific ones: those of an upgraded
 * connection for a 101, else `Connection: close`.
 */
export function buildUpgradeResponseHeaders(
  { statusCode, rawHeaders }: IncomingMessage,
  describeView: () => ClientView,
): IncomingHttpHeaders {
  const rewritten = rewriteResponseHeaders(rawHeaders, describeView, undefined);
  const headers = Object.create(null) as Record<string, string[]>;
  for (let index = 0; index + 1 < rewritten.length; index += 2)
    (headers[(rewritten[index] ?? '').toLowerCase()] ??= []).push(rewritten[index + 1] ?? '');
  const own = statusCode === 101 ? UPGRADED_CONNECTION : { connection: 'close' };
  return Object.assign(headers, own);
}

/** Exactly one of these is called, once, unless the request fails first. */
export interface UpgradeResponseHandler {
  /** @param join has http-proxy-3 send the 101 and join the connections */
  onAccepted(response: IncomingMessage, upstream: Socket, join: () => void): void;
  /** @param relay has http-proxy-3 send the response to the client */
  onDeclined(response: IncomingMessage, relay: () => void): void;
  /** A 101 that does not accept this request; the upstream connection is closed. */
  onInvalid(failure: UpstreamFailure): void;
}

/** Node.js counts the reason phrase too. */
const MAX_REASON_BYTES = 1024;

/** Options of a request of node:http: it gives up when the head of the response is larger, in bytes. */
export function limitHead(maxHeaderBytes: number): { readonly maxHeaderSize: number } {
  return { maxHeaderSize: maxHeaderBytes + MAX_REASON_BYTES };
}

/** Any other error is returned unchanged. */
export function toHeaderOverflow(error: Error, maxHeaderBytes: number): Error {
  const isOverflow = 'code' in error && error.code === 'HPE_HEADER_OVERFLOW';
  return isOverflow ? new HeaderOverflow(maxHeaderBytes, limitHead(maxHeaderBytes).maxHeaderSize) : error;
}

function findHeaderOverflow(fields: readonly string[], maxHeaderBytes: number): HeaderOverflow | undefined {
  const bytes = fields.join('').length;
  const isOverflow = bytes > maxHeaderBytes || fields.length / 2 > MAX_RESPONSE_FIELDS;
  return isOverflow ? new HeaderOverflow(maxHeaderBytes, bytes, fields.length / 2) : undefined;
}

/** To be called when http-proxy-3 has added its listeners. @param sent the header fields of the request */
export function interceptUpgradeResponse(
  proxyRequest: ClientRequest,
  sent: IncomingHttpHeaders,
  maxHeaderBytes: number,
  handler: UpgradeResponseHandler,
): void {
  const findFault = ({ rawHeaders, statusCode, headers }: IncomingMessage): UpstreamFailure | undefined => {
    const overflow = findHeaderOverflow(rawHeaders, maxHeaderBytes);
    if (overflow !== undefined) return headerOverflowFailure(overflow);
    return statusCode === 101 ? checkHandshakeResponse(sent, headers) : undefined;
  };
  // More fields would be dropped: one more than may come is kept, so that they are noticed.
  proxyRequest.maxHeadersCount = MAX_RESPONSE_FIELDS + 1;
  const joinListeners = proxyRequest.listeners('upgrade');
  const relayListeners = proxyRequest.listeners('response');
  proxyRequest.removeAllListeners('upgrade').removeAllListeners('response');
  proxyRequest.once('upgrade', (response, upstream, head) => {
    const failure = findFault(response);
    if (failure === undefined) {
      handler.onAccepted(response, upstream, () => {
        for (const join of joinListeners) join.call(proxyRequest, response, upstream, head);
      });
    } else {
      upstream.on('error', () => undefined).destroy();
      handler.onInvalid(failure);
    }
  });
  proxyRequest.once('response', (response) => {
    // node:http reports a 101 without Connection or Upgrade as an ordinary response.
    const failure = findFault(response) ?? (response.statusCode === 101 ? MISSING_UPGRADE_FAILURE : undefined);
    if (failure !== undefined) handler.onInvalid(failure);
    else {
      handler.onDeclined(response, () => {
        for (const relay of relayListeners) relay.call(proxyRequest, response);
      });
    }
  });
}

const MISSING_UPGRADE_FAILURE = createMismatchFailure('Upgrade');

/**
 * Reads the response no faster than the client does.
 * @param onIdle called once after the idle timeout; the failure names the side that stopped
 */
export function limitBodyToClientPace(
  response: IncomingMessage,
  socket: Duplex,
  { clock, timeouts: { bodyIdleTimeoutMs } }: Pick<RouteContext, 'clock' | 'timeouts'>,
  onIdle: (failure: UpstreamFailure) => void,
): void {
  let lastProgressAt = clock.now();
  let cancel: Cancel | undefined;
  const check = (): void => {
    const leftMs = lastProgressAt + bodyIdleTimeoutMs - clock.now();
    // One timer that is set again when it fires, so that chunks cost no timer.
    if (leftMs > 0) cancel = clock.after(leftMs, check);
    else
      onIdle(idleTimeoutFailure(response.complete || response.isPaused() ? 'client' : 'upstream', bodyIdleTimeoutMs));
  };
  response.on('data', () => {
    lastProgressAt = clock.now();
    // http-proxy-3 writes this chunk after this listener, so that at most one more is buffered.
    if (socket.writableNeedDrain) response.pause();
  });
  socket.on('drain', () => {
    lastProgressAt = clock.now();
    response.resume();
  });
  // The response may be complete while the client still reads the rest of it.
  socket.once('close', () => {
    cancel?.();
    response.destroy();
  });
  if (bodyIdleTimeoutMs > 0) check();
}
