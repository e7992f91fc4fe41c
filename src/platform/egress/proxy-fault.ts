/** The errors of connecting through a forward proxy; their messages name the proxy and never its credentials. Pure. */
import type { FaultCause } from '../../telemetry/events.ts';
import {
  CERTIFICATE_CODE,
  describeConnectionError,
  describeTriedAddresses,
  errorCodeOf,
} from '../connection-faults.ts';
import type { ProxyStatusError } from '../errors.ts';

/** The proxy opened no connection: no byte has reached the destination. */
export class ProxyFault extends Error {
  override readonly name = 'ProxyFault';
  readonly proxyStatus: ProxyStatusError;
  /** True when a retry cannot succeed before a setting is changed. */
  readonly isPermanent: boolean;
  readonly faultCause: FaultCause;

  /**
   * @param message one clause that begins with the proxy, for clients and the log
   * @param faultCause Default: the proxy itself
   */
  constructor(
    message: string,
    proxyStatus: ProxyStatusError,
    isPermanent: boolean,
    faultCause: FaultCause = 'egress_proxy',
  ) {
    super(message);
    this.faultCause = faultCause;
    this.proxyStatus = proxyStatus;
    this.isPermanent = isPermanent;
  }
}

const PROXY_STATUSES: Readonly<Record<string, ProxyStatusError>> = {
  ECONNREFUSED: 'connection_refused',
  ECONNRESET: 'connection_terminated',
  EPIPE: 'connection_terminated',
  ENOTFOUND: 'dns_error',
  EAI_AGAIN: 'dns_error',
  ETIMEDOUT: 'connection_timeout',
  EHOSTUNREACH: 'destination_ip_unroutable',
  ENETUNREACH: 'destination_ip_unroutable',
};

/** The connection to the proxy failed. @param proxy host and port */
export function createProxyConnectionFault(proxy: string, error: unknown): ProxyFault {
  const code = errorCodeOf(error);
  const name = `the egress proxy ${proxy}`;
  if (CERTIFICATE_CODE.test(code)) {
    const words = `has a certificate that is not trusted (${code}); set egress.caFile if a private authority signed it`;
    return new ProxyFault(`${name} ${words}`, 'tls_certificate_error', true);
  }
  if (code.startsWith('HPE_'))
    return new ProxyFault(`${name} does not speak HTTP (${code})`, 'http_protocol_error', true);
  const status = PROXY_STATUSES[code];
  const words = (status && describeConnectionError(code, 'egress.caFile')) ?? 'could not be used';
  const message = `${name} ${words} (${code})${describeTriedAddresses(error)}`;
  return new ProxyFault(message, status ?? 'destination_unavailable', false);
}

/** The proxy responded to CONNECT with another status than 2xx. @param destination host and port */
export function createProxyRejectionFault(proxy: string, destination: string, status: number): ProxyFault {
  const name = `the egress proxy ${proxy}`;
  const shownStatus = `(${String(status)})`;
  // tinyproxy responds with 401 to a wrong password, with 407 to a missing one.
  if (status === 407 || status === 401) {
    const words = `does not accept the credentials ${shownStatus}: check user and password in egress.proxy or HTTPS_PROXY`;
    return new ProxyFault(`${name} ${words}`, 'destination_unavailable', true);
  }
  if (status >= 400 && status < 500)
    return new ProxyFault(
      `${name} does not allow a connection to ${destination} ${shownStatus}`,
      'destination_unavailable',
      true,
    );
  const detail = `${name} could not connect to ${destination} ${shownStatus}`;
  return new ProxyFault(detail, 'destination_unavailable', false, 'beyond_egress_proxy');
}

export function createProxyTimeoutFault(proxy: string, afterMs: number): ProxyFault {
  const words = `opened no connection within ${String(afterMs)} ms`;
  return new ProxyFault(`the egress proxy ${proxy} ${words}`, 'connection_timeout', false);
}
