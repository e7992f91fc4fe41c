/** The listener's own faults, as replies: what node:http's parser refused (RFC 9112), and a port that closes. Pure. */
import { SidecarError } from '../platform/errors.ts';
import type { EventObserver } from '../telemetry/events.ts';

export function toParserError(code: string): SidecarError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new SidecarError('HEADERS_TOO_LARGE', 'the field section is larger than 16 KiB');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new SidecarError('REQUEST_TIMEOUT', 'the request head did not arrive in time');
    default:
      return new SidecarError('BAD_REQUEST', `the request is not valid HTTP/1.1 (${code})`);
  }
}

export function createDrainingError(): SidecarError {
  return new SidecarError('DRAINING', 'the sidecar is shutting down', { retryAfterMs: 1000 });
}

/** Created once, because they are used under overload. */
export const TOO_MANY_CONNECTIONS = createLimitError('open connections');
export const TOO_MANY_REQUESTS = createLimitError('requests');
export const TOO_MANY_PIPELINED = createLimitError('pipelined requests on this connection');

function createLimitError(what: string): SidecarError {
  return new SidecarError('QUEUE_FULL', `the limit of ${what} is reached`, { retryAfterMs: 1000 });
}

/** A request's fault as it is; whatever else was thrown is told of, and the client learns only that something went wrong. */
export function toSidecarError(thrown: unknown, observe: EventObserver): SidecarError {
  if (thrown instanceof SidecarError) return thrown;
  const words = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : 'unknown fault';
  observe({ kind: 'warning', message: `a request failed inside the sidecar: ${words}` });
  return new SidecarError('UPSTREAM_PROTOCOL_ERROR', 'the request failed inside the sidecar', {
    proxyStatus: 'proxy_internal_error',
  });
}
