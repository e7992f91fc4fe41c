/** The listener's own faults, as replies: what node:http's parser refused (RFC 9112), and a port that closes. Pure. */
import { SidecarError } from '../errors.ts';

export function parserFault(code: string): SidecarError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new SidecarError('HEADERS_TOO_LARGE', 'the field section is larger than 16 KiB');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new SidecarError('REQUEST_TIMEOUT', 'the request head did not arrive in time');
    default:
      return new SidecarError('BAD_REQUEST', `the request is not valid HTTP/1.1 (${code})`);
  }
}

export function drainingFault(): SidecarError {
  return new SidecarError('DRAINING', 'the sidecar is shutting down', { retryAfterMs: 1000 });
}
