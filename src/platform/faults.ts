/**
 * The table of faults between here and a server: what an error means and what helps, in one wording for replies, log, verdict, page, `check`,
 * Redis, egress proxy and the collector of spans. An error's own message is not shown: those of TLS and of the HTTP parser hold received
 * bytes. Pure.
 */
import type { FaultCause } from '../telemetry/events.ts';
import {
  ConnectFault,
  errorCodeOf,
  type Fault,
  HandshakeReset,
  ProxyFault,
  readReceivedBytes,
} from './connection-faults.ts';
import type { ProxyStatusError } from './errors.ts';
import { truncate } from './truncate.ts';

/** How a reader names the settings of its connections. Where it has none for what helps, the operator is asked instead. */
export interface FaultSettings {
  readonly address: string;
  readonly ca?: string;
  readonly certificate?: string;
  readonly groups?: string;
  /** The time limit of a connection. */
  readonly limit?: string;
}

/** What follows from the cause, unless the fault says otherwise. */
type Traits = Pick<Fault, 'proxyStatus' | 'permanence'>;

const trait = (proxyStatus: ProxyStatusError, permanence?: Fault['permanence']): Traits => ({
  proxyStatus,
  permanence,
});

const TRAITS = {
  connection_refused: trait('connection_refused'),
  dns: trait('dns_error'),
  connect_timeout: trait('connection_timeout'),
  unroutable: trait('destination_ip_unroutable'),
  reset_before_sent: trait('connection_terminated'),
  reset_after_sent: trait('connection_terminated'),
  certificate_expired: trait('tls_certificate_error', 'certain'),
  certificate_not_yet_valid: trait('tls_certificate_error', 'certain'),
  certificate_wrong_host: trait('tls_certificate_error', 'certain'),
  certificate_untrusted: trait('tls_certificate_error', 'certain'),
  client_certificate: trait('tls_certificate_error', 'likely'),
  tls: trait('tls_protocol_error', 'likely'),
  protocol: trait('http_protocol_error', 'certain'),
  other: trait('destination_unavailable'),
} as const satisfies Partial<Record<FaultCause, Traits>>;

/** What helps. `{address}` and others stand for settings. */
const ADVICE = {
  address: 'check host and port in {address}, then ask the operator',
  listener: 'nothing listens there: check host and port in {address}, and that the service runs',
  name: "check the name in {address}; a name that only the partner's network knows needs its name server",
  nameServer: 'check that the name server of this machine or pod is reachable (/etc/resolv.conf, network policy)',
  firewall:
    'ask who runs the network whether a firewall drops connections from here, or set egress.proxy (SIDECAR_EGRESS_PROXY) if a proxy is required; ask the partner whether it accepts calls from this IP address',
  interference:
    'check scheme and port in {address}; ask who runs the network whether a proxy or firewall on the path interferes with TLS',
  routes: 'check routes, VPN and firewall from this machine to the host in {address}',
  firstMessage:
    'check the port in {address}; a firewall on the path may refuse the first message for its length, which post-quantum groups need: try X25519:P-256 for {groups}; then ask the operator whether it accepts this IP address',
  cut: 'ask the operator whether it accepts this IP address; a firewall may cut connections, too',
  outcome:
    'ask the partner whether these calls arrived, and whether they were carried out, before they are repeated; with http: in {address}, the server may speak TLS alone',
  expired: 'ask the operator to renew it, unless the clock here is wrong',
  clock: 'compare the clock here with the right time, then ask the operator',
  otherName:
    'correct the name in {address} if it is wrong; if it is right, ask the operator for a certificate with it: another name to fit may be another server',
  selfSigned: 'set {ca} to a file with this certificate, if the operator confirms that it is theirs',
  authority:
    'set {ca} to a file with the certificate of that authority, if it is private and trusted or belongs to a proxy that inspects TLS; if it is public, the server does not send its intermediate certificate: ask the operator',
  strength: 'ask the operator for a certificate with a key of 2048 bits or more and a SHA-256 signature',
  trust: 'check {ca}, then ask the operator',
  certificate: 'set {certificate} to the certificate that you were given, or ask the operator which one it accepts',
  certificateOrCipher:
    'set {certificate} if it requires a client certificate; otherwise ask the operator which ciphers and groups it offers',
  secureScheme: 'check scheme and port in {address}: https: needs a server with TLS',
  plainScheme: 'check scheme and port in {address}: use https: for a server with TLS',
  version: 'ask the operator for TLS 1.2 or 1.3: older versions are not used',
  http1: 'ask the operator for HTTP/1.1, or put a gateway in between that accepts HTTP/1.1',
  strictHttp: 'ask the operator to correct its responses: some clients accept them, and others read two responses',
} as const;

/** The condition is an error code, or a name that `identify` gives. In the words, `{reason}` is what OpenSSL or the parser says. */
type FaultRow = readonly [
  condition: RegExp,
  cause: keyof typeof TRAITS,
  words: string,
  advice: keyof typeof ADVICE,
  traits?: Partial<Traits>,
];

const UNKNOWN_AUTHORITY =
  /^(?:SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT(?:_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE)$/;
const OTHER_CERTIFICATE_FAULT = /^(?:CERT_|UNABLE_TO_|ERR_TLS_CERT|CRL_|INVALID_|PATH_LENGTH_|CERTIFICATE_FAULT)/;
const NOT_ACCEPTED =
  /_ALERT_(?:BAD_CERTIFICATE|CERTIFICATE_UNKNOWN|UNSUPPORTED_CERTIFICATE|DECRYPT_ERROR|ACCESS_DENIED)$/;
const OTHER_NAME = /^(?:ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/;
const WEAK = /_TOO_(?:SMALL|WEAK)$|_SIGNATURE(?:_TYPE|_ALGORITHM)$/;
const OTHER_TLS_FAULT = /^EPROTO$|^ERR_(?:SSL|TLS)_/;
const NO_TLS = /_WRONG_VERSION_NUMBER$|_PACKET_LENGTH_TOO_LONG$|_HTTP_REQUEST$|_RECORD_LAYER_FAILURE$/;
const LATE = 'cannot be reached:';
const HTTP2 = 'speaks only HTTP/2, which is not supported';
const INVALID = 'sent a response that is not valid HTTP';

/** The first row that fits is used. TLS alerts are known by their names (RFC 8446 §6.2): what stands before these differs between versions of OpenSSL. */
const FAULTS: readonly FaultRow[] = [
  [/^ECONNREFUSED$/, 'connection_refused', 'refused the connection', 'listener'],
  [/^ENOTFOUND$/, 'dns', 'has a host name that cannot be resolved', 'name'],
  [/^EAI_AGAIN$/, 'dns', 'has a host name that cannot be resolved now', 'nameServer'],
  [
    /^LOOKUP_TIMEOUT$/,
    'dns',
    `${LATE} its name was not resolved {within}`,
    'nameServer',
    { proxyStatus: 'dns_timeout' },
  ],
  [/^CONNECT_TIMEOUT$/, 'connect_timeout', `${LATE} no connection was opened {within}`, 'firewall'],
  [/^HANDSHAKE_TIMEOUT$/, 'connect_timeout', `${LATE} the TLS handshake was not complete {within}`, 'interference'],
  [/^ETIMEDOUT$/, 'connect_timeout', 'could not be reached in time', 'firewall'],
  [/^E(?:HOST|NET)UNREACH$/, 'unroutable', 'cannot be reached from this network', 'routes'],
  [
    /^SILENT_RESET$/,
    'reset_before_sent',
    'cut the connection in the TLS handshake, before it sent a byte',
    'firstMessage',
  ],
  [/^HANDSHAKE_RESET$/, 'reset_before_sent', 'cut the connection in the TLS handshake', 'interference'],
  [/^(?:ECONNRESET|EPIPE)$/, 'reset_before_sent', 'cut the connection', 'cut'],
  [/^UND_ERR_SOCKET$/, 'reset_before_sent', 'closed the connection before its response was complete', 'cut'],
  [/^RESET_AFTER_SENT$/, 'reset_after_sent', 'closed the connection before its response was complete', 'outcome'],
  [/^CERT_HAS_EXPIRED$/, 'certificate_expired', 'has a certificate that has expired', 'expired'],
  [/^CERT_NOT_YET_VALID$/, 'certificate_not_yet_valid', 'has a certificate that is not valid yet', 'clock'],
  [OTHER_NAME, 'certificate_wrong_host', 'has a certificate for another host name{names}', 'otherName'],
  [/^DEPTH_ZERO_SELF_SIGNED_CERT$/, 'certificate_untrusted', 'has a self-signed certificate', 'selfSigned'],
  [UNKNOWN_AUTHORITY, 'certificate_untrusted', 'has a certificate of an unknown authority', 'authority'],
  [WEAK, 'certificate_untrusted', 'has a weak key or signature{reason}', 'strength', { permanence: 'likely' }],
  [OTHER_CERTIFICATE_FAULT, 'certificate_untrusted', 'has a certificate that is not accepted{reason}', 'trust'],
  [/_ALERT_CERTIFICATE_REQUIRED$/, 'client_certificate', 'requires a client certificate', 'certificate'],
  [NOT_ACCEPTED, 'client_certificate', 'does not accept the client certificate', 'certificate'],
  [
    /_ALERT_CERTIFICATE_EXPIRED$/,
    'client_certificate',
    'reports that the client certificate has expired',
    'certificate',
  ],
  [
    /_ALERT_CERTIFICATE_REVOKED$/,
    'client_certificate',
    'reports that the client certificate is revoked',
    'certificate',
  ],
  [/_ALERT_UNKNOWN_CA$/, 'client_certificate', 'does not know the authority of the client certificate', 'certificate'],
  [NO_TLS, 'tls', 'does not speak TLS on this port, perhaps plain HTTP', 'secureScheme'],
  [/_UNSUPPORTED_PROTOCOL$|_PROTOCOL_VERSION$/, 'tls', 'offers no TLS version from 1.2 on', 'version'],
  [/_ALERT_HANDSHAKE_FAILURE$/, 'tls', 'ended the TLS handshake', 'certificateOrCipher'],
  [/_UNRECOGNIZED_NAME$/, 'tls', 'does not know this host name', 'name'],
  [/_ALERT_NO_APPLICATION_PROTOCOL$/, 'protocol', HTTP2, 'http1', { proxyStatus: 'tls_protocol_error' }],
  [OTHER_TLS_FAULT, 'tls', 'did not complete the TLS handshake{reason}', 'interference', { permanence: undefined }],
  [/^HTTP2_FRAMES$/, 'protocol', HTTP2, 'http1'],
  [/^TLS_INSTEAD_OF_HTTP$/, 'protocol', 'speaks TLS on this port, not plain HTTP', 'plainScheme'],
  [/^NO_HTTP$/, 'protocol', 'does not speak HTTP', 'address'],
  [/^FOLDED_FIELD$/, 'protocol', `${INVALID}: a header field is folded over two lines`, 'strictHttp'],
  [/^BLANK_BEFORE_COLON$/, 'protocol', `${INVALID}: a header field has a blank before its colon`, 'strictHttp'],
  [/^CONTRADICTORY_LENGTHS$/, 'protocol', `${INVALID}: its header fields state contradictory lengths`, 'strictHttp'],
  [/^BARE_LINE_FEED$/, 'protocol', `${INVALID}: a line ends with LF alone`, 'strictHttp'],
  // `HTTPParserError` is the name of an error whose code undici leaves out.
  [/^(?:HPE_|HTTPParserError$)/, 'protocol', `${INVALID}{reason}`, 'strictHttp'],
];
const OTHER: FaultRow = [/^/, 'other', 'cannot be reached', 'address'];

/** @param error of a connector, of undici, node:http or TLS @param condition Default: what the error says */
export function describeFault(error: unknown, settings: FaultSettings, condition = identify(error)): Fault {
  if (error instanceof ProxyFault) return error.fault;
  const [, cause, clause, help, traits] = findRow(([pattern]) => pattern.test(condition));
  const reason = readLibraryReason(error);
  const { limitMs = 0, addresses = '' } = error instanceof ConnectFault ? error : {};
  const words = fill(clause, {
    names: listCertificateNames(error),
    reason: reason === undefined ? '' : `: ${reason}`,
    within: `within ${String(limitMs)} ms${settings.limit === undefined ? '' : `: ${settings.limit}`}`,
  });
  const code = limitMs === 0 ? ` (${errorCodeOf(error)})` : '';
  const advice = advise(help, settings);
  return { cause, ...TRAITS[cause], ...traits, words: `${words ?? ''}${code}${addresses}`, advice };
}

/** What helps most often. */
export function adviseOnCause(cause: FaultCause, settings: FaultSettings): string {
  return advise(findRow(([, each]) => each === cause)[3], settings);
}

function findRow(fits: (row: FaultRow) => boolean): FaultRow {
  return FAULTS.find(fits) ?? OTHER;
}

/** Without a setting for what helps: what a reader can do without one. */
function advise(advice: keyof typeof ADVICE, settings: FaultSettings): string {
  return fill(ADVICE[advice], { ...settings }) ?? fill(ADVICE.address, { ...settings }) ?? '';
}

/** Undefined when a value is missing. */
function fill(text: string, values: Readonly<Record<string, string>>): string | undefined {
  const parts = text.split(/\{(\w+)\}/).map((part, at) => (at % 2 === 0 ? part : values[part]));
  return parts.includes(undefined) ? undefined : parts.join('');
}

/** The error code, or a name for what has none of its own. */
function identify(error: unknown): string {
  const code = errorCodeOf(error);
  if (error instanceof ConnectFault && error.limitMs !== undefined) return `${error.stage.toUpperCase()}_TIMEOUT`;
  if (error instanceof HandshakeReset) return error.hasReceived ? 'HANDSHAKE_RESET' : 'SILENT_RESET';
  // Node names by its reason alone what OpenSSL reports while it writes, or of a certificate that it has no code for.
  const reason = readLibraryReason(error)?.toUpperCase().replaceAll(/\W+/g, '_');
  if (code === 'EPROTO' && reason !== undefined) return `ERR_SSL_${reason}`;
  if (code === 'UNSPECIFIED') return `CERTIFICATE_FAULT_${reason ?? ''}`;
  return identifyInvalidHttp(error) ?? code;
}

/** The frame SETTINGS of 0 to 127 bytes, without flags, on stream 0: an HTTP/2 connection begins with it (RFC 9113 §3.4). */
const HTTP2_SETTINGS = /^\0\0[\0-\x7f]\x04\0{5}/;

/** By the reason of the parser, which holds no received bytes, and by the bytes at which it stopped. */
function identifyInvalidHttp(error: unknown): string | undefined {
  const received = readReceivedBytes(error);
  if (HTTP2_SETTINGS.test(received)) return 'HTTP2_FRAMES';
  const reason = readText(error, 'reason') ?? readText(error, 'message') ?? '';
  if (/^[\x14-\x17]\x03[\0-\x04]/.test(received)) return 'TLS_INSTEAD_OF_HTTP';
  if (reason.includes('Expected HTTP/')) return 'NO_HTTP';
  if (reason.includes('Unexpected whitespace after header value')) return 'FOLDED_FIELD';
  if (/(?:Duplicate|with) Content-Length|Content-Length can't/.test(reason)) return 'CONTRADICTORY_LENGTHS';
  if (reason.includes('Missing expected CR')) return 'BARE_LINE_FEED';
  return /Invalid header (?:token|field char)/.test(reason) && /^[\t ]*:/.test(received)
    ? 'BLANK_BEFORE_COLON'
    : undefined;
}

const MAX_REASON_CHARS = 80;

/** In the words of OpenSSL or of the HTTP parser, which hold no received bytes. Undefined for other errors. */
function readLibraryReason(error: unknown): string | undefined {
  const code = errorCodeOf(error);
  const message = readText(error, 'message') ?? '';
  const [, quoted = readText(error, 'reason')] =
    /:SSL routines:[^:]*:([^:]+):|HTTP\/1\.1 protocol \((.+)\)$/.exec(message)?.filter(Boolean) ?? [];
  const reason = code === 'UNSPECIFIED' ? message : quoted;
  if (reason === undefined || !/^(?:UNSPECIFIED$|EPROTO$|ERR_SSL_|HPE_|HTTPParserError$)/.test(code)) return undefined;
  return truncate(reason.replaceAll(/[^\x20-\x7e]/g, '?'), MAX_REASON_CHARS, '...');
}

const MAX_NAMES_CHARS = 200;

/** The subject alternative names of a certificate for another host; a server may send any text in them. */
function listCertificateNames(error: unknown): string {
  const certificate = error instanceof Error && 'cert' in error ? error.cert : undefined;
  if (typeof certificate !== 'object' || certificate === null || !('subjectaltname' in certificate)) return '';
  const names = String(certificate.subjectaltname).replaceAll(/\b(?:DNS|IP Address):/g, '');
  return `: it is for ${truncate(names, MAX_NAMES_CHARS, '...').replaceAll(/[^\x20-\x7e]/g, '?')}`;
}

function readText(error: unknown, member: 'message' | 'reason'): string | undefined {
  const text: unknown = error instanceof Error ? Reflect.get(error, member) : undefined;
  return typeof text === 'string' ? text : undefined;
}
