/**
 * What stands between here and a destination that is reached through a forward proxy, in words that name the proxy and never
 * its credentials. Pure.
 */
import type { ProxyStatusError } from '../errors.ts';

/** The way through the proxy did not open: not one byte has reached the destination. */
export class ProxyFault extends Error {
  override readonly name = 'ProxyFault';
  readonly proxyStatus: ProxyStatusError;
  /** True when trying again cannot help until somebody changes a setting. */
  readonly isPermanent: boolean;

  /** @param message one clause that begins with the proxy, fit for a client and a log */
  constructor(message: string, proxyStatus: ProxyStatusError, permanent: boolean) {
    super(message);
    this.proxyStatus = proxyStatus;
    this.isPermanent = permanent;
  }
}

const CONNECT_FAILURES: Readonly<Record<string, readonly [ProxyStatusError, string]>> = {
  ECONNREFUSED: ['connection_refused', 'refused the connection'],
  ECONNRESET: ['connection_terminated', 'cut the connection'],
  EPIPE: ['connection_terminated', 'cut the connection'],
  ENOTFOUND: ['dns_error', 'is a name that does not resolve'],
  EAI_AGAIN: ['dns_error', 'is a name that cannot be resolved now'],
  ETIMEDOUT: ['connection_timeout', 'could not be reached in time'],
  EHOSTUNREACH: ['destination_ip_unroutable', 'cannot be reached from this network'],
  ENETUNREACH: ['destination_ip_unroutable', 'cannot be reached from this network'],
};

const CERTIFICATE_CODE = /^(?:CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT|HOSTNAME_MISMATCH)/;

/** The connection to the proxy failed. @param proxy host and port */
export function createProxyConnectionFault(proxy: string, error: unknown): ProxyFault {
  const code = connectionErrorCode(error);
  const name = `the egress proxy ${proxy}`;
  if (CERTIFICATE_CODE.test(code)) {
    const words = `has a certificate that is not trusted (${code}); set egress.caFile if a private authority signed it`;
    return new ProxyFault(`${name} ${words}`, 'tls_certificate_error', true);
  }
  if (code.startsWith('HPE_'))
    return new ProxyFault(`${name} does not speak HTTP (${code})`, 'http_protocol_error', true);
  const [status, words] = CONNECT_FAILURES[code] ?? (['destination_unavailable', 'cannot be talked to'] as const);
  return new ProxyFault(`${name} ${words} (${code})`, status, false);
}

/** The proxy answered something other than success. @param destination host and port */
export function createProxyRefusalFault(proxy: string, destination: string, status: number): ProxyFault {
  const name = `the egress proxy ${proxy}`;
  const answer = `(${String(status)})`;
  // To a wrong password, unlike to none, tinyproxy answers as an origin would.
  if (status === 407 || status === 401) {
    const words = `does not accept the credentials ${answer}: check user and password in egress.proxy or HTTPS_PROXY`;
    return new ProxyFault(`${name} ${words}`, 'destination_unavailable', true);
  }
  if (status >= 400 && status < 500)
    return new ProxyFault(
      `${name} does not allow a connection to ${destination} ${answer}`,
      'destination_unavailable',
      true,
    );
  return new ProxyFault(`${name} could not connect to ${destination} ${answer}`, 'destination_unavailable', false);
}

/** Nothing was heard for the whole time that a connection may take to open. */
export function createProxyTimeoutFault(proxy: string, afterMs: number): ProxyFault {
  const words = `opened no connection within ${String(afterMs)} ms`;
  return new ProxyFault(`the egress proxy ${proxy} ${words}`, 'connection_timeout', false);
}

function connectionErrorCode(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'unknown';
  if ('code' in error && typeof error.code === 'string') return error.code;
  if ('errors' in error && Array.isArray(error.errors)) return connectionErrorCode(error.errors[0]);
  return 'unknown';
}
