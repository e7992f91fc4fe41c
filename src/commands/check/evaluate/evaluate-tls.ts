/** Evaluates a TLS handshake: the server's certificate and its expiry, whether it refuses the client's, and why it failed. Pure. */
import type { CheckFinding } from '../step-runner.ts';

export interface CertificateFacts {
  readonly subject: string;
  readonly issuer: string;
  /** The subject alternative names as text; empty when there are none. */
  readonly names: string;
  /** Epoch milliseconds. */
  readonly validFrom: number;
  readonly validTo: number;
}

export interface TlsSettingNames {
  readonly address: string;
  readonly ca: string;
  readonly certificate: string;
  /** The file of trusted authorities; undefined: the system's roots. */
  readonly caFile: string | undefined;
}

export type TlsHandshakeResult =
  /** `code` is an error code of Node. */
  | { readonly kind: 'failed'; readonly code: string }
  | {
      readonly kind: 'secured';
      readonly protocol: string;
      readonly cipher: string;
      /** Error code of the certificate; undefined when it is trusted. */
      readonly distrust: string | undefined;
      /** The leaf first. */
      readonly chain: readonly CertificateFacts[];
      /** Code of the alert with which the server then refused the client certificate, or that there was none. */
      readonly refusal: string | undefined;
    };

export interface TlsCheckContext {
  readonly host: string;
  /** Undefined: none was offered. */
  readonly clientCertificate?: object | undefined;
  readonly names: TlsSettingNames;
  /** Epoch milliseconds. */
  readonly wallNow: number;
}

export const DAY_MS = 24 * 3_600_000;
/** With fewer days left, a certificate is a warning. */
export const EXPIRY_WARNING_DAYS = 21;

export function evaluateHandshake(handshake: TlsHandshakeResult, context: TlsCheckContext): CheckFinding {
  if (handshake.kind === 'failed') return { outcome: 'fail', ...describeHandshakeFault(handshake.code, context.names) };
  const { protocol, cipher, distrust, chain, refusal } = handshake;
  const channel = `${protocol} (${cipher})`;
  if (distrust !== undefined) {
    const leaf = chain[0] ?? UNKNOWN_CERTIFICATE;
    return { outcome: 'fail', ...describeUntrustedCertificate({ ...context, code: distrust, leaf, chain }) };
  }
  if (refusal !== undefined) {
    const { detail, advice } = describeHandshakeFault(refusal, context.names);
    return { outcome: 'fail', detail: `${channel}, then ended by the server: ${detail}`, advice };
  }
  const expiry = evaluateExpiry(chain, context.wallNow);
  const client = context.clientCertificate === undefined ? '' : ', our certificate offered';
  const detail = `${channel}, ${expiry.text}${client}`;
  return expiry.advice === undefined ? { outcome: 'ok', detail } : { outcome: 'warn', detail, advice: expiry.advice };
}

export function formatDays(days: number): string {
  return days === 1 ? '1 day' : `${days} days`;
}

function evaluateExpiry(
  chain: readonly CertificateFacts[],
  wallNow: number,
): { readonly text: string; readonly advice?: string } {
  const [leaf] = chain;
  if (leaf === undefined) return { text: 'no certificate sent' };
  const soonest = chain.reduce((one, other) => (other.validTo < one.validTo ? other : one), leaf);
  const days = Math.floor((soonest.validTo - wallNow) / DAY_MS);
  const until = formatDay(soonest.validTo);
  const whose = soonest === leaf ? '' : ` (${soonest.subject})`;
  const text = `certificate ${leaf.subject} by ${leaf.issuer}, ${formatDays(days)} left${whose} (${until})`;
  if (days >= EXPIRY_WARNING_DAYS) return { text };
  return { text, advice: 'ask the operator whether the certificate is renewed in time' };
}

type TlsFault = Pick<CheckFinding, 'detail'> & { readonly advice: string };

const MAX_NAMES_LENGTH = 200;
const UNKNOWN_CERTIFICATE: CertificateFacts = {
  subject: '(none)',
  issuer: '(none)',
  names: '',
  validFrom: 0,
  validTo: 0,
};

/** The certificate chain that is not trusted, the leaf first, and the code of Node. */
interface Distrust extends TlsCheckContext {
  readonly code: string;
  readonly leaf: CertificateFacts;
  readonly chain: readonly CertificateFacts[];
}

const describeUnknownAuthority = ({ code, leaf, chain, names }: Distrust): TlsFault => {
  const { issuer } = chain.at(-1) ?? leaf;
  return {
    detail: `${formatCertificate(leaf)} is signed by an unknown authority: ${issuer} is not among ${formatTrusted(names)} (${code})`,
    advice: `set ${names.ca} to a file with the certificate of ${issuer}; if that is a public authority, the server does not send its intermediate certificate: tell its operator`,
  };
};
const describeOtherName = ({ leaf, host, names }: Distrust): TlsFault => {
  const valid = leaf.names === '' ? `its subject ${leaf.subject} only` : leaf.names.slice(0, MAX_NAMES_LENGTH);
  return {
    detail: `the certificate is for ${valid}, not for ${host}`,
    advice: `use one of those names in ${names.address}, or ask for a certificate that names ${host}`,
  };
};

/** By the code of Node. */
const DISTRUST_FAULTS: Readonly<Record<string, (distrust: Distrust) => TlsFault>> = {
  CERT_HAS_EXPIRED: ({ leaf, chain, host, wallNow }) => {
    const old = chain.find(({ validTo }) => validTo < wallNow) ?? leaf;
    return {
      detail: `the certificate ${old.subject} has expired (${formatDay(old.validTo)})`,
      advice: `if the local date ${formatDay(wallNow)} is right, ask the operator of ${host} to renew it`,
    };
  },
  CERT_NOT_YET_VALID: ({ leaf, wallNow }) => ({
    detail: `${formatCertificate(leaf)} is valid only from ${formatDay(leaf.validFrom)} on`,
    advice: `check the local clock: ${formatDay(wallNow)}`,
  }),
  ERR_TLS_CERT_ALTNAME_INVALID: describeOtherName,
  HOSTNAME_MISMATCH: describeOtherName,
  DEPTH_ZERO_SELF_SIGNED_CERT: ({ leaf, names }) => ({
    detail: `${formatCertificate(leaf)} is self-signed and not among ${formatTrusted(names)}`,
    advice: `set ${names.ca} to a file with this certificate, if the operator of the server confirms that it is theirs`,
  }),
  SELF_SIGNED_CERT_IN_CHAIN: describeUnknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT: describeUnknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: describeUnknownAuthority,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: describeUnknownAuthority,
};

function describeUntrustedCertificate(distrust: Distrust): TlsFault {
  const { code, leaf, host, names } = distrust;
  return (
    DISTRUST_FAULTS[code]?.(distrust) ?? {
      detail: `${formatCertificate(leaf)} is not trusted (${code})`,
      advice: `ask the operator of ${host}, and check ${names.ca}`,
    }
  );
}

function formatCertificate({ subject, issuer }: CertificateFacts): string {
  return `the certificate ${subject} by ${issuer}`;
}

function formatTrusted({ caFile }: TlsSettingNames): string {
  return caFile === undefined ? "the system's roots" : `the authorities in ${caFile}`;
}

const ADVISE_ON_CERTIFICATE = ({ certificate }: TlsSettingNames): string =>
  `set ${certificate} to the certificate that you were given, or ask the operator of the server which one it accepts`;
const PATH_ADVICE = 'ask the operator of the network whether a proxy or firewall on the path interferes with TLS';

/** By the code of OpenSSL or Node. Alerts by their name (RFC 8446 §6.2), since its prefix differs between versions of OpenSSL. */
const HANDSHAKE_FAULTS: readonly (readonly [RegExp, detail: string, advise: (names: TlsSettingNames) => string])[] = [
  [/_ALERT_CERTIFICATE_REQUIRED$/, 'the server requires a client certificate', ADVISE_ON_CERTIFICATE],
  [
    /_ALERT_(?:BAD_CERTIFICATE|CERTIFICATE_UNKNOWN|UNSUPPORTED_CERTIFICATE|DECRYPT_ERROR|ACCESS_DENIED)$/,
    'the server does not accept the client certificate',
    ADVISE_ON_CERTIFICATE,
  ],
  [/_ALERT_CERTIFICATE_EXPIRED$/, 'the server reports that the client certificate has expired', ADVISE_ON_CERTIFICATE],
  [/_ALERT_CERTIFICATE_REVOKED$/, 'the server reports that the client certificate is revoked', ADVISE_ON_CERTIFICATE],
  [/_ALERT_UNKNOWN_CA$/, 'the server does not know the authority of the client certificate', ADVISE_ON_CERTIFICATE],
  [
    /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|RECORD_LAYER_FAILURE/,
    'this port does not use TLS, perhaps plain HTTP',
    ({ address }) => `check the port in ${address}; https: needs a server with TLS`,
  ],
  [
    /UNSUPPORTED_PROTOCOL|PROTOCOL_VERSION/,
    'the server offers no TLS version of 1.2 or newer',
    () => 'ask the operator of the server to offer TLS 1.2 or 1.3; older versions are not used',
  ],
  [
    /_ALERT_HANDSHAKE_FAILURE$/,
    'the server ended the handshake',
    ({ certificate }) =>
      `set ${certificate} if the server requires one; otherwise ask its operator which ciphers it offers`,
  ],
  [
    /_ALERT_UNRECOGNIZED_NAME$/,
    'the server does not know this host name',
    ({ address }) => `check the name in ${address}`,
  ],
  [
    /_ALERT_NO_APPLICATION_PROTOCOL$/,
    'the server speaks only HTTP/2, which is not supported',
    () => 'ask the operator of the server for HTTP/1.1, or put a gateway in between that accepts HTTP/1.1',
  ],
  [
    /^(?:ECONNRESET|EPIPE)$/,
    'the connection was cut during the handshake',
    ({ address }) => `check the port in ${address}; ${PATH_ADVICE}`,
  ],
];
const OTHER_FAULT = [/^/, 'the handshake failed', () => PATH_ADVICE] as const;

function describeHandshakeFault(code: string, names: TlsSettingNames): TlsFault {
  if (code === 'ETIMEDOUT') return { detail: 'the handshake did not end in time', advice: PATH_ADVICE };
  const [, detail, advise] = HANDSHAKE_FAULTS.find(([pattern]) => pattern.test(code)) ?? OTHER_FAULT;
  return { detail: `${detail} (${code})`, advice: advise(names) };
}

function formatDay(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 10);
}
