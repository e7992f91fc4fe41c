/**
 * The errors for which the sidecar itself replies. Exactly one place, listener/local-reply, turns them into replies.
 * An upstream response of any status is a value and never one of these.
 */

/** The closed set of `code` members of a local reply. */
export const LOCAL_REPLY_CODES = [
  'HOST_NOT_ALLOWED',
  'ORIGIN_NOT_ALLOWED',
  'REQUEST_NOT_ALLOWED',
  'UPGRADE_NOT_ALLOWED',
  'BAD_REQUEST',
  'METHOD_NOT_ALLOWED',
  'HEADERS_TOO_LARGE',
  'REQUEST_TIMEOUT',
  'QUEUE_FULL',
  'QUEUE_TIMEOUT',
  'DRAINING',
  'TOKEN_REJECTED',
  'TOKEN_UNAVAILABLE',
  'UPSTREAM_UNREACHABLE',
  'UPSTREAM_RESET',
  'UPSTREAM_PROTOCOL_ERROR',
  'UPSTREAM_TIMEOUT',
] as const;

export type LocalReplyCode = (typeof LOCAL_REPLY_CODES)[number];

/** RFC 9209 §2.3 proxy error types that the sidecar uses. */
export type ProxyStatusError =
  | 'http_request_denied'
  | 'http_request_error'
  | 'connection_limit_reached'
  | 'destination_unavailable'
  | 'connection_refused'
  | 'connection_timeout'
  | 'connection_terminated'
  | 'destination_ip_unroutable'
  | 'dns_error'
  | 'tls_certificate_error'
  | 'tls_protocol_error'
  | 'http_protocol_error'
  | 'http_response_timeout'
  | 'proxy_internal_error';

export interface SidecarErrorOptions {
  /** Milliseconds until a retry makes sense; becomes `Retry-After` (whole seconds, rounded up, at least 1). */
  readonly retryAfterMs?: number;
  /** A more specific RFC 9209 error type than the default of the code. */
  readonly proxyStatus?: ProxyStatusError;
  /** With METHOD_NOT_ALLOWED: the allowed methods (RFC 9110 §10.2.1). Default: all that are forwarded. */
  readonly allow?: readonly string[];
  readonly cause?: unknown;
}

/**
 * An error that ends a request with a local reply. The client gets `message` as `detail`: it names the fault and what is expected, and
 * never contains a secret, a token or a stack.
 */
export class SidecarError extends Error {
  override readonly name = 'SidecarError';
  readonly code: LocalReplyCode;
  readonly retryAfterMs: number | undefined;
  readonly proxyStatus: ProxyStatusError | undefined;
  readonly allow: readonly string[] | undefined;

  constructor(code: LocalReplyCode, message: string, options: SidecarErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryAfterMs = options.retryAfterMs;
    this.proxyStatus = options.proxyStatus;
    this.allow = options.allow;
  }
}
