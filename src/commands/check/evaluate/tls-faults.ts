/** Describes the error codes of OpenSSL and Node for failed handshakes and untrusted certificates, with advice. Pure. */

export interface CertificateFacts {
  readonly subject: string;
  readonly issuer: string;
  /** The subject alternative names as text; empty when there are none. */
  readonly names: string;
  /** Epoch milliseconds. */
  readonly validFrom: number;
  readonly validTo: number;
}

/** Names of settings for the advice. */
export interface TlsSettingNames {
  /** The setting of the server's address. */
  readonly address: string;
  /** The setting of the trusted authorities. */
  readonly ca: string;
  /** The setting of the client certificate. */
  readonly certificate: string;
  /** The file of trusted authorities; undefined: the system's roots. */
  readonly caFile: string | undefined;
}

interface TlsFault {
  readonly detail: string;
  readonly advice: string;
}

const MAX_NAMES_LENGTH = 200;

const UNKNOWN_AUTHORITY: ReadonlySet<string> = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

interface UntrustedContext {
  readonly host: string;
  readonly names: TlsSettingNames;
  readonly wallNow: number;
}

const UNKNOWN_CERTIFICATE: CertificateFacts = {
  subject: '(none)',
  issuer: '(none)',
  names: '',
  validFrom: 0,
  validTo: 0,
};

/** Why a certificate is not trusted. @param chain the leaf first */
export function describeUntrustedCertificate(
  code: string,
  chain: readonly CertificateFacts[],
  where: UntrustedContext,
): TlsFault {
  const { host, names, wallNow } = where;
  const leaf = chain[0] ?? UNKNOWN_CERTIFICATE;
  const certificate = `the certificate ${leaf.subject} by ${leaf.issuer}`;
  if (code === 'CERT_HAS_EXPIRED') {
    const old = chain.find(({ validTo }) => validTo < wallNow) ?? leaf;
    const detail = `the certificate ${old.subject} has expired (${formatDay(old.validTo)})`;
    return {
      detail,
      advice: `if the local date ${formatDay(wallNow)} is right, ask the operator of ${host} to renew it`,
    };
  }
  if (code === 'CERT_NOT_YET_VALID') {
    const detail = `${certificate} is valid only from ${formatDay(leaf.validFrom)} on`;
    return { detail, advice: `check the local clock: ${formatDay(wallNow)}` };
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID' || code === 'HOSTNAME_MISMATCH') {
    const valid = leaf.names === '' ? `its subject ${leaf.subject} only` : leaf.names.slice(0, MAX_NAMES_LENGTH);
    const advice = `use one of those names in ${names.address}, or ask for a certificate that names ${host}`;
    return { detail: `the certificate is for ${valid}, not for ${host}`, advice };
  }
  if (code === 'DEPTH_ZERO_SELF_SIGNED_CERT' || UNKNOWN_AUTHORITY.has(code))
    return describeUnknownAuthority(code, certificate, chain.at(-1) ?? UNKNOWN_CERTIFICATE, names);
  return {
    detail: `${certificate} is not trusted (${code})`,
    advice: `ask the operator of ${host}, and check ${names.ca}`,
  };
}

function describeUnknownAuthority(
  code: string,
  certificate: string,
  last: CertificateFacts,
  names: TlsSettingNames,
): TlsFault {
  const trusted = names.caFile === undefined ? "the system's roots" : `the authorities in ${names.caFile}`;
  if (code === 'DEPTH_ZERO_SELF_SIGNED_CERT') {
    const advice = `set ${names.ca} to a file with this certificate, if the operator of the server confirms that it is theirs`;
    return { detail: `${certificate} is self-signed and not among ${trusted}`, advice };
  }
  const missing =
    'if that is a public authority, the server does not send its intermediate certificate: tell its operator';
  const advice = `set ${names.ca} to a file with the certificate of ${last.issuer}; ${missing}`;
  const detail = `${certificate} is signed by an unknown authority: ${last.issuer} is not among ${trusted} (${code})`;
  return { detail, advice };
}

/** By the name of the alert (RFC 8446 §6.2); its prefix differs between versions of OpenSSL. */
const ALERT_TEXTS: Readonly<Record<string, string>> = {
  CERTIFICATE_REQUIRED: 'the server requires a client certificate',
  BAD_CERTIFICATE: 'the server does not accept the client certificate',
  CERTIFICATE_UNKNOWN: 'the server does not accept the client certificate',
  UNSUPPORTED_CERTIFICATE: 'the server does not accept the client certificate',
  DECRYPT_ERROR: 'the server does not accept the client certificate',
  ACCESS_DENIED: 'the server does not accept the client certificate',
  CERTIFICATE_EXPIRED: 'the server reports that the client certificate has expired',
  CERTIFICATE_REVOKED: 'the server reports that the client certificate is revoked',
  UNKNOWN_CA: 'the server does not know the authority of the client certificate',
};

/** Why a handshake failed. */
export function describeHandshakeFault(code: string, names: TlsSettingNames): TlsFault {
  const [, alert = ''] = /_ALERT_(\w+)$/.exec(code) ?? [];
  const refusal = ALERT_TEXTS[alert];
  if (refusal !== undefined) {
    const advice = `set ${names.certificate} to the certificate that you were given, or ask the operator of the server which one it accepts`;
    return { detail: `${refusal} (${code})`, advice };
  }
  if (/WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|RECORD_LAYER_FAILURE/.test(code)) {
    const advice = `check the port in ${names.address}; https: needs a server with TLS`;
    return { detail: `this port does not use TLS, perhaps plain HTTP (${code})`, advice };
  }
  if (/UNSUPPORTED_PROTOCOL|PROTOCOL_VERSION/.test(code)) {
    const advice = 'ask the operator of the server to offer TLS 1.2 or 1.3; older versions are not used';
    return { detail: `the server offers no TLS version of 1.2 or newer (${code})`, advice };
  }
  if (alert === 'HANDSHAKE_FAILURE') {
    const advice = `set ${names.certificate} if the server requires one; otherwise ask its operator which ciphers it offers`;
    return { detail: `the server ended the handshake (${code})`, advice };
  }
  if (alert === 'UNRECOGNIZED_NAME')
    return {
      detail: `the server does not know this host name (${code})`,
      advice: `check the name in ${names.address}`,
    };
  if (alert === 'NO_APPLICATION_PROTOCOL') {
    const advice = 'ask the operator of the server for HTTP/1.1, or put a gateway in between that accepts HTTP/1.1';
    return { detail: `the server speaks only HTTP/2, which is not supported (${code})`, advice };
  }
  const path = 'ask the operator of the network whether a proxy or firewall on the path interferes with TLS';
  if (code === 'ETIMEDOUT') return { detail: 'the handshake did not end in time', advice: path };
  if (/^(?:ECONNRESET|EPIPE)$/.test(code))
    return {
      detail: `the connection was cut during the handshake (${code})`,
      advice: `check the port in ${names.address}; ${path}`,
    };
  return { detail: `the handshake failed (${code})`, advice: path };
}

function formatDay(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 10);
}
