/** Classifies the errors of an attempt: for people, for Proxy-Status (RFC 9209 §2.3) and for the retry policy. Pure. */
import {
  CERTIFICATE_CODE,
  ConnectFault,
  describeConnectionError,
  describeTriedAddresses,
  errorCodeOf,
  HeaderOverflow,
  HTTP2_ONLY_TEXT,
  isHttp2Only,
} from '../platform/connection-faults.ts';
import { ProxyFault } from '../platform/egress/proxy-fault.ts';
import type { ProxyStatusError } from '../platform/errors.ts';
import type { FaultCause } from '../telemetry/events.ts';

export type FailureKind =
  /** No connection was opened: no byte of the request was sent. */
  | 'unreachable'
  /** The connection broke after the request had begun. */
  | 'reset'
  | 'timeout'
  | 'protocol'
  /** The request cannot be put into HTTP: nothing was sent. */
  | 'unsendable'
  /** The call cannot be recorded before it is sent, and must not be sent otherwise: nothing was sent. */
  | 'unrecorded'
  /** The sidecar ended the attempt itself: client gone, deadline, drain. */
  | 'aborted';

export interface UpstreamFailure {
  readonly kind: FailureKind;
  /** Fit for a client and a log: names the fault and its error code, no secret. */
  readonly detail: string;
  readonly proxyStatus: ProxyStatusError;
  /** Undefined when the sidecar ended the attempt itself, or could not send it. */
  readonly cause: FaultCause | undefined;
  /** True when trying again cannot help (a certificate that is not trusted). */
  readonly permanent: boolean;
}

const CERTIFICATE_CAUSES: Readonly<Record<string, FaultCause>> = {
  CERT_HAS_EXPIRED: 'certificate_expired',
  CERT_NOT_YET_VALID: 'certificate_not_yet_valid',
  ERR_TLS_CERT_ALTNAME_INVALID: 'certificate_wrong_host',
  HOSTNAME_MISMATCH: 'certificate_wrong_host',
};

type FaultEntry = readonly [cause: FaultCause, proxyStatus: ProxyStatusError, words: string];

const CLOSED: FaultEntry = [
  'reset_before_sent',
  'connection_terminated',
  'the connection was closed while it was opened',
];

const CONNECT_FAULTS: Readonly<Record<string, FaultEntry>> = {
  ECONNREFUSED: ['connection_refused', 'connection_refused', 'it refused the connection'],
  ENOTFOUND: ['dns', 'dns_error', 'its name does not resolve'],
  EAI_AGAIN: ['dns', 'dns_error', 'the name server does not respond'],
  ETIMEDOUT: ['connect_timeout', 'connection_timeout', 'connecting took too long'],
  EHOSTUNREACH: ['unroutable', 'destination_ip_unroutable', 'there is no route to it'],
  ENETUNREACH: ['unroutable', 'destination_ip_unroutable', 'there is no route to it'],
  ECONNRESET: CLOSED,
  EPIPE: CLOSED,
  UND_ERR_SOCKET: CLOSED,
  EPROTO: ['tls', 'tls_protocol_error', 'the TLS handshake failed'],
};

/** By what was not over when the time was. */
const TIMED_OUT: Readonly<Record<ConnectFault['stage'], FaultEntry>> = {
  lookup: ['dns', 'dns_timeout', 'its name was not resolved'],
  connect: ['connect_timeout', 'connection_timeout', 'no connection was opened'],
  handshake: ['connect_timeout', 'connection_timeout', 'the TLS handshake was not complete'],
};

const CA_SETTING = 'upstream.caFile (SIDECAR_CA_FILE)';

/** Alerts about the client's certificate, which TLS 1.3 sends only when the client's handshake is over. */
const CLIENT_CERTIFICATE_CODE =
  /^ERR_SSL_[A-Z0-9/]+_ALERT_(?:UNKNOWN_CA|DECRYPT_ERROR|(?:BAD|UNSUPPORTED)_CERTIFICATE|CERTIFICATE_(?:REQUIRED|EXPIRED|REVOKED|UNKNOWN))$/;

/** `HTTPParserError` is the name of an error whose code undici leaves out. */
const PROTOCOL_CODE = /^(?:HPE_|HTTPParserError$)/;

/** No connection was tried: the circuit breaker is open. */
export class CircuitOpenError extends Error {
  override readonly name = 'CircuitOpenError';

  /** @param cause why the last connection failed */
  constructor(cause: Error | undefined) {
    super('the circuit breaker of the upstream is open', { cause });
  }
}

/** The attempt ended before its request had begun on a connection. */
export function classifyConnectError(error: unknown): UpstreamFailure {
  // The next probe comes later than any retry would.
  if (error instanceof CircuitOpenError) return { ...classifyConnectError(error.cause), permanent: true };
  if (error instanceof ProxyFault) {
    const { message, proxyStatus, isPermanent: permanent, faultCause: cause } = error;
    return { kind: 'unreachable', detail: `the upstream cannot be reached: ${message}`, proxyStatus, cause, permanent };
  }
  if (isHttp2Only(error)) {
    const detail = `the upstream ${HTTP2_ONLY_TEXT}`;
    return { kind: 'unreachable', detail, proxyStatus: 'tls_protocol_error', cause: 'protocol', permanent: true };
  }
  const code = errorCodeOf(error);
  if (code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_NOT_SUPPORTED') {
    const detail = `the request cannot be forwarded: ${messageOf(error)}`;
    return { kind: 'unsendable', detail, proxyStatus: 'http_request_error', cause: undefined, permanent: true };
  }
  if (CERTIFICATE_CODE.test(code)) {
    const text = describeConnectionError(code, CA_SETTING, error) ?? 'has a certificate that is not accepted';
    const detail = `the upstream ${text} (${code})`;
    const cause = CERTIFICATE_CAUSES[code] ?? 'certificate_untrusted';
    return { kind: 'unreachable', detail, proxyStatus: 'tls_certificate_error', cause, permanent: true };
  }
  if (error instanceof ConnectFault && error.limitMs !== undefined) {
    const [cause, proxyStatus, words] = TIMED_OUT[error.stage];
    const limit = `${String(error.limitMs)} ms: upstream.connectTimeoutMs (SIDECAR_UPSTREAM_CONNECT_TIMEOUT_MS)`;
    const detail = `the upstream cannot be reached: ${words} within ${limit}${error.addresses}`;
    return { kind: 'unreachable', detail, proxyStatus, cause, permanent: false };
  }
  const known = CONNECT_FAULTS[code] ?? (/^ERR_(?:SSL|TLS)_/.test(code) ? CONNECT_FAULTS.EPROTO : undefined);
  const [cause, proxyStatus, words] = known ?? (['other', 'destination_unavailable', 'the connection failed'] as const);
  const detail = `the upstream cannot be reached: ${words} (${code})${describeTriedAddresses(error)}`;
  return { kind: 'unreachable', detail, proxyStatus, cause, permanent: false };
}

/**
 * The attempt broke after its request had begun on a connection.
 * @param hasHead whether the response's head had come. Default true
 */
export function classifyExchangeError(error: unknown, hasHead = true): UpstreamFailure {
  if (!hasHead && isHttp2Only(error)) return protocolFailure(`the upstream ${HTTP2_ONLY_TEXT}`);
  if (error instanceof HeaderOverflow) return headerOverflowFailure(error);
  const code = errorCodeOf(error);
  const message = messageOf(error);
  // The parser reports a connection that ends within its last response. Undici reports a head with contradictory lengths
  // by the same code as a body that is cut short.
  const isMismatch = code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH';
  if (isMismatch && !hasHead) return parsingFailure('contradictory lengths');
  const isCutShort = isMismatch || message.includes('Invalid EOF state');
  const isMisbehaviour = /^bad (?:response|upgrade)$/.test(message) || /^ERR_(?:HTTP_|INVALID_|ASSERTION$)/.test(code);
  if (!isCutShort && (PROTOCOL_CODE.test(code) || isMisbehaviour)) return parsingFailure(code);
  if (CLIENT_CERTIFICATE_CODE.test(code)) {
    const detail = `the upstream does not accept the connection without a client certificate that it knows (${code}); see upstream.tlsCertificateFile`;
    const cause = 'client_certificate';
    return { kind: 'unreachable', detail, proxyStatus: 'tls_certificate_error', cause, permanent: true };
  }
  const detail = `the upstream closed the connection before its response was complete (${code})`;
  const cause = hasHead ? 'response_cut' : 'reset_after_sent';
  return { kind: 'reset', detail, proxyStatus: 'connection_terminated', cause, permanent: false };
}

export function timeoutFailure(afterMs: number): UpstreamFailure {
  const limit = `${String(Math.round(afterMs))} ms: upstream.requestTimeoutMs (SIDECAR_REQUEST_TIMEOUT_MS), or requestTimeoutMs of the route`;
  const detail = `the upstream did not respond within ${limit}`;
  const cause = 'no_response_in_time';
  return { kind: 'timeout', detail, proxyStatus: 'http_response_timeout', cause, permanent: false };
}

export function headerOverflowFailure({ text, hasTooManyFields }: HeaderOverflow): UpstreamFailure {
  const setting = hasTooManyFields ? '' : ': upstream.maxHeaderBytes (SIDECAR_UPSTREAM_MAX_HEADER_BYTES)';
  return protocolFailure(`the upstream ${text}${setting}`);
}

/** The response cannot be parsed. @param why fit for a client and a log */
export function parsingFailure(why: string): UpstreamFailure {
  return protocolFailure(`the upstream's response is not valid HTTP (${why})`);
}

/** The upstream does not keep to its protocol: no retry changes that. */
export function protocolFailure(detail: string): UpstreamFailure {
  return { kind: 'protocol', detail, proxyStatus: 'http_protocol_error', cause: 'protocol', permanent: true };
}

/**
 * A response body stops: the upstream sends nothing, or the client reads nothing.
 * @param isConfigured whether `upstream.bodyIdleTimeoutMs` is the limit. Default true
 */
export function idleTimeoutFailure(
  whose: 'upstream' | 'client',
  afterMs: number,
  isConfigured = true,
): UpstreamFailure {
  const setting = isConfigured ? ': upstream.bodyIdleTimeoutMs (SIDECAR_BODY_IDLE_TIMEOUT_MS)' : '';
  const ms = `${String(Math.round(afterMs))} ms${setting}`;
  if (whose === 'client') {
    const detail = `the client stopped reading: nothing was taken for ${ms}`;
    return { kind: 'aborted', detail, proxyStatus: 'http_response_timeout', cause: undefined, permanent: false };
  }
  const detail = `the upstream's response stopped: nothing was received for ${ms}`;
  return { kind: 'timeout', detail, proxyStatus: 'http_response_timeout', cause: 'response_cut', permanent: false };
}

export function unrecordedFailure(): UpstreamFailure {
  const detail =
    'the call was not sent: it could not be recorded in unknownCalls.file, and unknownCalls.onWriteError is refuse';
  return { kind: 'unrecorded', detail, proxyStatus: 'proxy_internal_error', cause: undefined, permanent: true };
}

export function abortedFailure(): UpstreamFailure {
  const detail = 'the attempt was ended by the sidecar';
  return { kind: 'aborted', detail, proxyStatus: 'connection_terminated', cause: undefined, permanent: true };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown fault';
}
