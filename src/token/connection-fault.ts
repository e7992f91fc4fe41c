/**
 * Puts the failure of a connection to the token endpoint into words that tell a person what to look at, with the code
 * to search for. Never the error's own message: those of TLS and the HTTP parser quote bytes received.
 */

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused the connection',
  ECONNRESET: 'cut the connection',
  EPIPE: 'cut the connection',
  UND_ERR_SOCKET: 'closed the connection before its answer was complete',
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
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'offers no TLS version from 1.2 on',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'offers no TLS version from 1.2 on',
  UND_ERR_HEADERS_OVERFLOW: 'sent more header fields than are taken',
};

/**
 * One clause that begins with the host.
 * @param host name and port, no user information
 */
export function describeConnectionFault(host: string, error: unknown): string {
  // undici's parser errors have no code of their own.
  if (error instanceof Error && error.name === 'HTTPParserError') return `${host} sent something that is not HTTP`;
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  if (code === undefined) return `${host}: the connection failed`;
  return `${host} ${WORDS[code] ?? 'cannot be talked to'} (${code})`;
}
