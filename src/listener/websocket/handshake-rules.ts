/**
 * The opening handshake of a WebSocket as both sides must write it (RFC 6455 §4): what a client has to ask for, and which response
 * of the upstream agrees to it. Pure but for the digest.
 */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { SidecarError } from '../../platform/errors.ts';
import type { UpstreamFailure } from '../../upstream/failure.ts';

const ACCEPT_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
/** 16 bytes in base64. */
const WEBSOCKET_KEY = /^[A-Za-z0-9+/]{21}[AQgw]==$/;

/**
 * Why a GET that asks for a WebSocket is refused; undefined when it may be sent. Its version is for the upstream to judge, whose 426
 * names the versions that it speaks.
 */
export function checkHandshakeRequest(headers: IncomingHttpHeaders): SidecarError | undefined {
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0) {
    return new SidecarError('BAD_REQUEST', 'a WebSocket upgrade has no request body');
  }
  // Without a key nothing proves that the upstream has understood the upgrade.
  if (!WEBSOCKET_KEY.test(headers['sec-websocket-key'] ?? '')) {
    return new SidecarError('BAD_REQUEST', 'Sec-WebSocket-Key is not 16 bytes in base64 (RFC 6455 §4.1)');
  }
  return undefined;
}

/**
 * What keeps a 101 from being an agreement to this request; undefined when it is one.
 * @param request as sent to the upstream
 */
export function checkHandshakeResponse(
  request: IncomingHttpHeaders,
  response: IncomingHttpHeaders,
): UpstreamFailure | undefined {
  if (response.upgrade?.trim().toLowerCase() !== 'websocket') return createMismatchFailure('Upgrade');
  if (!parseNames(response.connection).includes('upgrade')) return createMismatchFailure('Connection');
  if (response['sec-websocket-accept'] !== computeAcceptValue(request['sec-websocket-key'] ?? '')) {
    return createMismatchFailure('Sec-WebSocket-Accept');
  }
  for (const name of ['Sec-WebSocket-Protocol', 'Sec-WebSocket-Extensions']) {
    const offered = parseNames(joinValues(request[name.toLowerCase()]));
    const chosen = parseNames(joinValues(response[name.toLowerCase()]));
    if (chosen.some((each) => !offered.includes(each))) return createMismatchFailure(name);
  }
  return undefined;
}

function computeAcceptValue(key: string): string {
  return createHash('sha1')
    .update(key + ACCEPT_GUID)
    .digest('base64');
}

/** Lower-case names of a list, without parameters and empty members. */
function parseNames(list = ''): readonly string[] {
  return list
    .split(',')
    .map((member) => member.replace(/;.*/s, '').trim().toLowerCase())
    .filter((name) => name !== '');
}

function joinValues(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(',') : value;
}

/** The upstream's 101 is wrong in this header field. */
export function createMismatchFailure(field: string): UpstreamFailure {
  const detail = `the upstream's 101 does not match the WebSocket upgrade: invalid ${field} field`;
  return { kind: 'protocol', detail, proxyStatus: 'http_protocol_error', permanent: true };
}
