/** The errors of the listener itself: input that node:http's parser rejects (RFC 9112), limits of the port, draining. Pure. */
import { SidecarError } from '../platform/errors.ts';
import type { EventObserver } from '../telemetry/events.ts';

export interface ParserFault {
  readonly code?: string | undefined;
  readonly rawPacket?: Uint8Array | undefined;
}

/** The first two bytes of a ClientHello (RFC 8446 §5.1). */
const [TLS_HANDSHAKE, TLS_MAJOR_VERSION] = [22, 3] as const;
export const HTTP2_PREFACE = 'HPE_PAUSED_H2_UPGRADE';

export function toParserError({ code = '', rawPacket }: ParserFault): SidecarError {
  if (rawPacket?.[0] === TLS_HANDSHAKE && rawPacket[1] === TLS_MAJOR_VERSION)
    return new SidecarError('BAD_REQUEST', 'the client speaks TLS, and this port does not: use an http: URL');
  switch (code) {
    case HTTP2_PREFACE:
      return new SidecarError(
        'BAD_REQUEST',
        'the client speaks HTTP/2 with prior knowledge, and this port HTTP/1.1 only: set the client to HTTP/1.1',
      );
    case 'HPE_HEADER_OVERFLOW':
      return new SidecarError('HEADERS_TOO_LARGE', 'the header fields are larger than 16 KiB, or more than 200');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new SidecarError(
        'REQUEST_TIMEOUT',
        'the request head did not arrive within 60 s, which no setting changes',
      );
    default:
      return new SidecarError('BAD_REQUEST', `the request is not valid HTTP/1.1 (${code})`);
  }
}

export function createDrainingError(): SidecarError {
  return new SidecarError('DRAINING', 'the sidecar is shutting down');
}

/** Shared objects: under overload an error per request would cost a stack trace each. */
export const TOO_MANY_CONNECTIONS = createLimitError('open connections');
export const TOO_MANY_REQUESTS = createLimitError('requests');
export const TOO_MANY_PIPELINED = createLimitError('pipelined requests on this connection');

function createLimitError(what: string): SidecarError {
  return new SidecarError('QUEUE_FULL', `the limit of ${what} is reached`);
}

/** Returns a SidecarError as it is. Any other error is reported as a warning, and the client gets a general one. */
export function toSidecarError(thrown: unknown, observe: EventObserver): SidecarError {
  if (thrown instanceof SidecarError) return thrown;
  const detail = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : 'unknown error';
  observe({ kind: 'warning', message: `a request failed inside the sidecar: ${detail}` });
  return new SidecarError('UPSTREAM_PROTOCOL_ERROR', 'the request failed inside the sidecar', {
    proxyStatus: 'proxy_internal_error',
  });
}
