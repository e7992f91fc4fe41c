/**
 * Describes a failed connection to the token endpoint for a person, with the error code. Never quotes the error's own
 * message: those of TLS and of the HTTP parser contain received bytes.
 */
import { describeConnectionError } from '../../platform/connection-error-texts.ts';
import { HTTP2_ONLY_TEXT, isHttp2Only } from '../../platform/http2-only.ts';
import { ProxyFault } from '../../platform/egress/proxy-fault.ts';

const CA_SETTING = 'auth.caFile (SIDECAR_AUTH_CA_FILE)';

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
  if (isHttp2Only(error)) return `${host} ${HTTP2_ONLY_TEXT}`;
  // undici's parser errors have no code of their own.
  if (error instanceof Error && error.name === 'HTTPParserError') return `${host} sent something that is not HTTP`;
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  if (code === undefined) return `${host}: the connection failed`;
  const [, alert = ''] = /^ERR_SSL_[A-Z0-9/]+_ALERT_(\w+)$/.exec(code) ?? [];
  const text = describeConnectionError(code, CA_SETTING, error) ?? TLS_ALERT_TEXTS[alert];
  return `${host} ${text ?? 'cannot be reached'} (${code})`;
}
