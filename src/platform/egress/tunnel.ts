/**
 * Opens a tunnel to a destination through a forward proxy (CONNECT, RFC 9110 §9.3.6), with Basic credentials if the proxy's URL has
 * them. TLS to the destination inside the tunnel is the caller's.
 */
import { request as requestPlain } from '../http.ts';
import { request as requestSecure } from 'node:https';
import { isIPv6, type Socket } from 'node:net';
import type { TlsContextProvider } from '../tls.ts';
import { getHostAndPort, type EgressProxy } from './proxy-selector.ts';
import { createProxyConnectionFault, createProxyRejectionFault } from './proxy-fault.ts';

export interface TunnelDestination {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

/** The signal aborts the attempt, not the open tunnel. @throws ProxyFault; the signal's reason */
export function openTunnel(
  { url, tlsContext }: EgressProxy,
  destination: TunnelDestination,
  signal: AbortSignal,
): Promise<Socket> {
  const authority = formatAuthority(destination);
  const { host, port } = getHostAndPort(url);
  const options = {
    ...{ method: 'CONNECT', host, port, path: authority },
    headers: buildConnectHeaders(url, authority),
    agent: false,
    insecureHTTPParser: false,
    signal,
  };
  return new Promise((resolve, reject) => {
    const request =
      tlsContext === undefined ? requestPlain(options) : requestSecure({ ...options, ...buildTlsOptions(tlsContext) });
    // Node.js sends `Connection: close`, and some proxies then close the tunnel.
    request.removeHeader('connection');
    request.once('error', (error) => {
      reject(signal.aborted ? (signal.reason as Error) : createProxyConnectionFault(url.host, error));
    });
    request.once('connect', (response, socket, head: Buffer) => {
      const status = response.statusCode ?? 0;
      if (status < 200 || status >= 300) {
        socket.destroy();
        reject(createProxyRejectionFault(url.host, authority, status));
        return;
      }
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    // Node.js reports a valid response to CONNECT through the event above.
    request.once('response', (response) => {
      response.destroy();
      reject(createProxyRejectionFault(url.host, authority, response.statusCode ?? 0));
    });
    request.end();
  });
}

/** The HTTPS client passes `secureContext` to TLS; it is missing in the types of Node.js. */
function buildTlsOptions(tlsContext: TlsContextProvider): object {
  return { secureContext: tlsContext(), rejectUnauthorized: true };
}

function buildConnectHeaders({ username, password }: URL, authority: string): Record<string, string> {
  const headers: Record<string, string> = { host: authority };
  if (username === '' && password === '') return headers;
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { ...headers, 'proxy-authorization': `Basic ${Buffer.from(credentials, 'utf8').toString('base64')}` };
}

function formatAuthority({ host, port }: TunnelDestination): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${String(port)}`;
}
