/** What the error codes of connections mean, as clauses that follow a host or a service. Pure. */

const TEXTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused the connection',
  ECONNRESET: 'cut the connection',
  EPIPE: 'cut the connection',
  ENOTFOUND: 'has a host name that cannot be resolved',
  EAI_AGAIN: 'has a host name that cannot be resolved now',
  ETIMEDOUT: 'could not be reached in time',
  UND_ERR_CONNECT_TIMEOUT: 'could not be reached in time',
  UND_ERR_SOCKET: 'closed the connection before its response was complete',
  UND_ERR_HEADERS_OVERFLOW: 'sent more header fields than are accepted',
  ENOENT: 'has no socket at this path',
  EACCES: 'has a socket that this user may not use',
  EHOSTUNREACH: 'cannot be reached from this network',
  ENETUNREACH: 'cannot be reached from this network',
  CERT_HAS_EXPIRED: 'has a certificate that has expired: it must be renewed there, unless the clock here is wrong',
  CERT_NOT_YET_VALID: 'has a certificate that is not valid yet: is the clock here right?',
  ERR_TLS_CERT_ALTNAME_INVALID: 'has a certificate for another host name',
  ERR_SSL_WRONG_VERSION_NUMBER: 'does not speak TLS on this port',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'does not speak TLS on this port',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'offers no TLS version from 1.2 on',
};

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
 * @param caSetting the setting that trusts another authority
 * @param error may hold the certificate, whose names are shown if the host's is not among them. Default: none
 */
export function describeConnectionError(code: string, caSetting: string, error?: unknown): string | undefined {
  const untrusted = UNTRUSTED[code];
  const names = code === 'ERR_TLS_CERT_ALTNAME_INVALID' ? listCertificateNames(error) : '';
  if (names !== '') return `has a certificate for another host name: it is for ${names}`;
  return untrusted === undefined ? TEXTS[code] : `${untrusted}: set ${caSetting} if it is to be trusted`;
}

/** The subject alternative names; a server may send any text in them. */
function listCertificateNames(error: unknown): string {
  const certificate = error instanceof Error && 'cert' in error ? error.cert : undefined;
  if (typeof certificate !== 'object' || certificate === null || !('subjectaltname' in certificate)) return '';
  const names = String(certificate.subjectaltname).replaceAll(/\b(?:DNS|IP Address):/g, '');
  return names.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, MAX_NAMES_CHARS);
}
