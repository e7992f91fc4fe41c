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

/**
 * The condition is an error code, or a name that `identify` gives. In words and advice `{address}` and others stand for settings, `{reason}` for
 * what OpenSSL or the parser says.
 */
type FaultRow = readonly [
  cause: keyof typeof TRAITS,
  condition: RegExp,
  words: string,
  advice: string,
  traits?: Partial<Traits>,
];

const NAME_SERVER = 'check that the name server of this machine or pod is reachable (/etc/resolv.conf, network policy)';
const FIREWALL =
  'ask who runs the network whether a firewall drops connections from here, or set egress.proxy (SIDECAR_EGRESS_PROXY) if a proxy is required; ask the partner whether it accepts calls from this IP address';
const INTERFERENCE = 'ask who runs the network whether a proxy or firewall on the path interferes with TLS';
const CUT_ON_THE_WAY = 'ask the operator whether it accepts this IP address; a firewall may cut connections, too';
const CERTIFICATE =
  'set {certificate} to the certificate that you were given, or ask the operator which one it accepts';
const STRICT_HTTP =
  'ask the operator to correct its responses: some clients accept them, and others read two responses';
const HTTP2_ONLY = 'speaks only HTTP/2, which is not supported';
const HTTP1_NEEDED = 'ask the operator for HTTP/1.1, or put a gateway in between that accepts HTTP/1.1';
const INVALID_HTTP = 'sent a response that is not valid HTTP';

/** The first that fits. TLS alerts are known by their names (RFC 8446 §6.2): what stands before these differs between versions of OpenSSL. */
const FAULTS: readonly FaultRow[] = [
  [
    'connection_refused',
    /^ECONNREFUSED$/,
    'refused the connection',
    'nothing listens there: check host and port in {address}, and that the service runs',
  ],
  [
    'dns',
    /^ENOTFOUND$/,
    'has a host name that cannot be resolved',
    "check the name in {address}; a name that only the partner's network knows needs its name server",
  ],
  ['dns', /^EAI_AGAIN$/, 'has a host name that cannot be resolved now', NAME_SERVER],
  [
    'dns',
    /^LOOKUP_TIMEOUT$/,
    'cannot be reached: its name was not resolved {within}',
    NAME_SERVER,
    { proxyStatus: 'dns_timeout' },
  ],
  ['connect_timeout', /^CONNECT_TIMEOUT$/, 'cannot be reached: no connection was opened {within}', FIREWALL],
  [
    'connect_timeout',
    /^HANDSHAKE_TIMEOUT$/,
    'cannot be reached: the TLS handshake was not complete {within}',
    INTERFERENCE,
  ],
  ['connect_timeout', /^ETIMEDOUT$/, 'could not be reached in time', FIREWALL],
  [
    'unroutable',
    /^E(?:HOST|NET)UNREACH$/,
    'cannot be reached from this network',
    'check routes, VPN and firewall from this machine to the host in {address}',
  ],
  [
    'reset_before_sent',
    /^SILENT_HANDSHAKE_RESET$/,
    'cut the connection in the TLS handshake, before it sent a byte',
    'check the port in {address}; a firewall on the path may refuse the first message for its length, which post-quantum groups need: try X25519:P-256 for {groups}; then ask the operator whether it accepts this IP address',
  ],
  [
    'reset_before_sent',
    /^HANDSHAKE_RESET$/,
    'cut the connection in the TLS handshake',
    `check the port in {address}; ${INTERFERENCE}`,
  ],
  ['reset_before_sent', /^(?:ECONNRESET|EPIPE)$/, 'cut the connection', CUT_ON_THE_WAY],
  ['reset_before_sent', /^UND_ERR_SOCKET$/, 'closed the connection before its response was complete', CUT_ON_THE_WAY],
  [
    'reset_after_sent',
    /^RESET_AFTER_SENT$/,
    'closed the connection before its response was complete',
    'ask the partner whether these calls arrived, and whether they were carried out, before they are repeated; with http: in {address}, the server may speak TLS alone',
  ],
  [
    'certificate_expired',
    /^CERT_HAS_EXPIRED$/,
    'has a certificate that has expired',
    'ask the operator to renew it, unless the clock here is wrong',
  ],
  [
    'certificate_not_yet_valid',
    /^CERT_NOT_YET_VALID$/,
    'has a certificate that is not valid yet',
    'compare the clock here with the right time, then ask the operator',
  ],
  [
    'certificate_wrong_host',
    /^(?:ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/,
    'has a certificate for another host name{names}',
    'use a name of the certificate in {address}, or ask the operator for a certificate with this name',
  ],
  [
    'certificate_untrusted',
    /^DEPTH_ZERO_SELF_SIGNED_CERT$/,
    'has a self-signed certificate',
    'set {ca} to a file with this certificate, if the operator confirms that it is theirs',
  ],
  [
    'certificate_untrusted',
    /^(?:SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT(?:_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE)$/,
    'has a certificate of an unknown authority',
    'set {ca} to a file with the certificate of that authority, if it is private and trusted or belongs to a proxy that inspects TLS; if it is public, the server does not send its intermediate certificate: ask the operator',
  ],
  [
    'certificate_untrusted',
    /_TOO_(?:SMALL|WEAK)$|_SIGNATURE(?:_TYPE|_ALGORITHM)$/,
    'has a weak key or signature{reason}',
    'ask the operator for a certificate with a key of 2048 bits or more and a SHA-256 signature',
    { permanence: 'likely' },
  ],
  [
    'certificate_untrusted',
    /^(?:CERT_|UNABLE_TO_|ERR_TLS_CERT|CRL_|INVALID_|PATH_LENGTH_|CERTIFICATE_FAULT)/,
    'has a certificate that is not accepted{reason}',
    'check {ca}, then ask the operator',
  ],
  ['client_certificate', /_ALERT_CERTIFICATE_REQUIRED$/, 'requires a client certificate', CERTIFICATE],
  [
    'client_certificate',
    /_ALERT_(?:BAD_CERTIFICATE|CERTIFICATE_UNKNOWN|UNSUPPORTED_CERTIFICATE|DECRYPT_ERROR|ACCESS_DENIED)$/,
    'does not accept the client certificate',
    CERTIFICATE,
  ],
  ['client_certificate', /_ALERT_CERTIFICATE_EXPIRED$/, 'reports that the client certificate has expired', CERTIFICATE],
  ['client_certificate', /_ALERT_CERTIFICATE_REVOKED$/, 'reports that the client certificate is revoked', CERTIFICATE],
  ['client_certificate', /_ALERT_UNKNOWN_CA$/, 'does not know the authority of the client certificate', CERTIFICATE],
  [
    'tls',
    /_WRONG_VERSION_NUMBER$|_PACKET_LENGTH_TOO_LONG$|_HTTP_REQUEST$|_RECORD_LAYER_FAILURE$/,
    'does not speak TLS on this port, perhaps plain HTTP',
    'check scheme and port in {address}: https: needs a server with TLS',
  ],
  [
    'tls',
    /_UNSUPPORTED_PROTOCOL$|_PROTOCOL_VERSION$/,
    'offers no TLS version from 1.2 on',
    'ask the operator for TLS 1.2 or 1.3: older versions are not used',
  ],
  [
    'tls',
    /_ALERT_HANDSHAKE_FAILURE$/,
    'ended the TLS handshake',
    'set {certificate} if it requires a client certificate; otherwise ask the operator which ciphers and groups it offers',
  ],
  ['tls', /_UNRECOGNIZED_NAME$/, 'does not know this host name', 'check the name in {address}'],
  ['protocol', /_ALERT_NO_APPLICATION_PROTOCOL$/, HTTP2_ONLY, HTTP1_NEEDED, { proxyStatus: 'tls_protocol_error' }],
  [
    'tls',
    /^EPROTO$|^ERR_(?:SSL|TLS)_/,
    'did not complete the TLS handshake{reason}',
    `check scheme and port in {address}, and ask the operator; ${INTERFERENCE}`,
    { permanence: undefined },
  ],
  ['protocol', /^HTTP2_FRAMES$/, HTTP2_ONLY, HTTP1_NEEDED],
  [
    'protocol',
    /^TLS_INSTEAD_OF_HTTP$/,
    'speaks TLS on this port, not plain HTTP',
    'check scheme and port in {address}: use https: for a server with TLS',
  ],
  ['protocol', /^NO_HTTP$/, 'does not speak HTTP', 'check host and port in {address}'],
  ['protocol', /^FOLDED_FIELD$/, `${INVALID_HTTP}: a header field is folded over two lines`, STRICT_HTTP],
  ['protocol', /^BLANK_BEFORE_COLON$/, `${INVALID_HTTP}: a header field has a blank before its colon`, STRICT_HTTP],
  [
    'protocol',
    /^CONTRADICTORY_LENGTHS$/,
    `${INVALID_HTTP}: its header fields state contradictory lengths`,
    STRICT_HTTP,
  ],
  ['protocol', /^BARE_LINE_FEED$/, `${INVALID_HTTP}: a line ends with LF alone`, STRICT_HTTP],
  // `HTTPParserError` is the name of an error whose code undici leaves out.
  ['protocol', /^(?:HPE_|HTTPParserError$)/, `${INVALID_HTTP}{reason}`, 'ask the operator to correct its responses'],
];
const OTHER: FaultRow = ['other', /^/, 'cannot be reached', 'check host and port in {address}, then ask the operator'];

/** @param error of a connector, of undici, node:http or TLS @param condition Default: what the error says */
export function describeFault(error: unknown, settings: FaultSettings, condition = identify(error)): Fault {
  if (error instanceof ProxyFault) return error.fault;
  const [cause, , clause, help, traits] = FAULTS.find(([, pattern]) => pattern.test(condition)) ?? OTHER;
  const reason = readLibraryReason(error);
  const { limitMs = 0, addresses = '' } = error instanceof ConnectFault ? error : {};
  const words = fill(clause, {
    names: listCertificateNames(error),
    reason: reason === undefined ? '' : `: ${reason}`,
    within: `within ${String(limitMs)} ms${settings.limit === undefined ? '' : `: ${settings.limit}`}`,
  });
  const code = limitMs === 0 ? ` (${errorCodeOf(error)})` : '';
  const advice = fill(help, { ...settings }) ?? fill(OTHER[3], { ...settings }) ?? '';
  return { cause, ...TRAITS[cause], ...traits, words: `${words ?? ''}${code}${addresses}`, advice };
}

/** What helps most often. */
export function adviseOnCause(cause: FaultCause, settings: FaultSettings): string {
  const [, , , advice] = FAULTS.find(([each]) => each === cause) ?? OTHER;
  return fill(advice, { ...settings }) ?? '';
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
  if (error instanceof HandshakeReset) return error.hasReceived ? 'HANDSHAKE_RESET' : 'SILENT_HANDSHAKE_RESET';
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
  if (/Expected HTTP\//.test(reason)) return 'NO_HTTP';
  if (/Unexpected whitespace after header value/.test(reason)) return 'FOLDED_FIELD';
  if (/(?:Duplicate|with) Content-Length|Content-Length can't/.test(reason)) return 'CONTRADICTORY_LENGTHS';
  if (/Missing expected CR/.test(reason)) return 'BARE_LINE_FEED';
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
    /:SSL routines:[^:]*:([^:]+):|HTTP\/1\.1 protocol \((.+)\)$/.exec(message)?.filter((part) => part !== undefined) ??
    [];
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
