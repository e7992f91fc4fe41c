/**
 * Opens connections for undici's clients to one destination, directly or through its proxy: HTTP/1.1 only, all steps within one timeout.
 * Pooling and the circuit breaker are the caller's.
 */
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import type { buildConnector as undici } from 'undici';
import type { Clock } from '../clock.ts';
import { getHostAndPort, type EgressProxy, type ProxySelector } from './proxy-selector.ts';
import { createProxyTimeoutFault } from './proxy-fault.ts';
import { openTunnel } from './tunnel.ts';
import { buildConnector } from '../undici.ts';

export interface EgressConnectorOptions {
  readonly destination: URL;
  readonly egress: ProxySelector;
  /** For `https:` destinations. */
  readonly secureContext: SecureContext | undefined;
  /** From the first name lookup to the end of the TLS handshake, milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'after'>;
  /** Aborts connections that are being opened. */
  readonly signal?: AbortSignal;
}

/** A connector that resumes TLS sessions. */
export function buildEgressConnector(options: EgressConnectorOptions): undici.connector {
  const { destination, egress, secureContext, timeoutMs, signal } = options;
  const proxy = egress(destination);
  const connect = buildConnector({
    timeout: timeoutMs,
    allowH2: false,
    ...(secureContext && { secureContext }),
    rejectUnauthorized: true,
    // Passed to the socket; missing in undici's types.
    ...({ signal } satisfies { signal: AbortSignal | undefined }),
  });
  return proxy === undefined ? connect : buildTunnelConnector(proxy, connect, options);
}

function buildTunnelConnector(
  proxy: EgressProxy,
  connect: undici.connector,
  { destination, timeoutMs, clock, signal: outer }: EgressConnectorOptions,
): undici.connector {
  return (options, callback) => {
    const timeout = new AbortController();
    const signal = outer === undefined ? timeout.signal : AbortSignal.any([timeout.signal, outer]);
    const cancelTimer = clock.after(timeoutMs, () => timeout.abort(createProxyTimeoutFault(proxy.url.host, timeoutMs)));
    let isSettled = false;
    const settle: undici.Callback = (...outcome) => {
      cancelTimer();
      if (!isSettled) callback(...outcome);
      isSettled = true;
    };
    const fail = (error: unknown): void => {
      // After an abort, the TLS error about the destroyed tunnel is not the cause.
      settle((signal.aborted ? signal.reason : error) as Error, null);
    };
    openTunnel(proxy, getHostAndPort(destination), signal).then((tunnel) => {
      const onAbort = (): void => {
        tunnel.destroy();
        fail(undefined);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      startTlsIfHttps(connect, { ...options, httpSocket: tunnel }, (...outcome) => {
        signal.removeEventListener('abort', onAbort);
        if (outcome[0] === null) settle(...outcome);
        else fail(outcome[0]);
      });
    }, fail);
  };
}

function startTlsIfHttps(
  connect: undici.connector,
  options: undici.Options & { readonly httpSocket: Socket },
  callback: undici.Callback,
): void {
  if (options.protocol === 'https:') connect(options, callback);
  else callback(null, options.httpSocket.setNoDelay(true));
}
