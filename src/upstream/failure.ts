/** Classifies the errors of an attempt: for people, for Proxy-Status (RFC 9209 §2.3) and for the retry policy. Pure. */
import { errorCodeOf, HeaderOverflow, type Fault } from '../platform/connection-faults.ts';
import type { ProxyStatusError } from '../platform/errors.ts';
import { describeFault, type FaultSettings } from '../platform/faults.ts';
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
  /** What helps. Default: nothing, or the detail names it. */
  readonly advice?: string | undefined;
  readonly proxyStatus: ProxyStatusError;
  /** Undefined when the sidecar ended the attempt itself, or could not send it. */
  readonly cause: FaultCause | undefined;
  /** Trying again cannot help (a certificate that is not trusted). */
  readonly permanent: boolean;
}

export const UPSTREAM_SETTINGS: FaultSettings = {
  address: 'upstream.baseUrl (SIDECAR_BASE_URL)',
  ca: 'upstream.caFile (SIDECAR_CA_FILE)',
  certificate: 'upstream.tlsCertificateFile (SIDECAR_UPSTREAM_TLS_CERTIFICATE_FILE)',
  groups: 'upstream.tlsGroups (SIDECAR_UPSTREAM_TLS_GROUPS)',
  limit: 'upstream.connectTimeoutMs (SIDECAR_UPSTREAM_CONNECT_TIMEOUT_MS)',
};

/** A connection did not open, or was not tried: with what is known of the route's connections, which the error alone does not say. */
export class ConnectionFailed extends Error {
  override readonly name = 'ConnectionFailed';
  readonly failure: UpstreamFailure;

  constructor(failure: UpstreamFailure) {
    super(failure.detail);
    this.failure = failure;
  }
}

/**
 * The attempt ended before its request had begun on a connection.
 * @param hasJustConnected whether another connection has succeeded within a minute. Default false
 */
export function classifyConnectError(error: unknown, hasJustConnected = false): UpstreamFailure {
  if (error instanceof ConnectionFailed) return error.failure;
  const code = errorCodeOf(error);
  if (code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_NOT_SUPPORTED') {
    const detail = `the request cannot be forwarded: ${messageOf(error)}`;
    return { kind: 'unsendable', detail, proxyStatus: 'http_request_error', cause: undefined, permanent: true };
  }
  return toFailure('unreachable', describeFault(error, UPSTREAM_SETTINGS), hasJustConnected);
}

function toFailure(
  kind: FailureKind,
  { words, advice, cause, proxyStatus, permanence }: Fault,
  hasJustConnected = false,
): UpstreamFailure {
  const detail = `the upstream ${words}`;
  const permanent = permanence === 'certain' || (permanence === 'likely' && !hasJustConnected);
  return { kind, detail, advice, proxyStatus, cause, permanent };
}

/**
 * The attempt broke after its request had begun on a connection.
 * @param hasHead whether the response's head had come. Default true
 */
export function classifyExchangeError(error: unknown, hasHead = true): UpstreamFailure {
  if (error instanceof HeaderOverflow) return headerOverflowFailure(error);
  const fault = describeFault(error, UPSTREAM_SETTINGS);
  // In TLS 1.3 the server judges the client's certificate when the client's handshake is over.
  if (fault.cause === 'client_certificate') return toFailure('unreachable', fault);
  const code = errorCodeOf(error);
  const message = messageOf(error);
  // The parser reports a connection that ends within its last response. Undici reports a head with contradictory lengths
  // by the same code as a body that is cut short.
  const isMismatch = code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH';
  if (isMismatch && !hasHead) return parsingFailure('contradictory lengths');
  const isCutShort = isMismatch || message.includes('Invalid EOF state');
  const isParserError = /^HPE_|^HTTPParserError$/.test(code);
  if (fault.cause === 'protocol' && !isCutShort && (isParserError || !hasHead)) return toFailure('protocol', fault);
  if (/^bad (?:response|upgrade)$/.test(message) || /^ERR_(?:HTTP_|INVALID_|ASSERTION$)/.test(code))
    return parsingFailure(code);
  const failure = toFailure('reset', describeFault(error, UPSTREAM_SETTINGS, 'RESET_AFTER_SENT'));
  return hasHead ? { ...failure, cause: 'response_cut', advice: undefined } : failure;
}

export function timeoutFailure(afterMs: number): UpstreamFailure {
  const limit = `${String(Math.round(afterMs))} ms: upstream.requestTimeoutMs (SIDECAR_REQUEST_TIMEOUT_MS), or requestTimeoutMs of the route`;
  const detail = `the upstream did not respond within ${limit}`;
  const cause = 'no_response_in_time';
  return { kind: 'timeout', detail, proxyStatus: 'http_response_timeout', cause, permanent: false };
}

export function headerOverflowFailure({ text, hasTooManyFields }: HeaderOverflow): UpstreamFailure {
  const setting = hasTooManyFields ? '' : ': upstream.maxHeaderBytes (SIDECAR_UPSTREAM_MAX_HEADER_BYTES)';
  const advice = `ask the operator why its header fields are so ${hasTooManyFields ? 'many' : 'large, or raise that limit'}`;
  return { ...protocolFailure(`the upstream ${text}${setting}`), advice };
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
