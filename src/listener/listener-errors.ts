/** The errors of the listener itself: input that node:http's parser refuses (RFC 9112), limits of the port, draining. Pure. */
import { SidecarError } from '../platform/errors.ts';
import type { EventObserver } from '../telemetry/events.ts';

/** @param code of node:http's clientError */
export function toParserError(code: string): SidecarError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new SidecarError('HEADERS_TOO_LARGE', 'the header fields are larger than 16 KiB');
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
  return new SidecarError('DRAINING', 'the sidecar is shutting down', { retryAfterMs: 1000 });
}

/** Shared objects: under overload an error per request would cost a stack trace each. */
export const TOO_MANY_CONNECTIONS = createLimitError('open connections');
export const TOO_MANY_REQUESTS = createLimitError('requests');
export const TOO_MANY_PIPELINED = createLimitError('pipelined requests on this connection');

function createLimitError(what: string): SidecarError {
  return new SidecarError('QUEUE_FULL', `the limit of ${what} is reached`, { retryAfterMs: 1000 });
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
