/**
 * Opens a tunnel to a destination through a forward proxy (CONNECT, RFC 9110 §9.3.6), with Basic credentials if the proxy's URL has
 * them. TLS to the destination inside the tunnel is the caller's.
 */
import type { ClientRequest, IncomingMessage } from 'node:http';
import { request as sendRequest } from '../http.ts';
import { isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { formatAuthority, openConnection } from '../open-connection.ts';
import { getHostAndPort, type EgressProxy } from './proxy-selector.ts';
import { ProxyFault } from '../connection-faults.ts';
import { createProxyConnectionFault, createProxyRejectionFault } from './proxy-fault.ts';

/** The signal aborts the attempt, not the open tunnel. @throws ProxyFault; the signal's reason */
export async function openTunnel(
  proxy: EgressProxy,
  destination: ReturnType<typeof getHostAndPort>,
  signal: AbortSignal,
): Promise<Socket> {
  const { url } = proxy;
  const authority = formatAuthority(destination.host, destination.port);
  const fail = (error: unknown): never => {
    throw signal.aborted ? (signal.reason as Error) : createProxyConnectionFault(url.host, error);
  };
  const connection = await openConnection({ ...getHostAndPort(url), signal }).catch(fail);
  const request = sendRequest({
    method: 'CONNECT',
    path: authority,
    headers: buildConnectHeaders(url, authority),
    createConnection: () => secureIfHttps(proxy, connection),
    insecureHTTPParser: false,
    signal,
  });
  // Node.js sends `Connection: close`, and some proxies then close the tunnel.
  request.removeHeader('connection');
  const explain = ({ statusCode = 0, headers }: IncomingMessage): ProxyFault =>
    createProxyRejectionFault(url.host, authority, statusCode, {
      challenge: [headers['proxy-authenticate'] ?? []].flat().join(', '),
      hasCredentials: url.username !== '' || url.password !== '',
    });
  const tunnel = sendConnect(request, explain);
  return tunnel.catch((error: unknown) => (error instanceof ProxyFault ? Promise.reject(error) : fail(error)));
}

function sendConnect(request: ClientRequest, explain: (response: IncomingMessage) => ProxyFault): Promise<Socket> {
  return new Promise((resolve, reject) => {
    request.once('error', reject);
    request.once('connect', (response, socket, head: Buffer) => {
      const { statusCode = 0 } = response;
      if (statusCode < 200 || statusCode >= 300) {
        socket.destroy();
        reject(explain(response));
        return;
      }
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    // Node.js reports a valid response to CONNECT through the event above.
    request.once('response', (response) => {
      response.destroy();
      reject(explain(response));
    });
    request.end();
  });
}

function secureIfHttps({ url, tlsContext }: EgressProxy, connection: Socket): Socket {
  if (tlsContext === undefined || url.protocol !== 'https:') return connection;
  const { host } = getHostAndPort(url);
  const servername = isIP(host) === 0 ? host : '';
  return connectTls({ socket: connection, host, servername, secureContext: tlsContext(), rejectUnauthorized: true });
}

function buildConnectHeaders({ username, password }: URL, authority: string): Record<string, string> {
  const headers: Record<string, string> = { host: authority };
  if (username === '' && password === '') return headers;
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { ...headers, 'proxy-authorization': `Basic ${Buffer.from(credentials, 'utf8').toString('base64')}` };
}
