/**
 * Describes a failed connection to the token endpoint for a person, with the error code. Never quotes the error's own
 * message: those of TLS and of the HTTP parser contain received bytes.
 */
import { ProxyFault } from '../../platform/egress/proxy-fault.ts';

const FAULT_TEXTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused the connection',
  ECONNRESET: 'cut the connection',
  EPIPE: 'cut the connection',
  UND_ERR_SOCKET: 'closed the connection before its response was complete',
  ENOTFOUND: 'is a host name that cannot be resolved',
  EAI_AGAIN: 'is a host name that cannot be resolved now',
  ETIMEDOUT: 'could not be reached in time',
  UND_ERR_CONNECT_TIMEOUT: 'could not be reached in time',
  EHOSTUNREACH: 'cannot be reached from this network',
  ENETUNREACH: 'cannot be reached from this network',
  CERT_HAS_EXPIRED: 'has a certificate that has expired',
  CERT_NOT_YET_VALID: 'has a certificate that is not valid yet: is the clock right?',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'has a self-signed certificate: set auth.caFile if it is to be trusted',
  SELF_SIGNED_CERT_IN_CHAIN: 'has a certificate of an unknown authority: set auth.caFile if it is to be trusted',
  UNABLE_TO_GET_ISSUER_CERT: 'has a certificate of an unknown authority: set auth.caFile if it is to be trusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    'has a certificate of an unknown authority: set auth.caFile if it is to be trusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'has a certificate of an unknown authority: set auth.caFile if it is to be trusted',
  ERR_TLS_CERT_ALTNAME_INVALID: 'has a certificate for another host name',
  ERR_SSL_WRONG_VERSION_NUMBER: 'does not speak TLS on this port',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'offers no TLS version from 1.2 on',
  UND_ERR_HEADERS_OVERFLOW: 'sent more header fields than are accepted',
};

/** TLS alerts by name (RFC 8446 §6.2): the prefix of the name differs between versions of OpenSSL. */
const TLS_ALERT_TEXTS: Readonly<Record<string, string>> = {
  CERTIFICATE_REQUIRED: 'asks for a client certificate: set auth.tlsCertificateFile',
  HANDSHAKE_FAILURE: 'ended the TLS handshake: does it ask for a client certificate?',
  BAD_CERTIFICATE: 'does not accept the client certificate in auth.tlsCertificateFile',
  CERTIFICATE_UNKNOWN: 'does not accept the client certificate in auth.tlsCertificateFile',
  DECRYPT_ERROR: 'does not accept the client certificate in auth.tlsCertificateFile',
  CERTIFICATE_EXPIRED: 'finds the client certificate in auth.tlsCertificateFile expired',
  CERTIFICATE_REVOKED: 'finds the client certificate in auth.tlsCertificateFile revoked',
  UNKNOWN_CA: 'does not know the authority of the client certificate in auth.tlsCertificateFile',
  PROTOCOL_VERSION: 'offers no TLS version from 1.2 on',
};

/**
 * One clause that begins with the host.
 * @param host name and port, no user information
 */
export function describeConnectionFault(host: string, error: unknown): string {
  if (error instanceof ProxyFault) return `${host} was not reached: ${error.message}`;
  // undici's parser errors have no code of their own.
  if (error instanceof Error && error.name === 'HTTPParserError') return `${host} sent something that is not HTTP`;
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  if (code === undefined) return `${host}: the connection failed`;
  const [, alert = ''] = /^ERR_SSL_[A-Z0-9/]+_ALERT_(\w+)$/.exec(code) ?? [];
  return `${host} ${FAULT_TEXTS[code] ?? TLS_ALERT_TEXTS[alert] ?? 'cannot be reached'} (${code})`;
}
