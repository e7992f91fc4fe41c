/** The WebSocket opening handshake (RFC 6455 §4): which requests are valid, and which 101 accepts a request. */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { SidecarError } from '../../platform/errors.ts';
import { protocolFailure, type UpstreamFailure } from '../../upstream/failure.ts';

const ACCEPT_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
/** 16 bytes in base64. */
const WEBSOCKET_KEY = /^[A-Za-z0-9+/]{21}[AQgw]==$/;

/**
 * Why a GET that upgrades to WebSocket is rejected; undefined when it may be sent. The upstream checks the version: its 426 names the
 * versions that it supports.
 */
export function checkHandshakeRequest(headers: IncomingHttpHeaders): SidecarError | undefined {
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0)
    return new SidecarError('BAD_REQUEST', 'a WebSocket upgrade must not have a request body');
  // Only the key lets the response prove that the upstream supports WebSocket.
  if (!WEBSOCKET_KEY.test(headers['sec-websocket-key'] ?? ''))
    return new SidecarError('BAD_REQUEST', 'Sec-WebSocket-Key is not 16 bytes in base64 (RFC 6455 §4.1)');
  return undefined;
}

/**
 * Why a 101 does not accept this request; undefined when it does.
 * @param request the header fields sent to the upstream
 */
export function checkHandshakeResponse(
  request: IncomingHttpHeaders,
  response: IncomingHttpHeaders,
): UpstreamFailure | undefined {
  if (response.upgrade?.trim().toLowerCase() !== 'websocket') return createMismatchFailure('Upgrade');
  if (!parseNames(response.connection).includes('upgrade')) return createMismatchFailure('Connection');
  if (response['sec-websocket-accept'] !== computeAcceptValue(request['sec-websocket-key'] ?? ''))
    return createMismatchFailure('Sec-WebSocket-Accept');
  for (const name of ['Sec-WebSocket-Protocol', 'Sec-WebSocket-Extensions']) {
    const offered = parseNames(joinValues(request[name.toLowerCase()]));
    const chosen = parseNames(joinValues(response[name.toLowerCase()]));
    if (chosen.some((value) => !offered.includes(value))) return createMismatchFailure(name);
  }
  return undefined;
}

function computeAcceptValue(key: string): string {
  return createHash('sha1')
    .update(key + ACCEPT_GUID)
    .digest('base64');
}

/** The names of a comma-separated list in lower case, without parameters and empty members. */
function parseNames(list = ''): readonly string[] {
  return list
    .split(',')
    .map((member) => member.replace(/;.*/s, '').trim().toLowerCase())
    .filter((name) => name !== '');
}

function joinValues(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(',') : value;
}

export function createMismatchFailure(field: string): UpstreamFailure {
  return protocolFailure(`the upstream's 101 does not match the WebSocket upgrade: invalid ${field} field`);
}
