/**
 * The errors for which the sidecar itself replies. Exactly one place, listener/local-reply, turns them into replies.
 * An upstream response of any status is a value and never one of these.
 */

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
  | 'dns_timeout'
  | 'tls_certificate_error'
  | 'tls_protocol_error'
  | 'http_protocol_error'
  | 'http_response_timeout'
  | 'proxy_internal_error';

interface LocalReplyEntry {
  readonly status: number;
  /** Unless the error has a more specific one. */
  readonly proxyStatus: ProxyStatusError;
  readonly title: string;
  /** The reply has `Retry-After`: the same request may succeed later. Used where the error states no time. */
  readonly retryAfterMs?: number;
}

const ENTRIES = {
  HOST_NOT_ALLOWED: { status: 403, proxyStatus: 'http_request_denied', title: 'Host not allowed' },
  ORIGIN_NOT_ALLOWED: { status: 403, proxyStatus: 'http_request_denied', title: 'Origin not allowed' },
  REQUEST_NOT_ALLOWED: { status: 403, proxyStatus: 'http_request_denied', title: 'Request not allowed' },
  UPGRADE_NOT_ALLOWED: { status: 403, proxyStatus: 'http_request_denied', title: 'Upgrade not allowed' },
  BAD_REQUEST: { status: 400, proxyStatus: 'http_request_denied', title: 'Bad request' },
  METHOD_NOT_ALLOWED: { status: 405, proxyStatus: 'http_request_denied', title: 'Method not allowed' },
  HEADERS_TOO_LARGE: { status: 431, proxyStatus: 'http_request_denied', title: 'Header fields too large' },
  REQUEST_TIMEOUT: { status: 408, proxyStatus: 'http_request_error', title: 'Request timeout' },
  QUEUE_FULL: { status: 503, proxyStatus: 'connection_limit_reached', title: 'Queue full', retryAfterMs: 1000 },
  QUEUE_TIMEOUT: { status: 503, proxyStatus: 'connection_limit_reached', title: 'Queue timeout', retryAfterMs: 1000 },
  QUOTA_EXHAUSTED: {
    status: 503,
    proxyStatus: 'connection_limit_reached',
    title: 'Quota exhausted',
    retryAfterMs: 1000,
  },
  DRAINING: { status: 503, proxyStatus: 'destination_unavailable', title: 'Shutting down', retryAfterMs: 1000 },
  TOKEN_REJECTED: { status: 502, proxyStatus: 'destination_unavailable', title: 'Token request rejected' },
  TOKEN_UNAVAILABLE: {
    status: 503,
    proxyStatus: 'destination_unavailable',
    title: 'No access token',
    retryAfterMs: 1000,
  },
  UNKNOWN_CALLS_NOT_RECORDED: { status: 503, proxyStatus: 'proxy_internal_error', title: 'Call not recorded' },
  UPSTREAM_UNREACHABLE: { status: 502, proxyStatus: 'destination_unavailable', title: 'Upstream unreachable' },
  UPSTREAM_RESET: { status: 502, proxyStatus: 'connection_terminated', title: 'Upstream closed the connection' },
  UPSTREAM_PROTOCOL_ERROR: { status: 502, proxyStatus: 'http_protocol_error', title: 'Invalid upstream response' },
  UPSTREAM_TIMEOUT: { status: 504, proxyStatus: 'http_response_timeout', title: 'Upstream timeout' },
} as const satisfies Readonly<Record<string, LocalReplyEntry>>;

export type LocalReplyCode = keyof typeof ENTRIES;

export const LOCAL_REPLIES: Readonly<Record<LocalReplyCode, LocalReplyEntry>> = ENTRIES;
export const LOCAL_REPLY_CODES = Object.keys(LOCAL_REPLIES) as LocalReplyCode[];

/**
 * An error that ends a request with a local reply. The client gets `message` as `detail`: it names the fault and what is expected, and
 * never contains a secret, a token or a stack.
 */
export class SidecarError extends Error {
  override readonly name = 'SidecarError';
  readonly code: LocalReplyCode;
  /** Milliseconds until a retry makes sense; becomes `Retry-After` (whole seconds, rounded up, at least 1). */
  readonly retryAfterMs: number | undefined;
  /** A more specific RFC 9209 error type than the default of the code. */
  readonly proxyStatus: ProxyStatusError | undefined;
  /** With METHOD_NOT_ALLOWED: the allowed methods (RFC 9110 §10.2.1). Default: all that are forwarded. */
  readonly allow: readonly string[] | undefined;

  constructor(
    code: LocalReplyCode,
    message: string,
    options: Partial<Pick<SidecarError, 'retryAfterMs' | 'proxyStatus' | 'allow' | 'cause'>> = {},
  ) {
    // Under overload most requests end with one: to capture a stack, which is shown nowhere, would be most of its cost. An assignment would
    // throw with --frozen-intrinsics.
    const limit = Error.stackTraceLimit;
    Reflect.set(Error, 'stackTraceLimit', 0);
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    Reflect.set(Error, 'stackTraceLimit', limit);
    this.code = code;
    this.retryAfterMs = options.retryAfterMs;
    this.proxyStatus = options.proxyStatus;
    this.allow = options.allow;
  }
}
