/** The errors of the listener itself: input that node:http's parser rejects (RFC 9112), limits of the port, draining. Pure. */
import { SidecarError } from '../platform/errors.ts';
import type { EventObserver } from '../telemetry/events.ts';

export interface ParserFault {
  readonly code?: string | undefined;
  /** The packet in which the parser stopped; it may begin within the request. */
  readonly rawPacket?: Uint8Array | undefined;
  /** Where it stopped in that packet. */
  readonly bytesParsed?: number | undefined;
}

/** The first two bytes of a ClientHello (RFC 8446 §5.1). */
const [TLS_HANDSHAKE, TLS_MAJOR_VERSION] = [22, 3] as const;
export const HTTP2_PREFACE = 'HPE_PAUSED_H2_UPGRADE';

export function toParserError(fault: ParserFault): SidecarError {
  const { code = '', rawPacket } = fault;
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
    default: {
      const explained = REFUSED_BYTES[code]?.(fault) ?? 'the request is not valid HTTP/1.1';
      return new SidecarError('BAD_REQUEST', `${explained} (${code})`);
    }
  }
}

/** What the parser says at a byte that HTTP does not allow at its place. The texts name no other byte: a query may hold a secret. */
const REFUSED_BYTES: Readonly<Record<string, (fault: ParserFault) => string>> = {
  HPE_INVALID_URL(fault) {
    const { byte, at } = findRefusedByte(fault);
    // No blank stands within a target that gets this error: the last one is before its first byte.
    const start = fault.rawPacket?.subarray(0, at).lastIndexOf(BLANK) ?? -1;
    const place = start < 0 ? '' : ` in position ${String(at - start)}`;
    return `the request target has ${nameByte(byte)}${place}: a URL is ASCII without blanks and control characters, percent-encode all others (RFC 3986 §2.1), as in %C3%BC for ü in UTF-8`;
  },
  HPE_INVALID_CONSTANT: () => BLANK_IN_TARGET,
  HPE_INVALID_VERSION: () => BLANK_IN_TARGET,
  HPE_INVALID_METHOD: (fault) =>
    `the request method is unknown, or is no name in ASCII that one blank follows: it has ${nameByte(findRefusedByte(fault).byte)} (RFC 9110 §9.1)`,
  HPE_INVALID_HEADER_TOKEN: (fault) =>
    `a header field has ${nameByte(findRefusedByte(fault).byte)} where none may be: names are ASCII without blanks, values have no control characters (RFC 9110 §5.1, §5.5)`,
};

const BLANK = 0x20;
const BLANK_IN_TARGET =
  'after the request target and one blank comes something else than HTTP/1.1 or HTTP/1.0: percent-encode a blank in the target, as %20';

/** The parser stops at the byte, but behind a tab, a form feed and a CR. */
function findRefusedByte({ rawPacket, bytesParsed = 0 }: ParserFault): { byte: number | undefined; at: number } {
  const before = rawPacket?.[bytesParsed - 1];
  const at = before === 0x09 || before === 0x0c || before === 0x0d ? bytesParsed - 1 : bytesParsed;
  return { byte: rawPacket?.[at], at };
}

function nameByte(byte: number | undefined): string {
  // What stands behind the refused byte, when a packet ends between the two.
  if (byte === undefined || (byte > BLANK && byte < 0x7f)) return 'a byte that is not allowed';
  return `the byte 0x${byte.toString(16).toUpperCase().padStart(2, '0')}`;
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
