/**
 * Opens connections for undici's clients to one destination, directly or through its proxy: HTTP/1.1 only, all steps within one timeout.
 * Pooling and the circuit breaker are the caller's.
 */
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import type { buildConnector as undici } from 'undici';
import type { Clock } from '../clock.ts';
import { ConnectFault, errorCodeOf, HandshakeReset, type TriedAddress } from '../connection-faults.ts';
import { openConnection, type LookUpName } from '../open-connection.ts';
import { getHostAndPort, type ProxySelector } from './proxy-selector.ts';
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
  /** Gets the addresses that are tried, of a connector for one connection. Default: each connection has its own list */
  readonly tried?: TriedAddress[];
  /** As of `openConnection`. */
  readonly lookUp?: LookUpName;
}

const RESET_CODE = /^(?:ECONNRESET|EPIPE)$/;
const KEEP_ALIVE_DELAY_MS = 60_000;

/** A connector that resumes TLS sessions. */
export function buildEgressConnector(options: EgressConnectorOptions): undici.connector {
  const { secureContext, timeoutMs, clock, signal: outer } = options;
  const path = choosePath(options);
  // The time limit is ours.
  const tls = { ...(secureContext && { secureContext }), rejectUnauthorized: true };
  const connect = buildConnector({ timeout: 0, allowH2: false, ...tls });
  return (connectOptions, callback) => {
    const timeout = new AbortController();
    const signal = outer === undefined ? timeout.signal : AbortSignal.any([timeout.signal, outer]);
    const { tried = [] } = options;
    let isOpen = false;
    const cancelTimer = clock.after(timeoutMs, () => timeout.abort(path.createTimeoutFault(tried, isOpen)));
    let isSettled = false;
    const settle: undici.Callback = (...outcome) => {
      cancelTimer();
      if (!isSettled) callback(...outcome);
      isSettled = true;
    };
    const fail = (error: unknown): void => {
      // After an abort, the TLS error about the destroyed connection is not the cause.
      settle((signal.aborted ? signal.reason : error) as Error, null);
    };
    path.open(signal, tried).then((socket) => {
      isOpen = true;
      const bytesBefore = socket.bytesRead;
      const onAbort = (): void => {
        socket.destroy();
        fail(undefined);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      startTlsIfHttps(connect, { ...connectOptions, httpSocket: socket }, (...outcome) => {
        signal.removeEventListener('abort', onAbort);
        if (outcome[0] === null) settle(...outcome);
        else
          fail(
            RESET_CODE.test(errorCodeOf(outcome[0])) ? new HandshakeReset(socket.bytesRead > bytesBefore) : outcome[0],
          );
      });
    }, fail);
  };
}

function choosePath({ destination, egress, timeoutMs, clock, lookUp }: EgressConnectorOptions) {
  const proxy = egress(destination);
  const target = getHostAndPort(destination);
  if (proxy !== undefined)
    return {
      open: (signal: AbortSignal) => openTunnel(proxy, target, signal),
      createTimeoutFault: (_: readonly TriedAddress[], isOpen: boolean) =>
        isOpen
          ? new ConnectFault(target.host, [], timeoutMs, 'handshake')
          : createProxyTimeoutFault(proxy.url.host, timeoutMs),
    };
  // A trailing dot keeps the resolver from completing the name.
  const host = destination.hostname.endsWith('.') ? `${target.host}.` : target.host;
  return {
    open: (signal: AbortSignal, tried: TriedAddress[]) =>
      openConnection({ host, port: target.port, signal, clock, tried, lookUp }),
    createTimeoutFault: (tried: readonly TriedAddress[]) => new ConnectFault(host, tried, timeoutMs),
  };
}

function startTlsIfHttps(
  connect: undici.connector,
  options: undici.Options & { readonly httpSocket: Socket },
  callback: undici.Callback,
): void {
  const { protocol, httpSocket } = options;
  if (protocol === 'https:') connect(options, callback);
  // As undici sets up its own connections.
  else callback(null, httpSocket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_DELAY_MS));
}
