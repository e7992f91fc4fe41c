/**
 * What the errors of connections mean, as clauses that follow a host or a service. Never an error's own message: those of TLS and of the
 * HTTP parser hold received bytes. Pure.
 */
import { truncate } from './truncate.ts';

const LATE = 'could not be reached in time';

const TEXTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused the connection',
  ECONNRESET: 'cut the connection',
  EPIPE: 'cut the connection',
  ENOTFOUND: 'has a host name that cannot be resolved',
  EAI_AGAIN: 'has a host name that cannot be resolved now',
  ETIMEDOUT: LATE,
  UND_ERR_SOCKET: 'closed the connection before its response was complete',
  EHOSTUNREACH: 'cannot be reached from this network',
  ENETUNREACH: 'cannot be reached from this network',
  CERT_HAS_EXPIRED: 'has a certificate that has expired: it must be renewed there, unless the clock here is wrong',
  CERT_NOT_YET_VALID: 'has a certificate that is not valid yet: is the clock here right?',
  ERR_TLS_CERT_ALTNAME_INVALID: 'has a certificate for another host name',
  // Node names no other fault of a handshake that is not one of TLS, where it sends before it reads.
  EPROTO: 'does not speak TLS on this port, or no version that is supported',
  ERR_SSL_WRONG_VERSION_NUMBER: 'does not speak TLS on this port',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'does not speak TLS on this port',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'offers no TLS version from 1.2 on',
};

export interface TriedAddress {
  /** With its port, as in a URL. */
  readonly address: string;
  /** `connected`, `no answer` so far, or an error code. */
  outcome: string;
}

/** A missing address family gives them as well. */
export const NO_ROUTE_CODES: ReadonlySet<string> = new Set([
  'ENETUNREACH',
  'EHOSTUNREACH',
  'EADDRNOTAVAIL',
  'EAFNOSUPPORT',
]);

/** A name was not resolved in time, none of its addresses accepted a connection, or a connection was not ready in time. */
export class ConnectFault extends Error {
  override readonly name = 'ConnectFault';
  /** What came of the first address that there is a route to, or else of the first one. */
  readonly code: string;
  /** The limit that ended it; undefined when every address failed before. */
  readonly limitMs: number | undefined;
  /** How far it had come. */
  readonly stage: 'lookup' | 'connect' | 'handshake';
  /** A clause that follows a sentence: the addresses of a name with what came of each. Empty where there are none to name. */
  readonly addresses: string;

  /** @param host name or address @param limitMs Default: every address failed */
  constructor(host: string, tried: readonly TriedAddress[], limitMs?: number) {
    super('no connection was opened');
    const codes = tried.map(({ outcome }) => outcome);
    const code = codes.find((each) => !NO_ROUTE_CODES.has(each)) ?? codes[0] ?? 'ENOTFOUND';
    this.code = limitMs === undefined ? code : 'ETIMEDOUT';
    this.limitMs = limitMs;
    this.stage = codes.includes('connected') ? 'handshake' : codes.length > 0 ? 'connect' : 'lookup';
    const isName = tried.some(({ address }) => !address.includes(host));
    this.addresses = isName ? `; tried ${formatTried(tried)}` : '';
  }
}

/** The addresses with what came of each. */
export function formatTried(tried: readonly TriedAddress[]): string {
  return tried.map(({ address, outcome }) => `${address} (${outcome})`).join(', ');
}

/** The addresses that an error names; empty for an error that names none. */
export function describeTriedAddresses(error: unknown): string {
  return error instanceof ConnectFault ? error.addresses : '';
}

/** The code of a Node error, or of the first error of an AggregateError; otherwise the name of the error. */
export function errorCodeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'unknown';
  if ('code' in error && typeof error.code === 'string') return error.code;
  if ('errors' in error && Array.isArray(error.errors)) return errorCodeOf(error.errors[0]);
  return 'name' in error && typeof error.name === 'string' ? error.name : 'unknown';
}

/** Most header fields of a response: a thousand short ones would take ten times the memory of their bytes. */
export const MAX_RESPONSE_FIELDS = 500;

/** The header section of a response, or its trailer section, is larger than is accepted. */
export class HeaderOverflow extends Error {
  override readonly name = 'HeaderOverflow';
  readonly code = 'HEADER_OVERFLOW';
  readonly hasTooManyFields: boolean;
  /** A clause that follows the server. */
  readonly text: string;

  /** @param bytes of names and values, as far as they were read @param fields of these. Default: not known */
  constructor(limitBytes: number, bytes: number, fields = 0) {
    super('the header section is too large');
    this.hasTooManyFields = fields > MAX_RESPONSE_FIELDS;
    const limit = this.hasTooManyFields ? String(MAX_RESPONSE_FIELDS) : `${String(limitBytes)} bytes of`;
    const seen = `${String(bytes)} bytes${fields > 0 ? ` in ${String(fields)}` : ''} so far`;
    this.text = `sent more than ${limit} header fields (${seen})`;
  }
}

/** Codes of all errors by which a certificate is not accepted. */
export const CERTIFICATE_CODE =
  /^(?:CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT|CRL_|HOSTNAME_MISMATCH|INVALID_CA|PATH_LENGTH_EXCEEDED)/;

const SELF_SIGNED = 'has a self-signed certificate';
const UNKNOWN_AUTHORITY = 'has a certificate of an unknown authority';

const UNTRUSTED: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: SELF_SIGNED,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
};

const MAX_NAMES_CHARS = 200;

/**
 * Undefined for other codes.
 * @param caSetting the setting that trusts another authority. Default: the caller names it
 * @param error may hold the certificate, whose names are shown if the host's is not among them. Default: none
 */
export function describeConnectionError(code: string, caSetting?: string, error?: unknown): string | undefined {
  const untrusted = UNTRUSTED[code];
  const names = code === 'ERR_TLS_CERT_ALTNAME_INVALID' ? listCertificateNames(error) : '';
  if (names !== '') return `has a certificate for another host name: it is for ${names}`;
  if (untrusted === undefined || caSetting === undefined) return untrusted ?? TEXTS[code];
  return `${untrusted}: set ${caSetting} if it is to be trusted`;
}

/** The subject alternative names; a server may send any text in them. */
function listCertificateNames(error: unknown): string {
  const certificate = error instanceof Error && 'cert' in error ? error.cert : undefined;
  if (typeof certificate !== 'object' || certificate === null || !('subjectaltname' in certificate)) return '';
  const names = String(certificate.subjectaltname).replaceAll(/\b(?:DNS|IP Address):/g, '');
  return truncate(names, MAX_NAMES_CHARS, '...').replaceAll(/[^\x20-\x7e]/g, '?');
}

const NO_APPLICATION_PROTOCOL = /^ERR_SSL_[A-Z0-9/]+_ALERT_NO_APPLICATION_PROTOCOL$/;
/** A frame of 0 to 127 bytes of the type SETTINGS, without flags, on stream 0. */
const SETTINGS_FRAME = /^\0\0[\0-\x7f]\x04\0{5}/;

/** A clause that follows the server, with what can be done. */
export const HTTP2_ONLY_TEXT =
  'speaks only HTTP/2, which is not supported: ask its operator for HTTP/1.1, or put a gateway in between that accepts HTTP/1.1';

/**
 * Whether the server does not speak HTTP/1.1: it ends the TLS handshake because no offered protocol suits it (ALPN, RFC 7301 §3.2), or
 * begins with the frame of an HTTP/2 connection preface (RFC 9113 §3.4).
 * @param error of undici, node:http or TLS
 */
export function isHttp2Only(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ('code' in error && typeof error.code === 'string' && NO_APPLICATION_PROTOCOL.test(error.code)) return true;
  const received = 'data' in error ? error.data : 'rawPacket' in error ? error.rawPacket : undefined;
  if (received instanceof Uint8Array) return SETTINGS_FRAME.test(Buffer.from(received).toString('latin1'));
  return typeof received === 'string' && SETTINGS_FRAME.test(received);
}
