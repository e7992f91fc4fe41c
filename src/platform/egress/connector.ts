/**
 * Opens the connections of undici's clients to one destination, directly or through its proxy: HTTP/1.1 only, everything within one
 * time limit. Who uses them, and whether a try is worth it, is the caller's.
 */
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import type { buildConnector as undici } from 'undici';
import type { Clock } from '../clock.ts';
import type { ProxySelector, ForwardProxy } from './proxy-selector.ts';
import { getHostAndPort } from './proxy-selector.ts';
import { createProxyTimeoutFault } from './proxy-fault.ts';
import { openTunnel } from './tunnel.ts';
import { buildConnector } from '../undici.ts';

export interface EgressConnectorOptions {
  readonly destination: URL;
  readonly egress: ProxySelector;
  /** For `https:` destinations. */
  readonly secureContext: SecureContext | undefined;
  /** From the first step, a name lookup or the proxy's, to the end of the TLS handshake; milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'after'>;
  /** Ends what is being opened. */
  readonly signal?: AbortSignal;
}

/** A connector of which TLS sessions are resumed. */
export function buildEgressConnector(options: EgressConnectorOptions): undici.connector {
  const { destination, egress, secureContext, timeoutMs, signal } = options;
  const proxy = egress(destination);
  const connect = buildConnector({
    timeout: timeoutMs,
    allowH2: false,
    ...(secureContext && { secureContext }),
    rejectUnauthorized: true,
    // Undici's types leave out what it hands on to the socket.
    ...({ signal } satisfies { signal: AbortSignal | undefined }),
  });
  return proxy === undefined ? connect : buildTunnelConnector(proxy, connect, options);
}

function buildTunnelConnector(
  proxy: ForwardProxy,
  connect: undici.connector,
  { destination, timeoutMs, clock, signal: outer }: EgressConnectorOptions,
): undici.connector {
  return (terms, callback) => {
    const silence = new AbortController();
    const signal = outer === undefined ? silence.signal : AbortSignal.any([silence.signal, outer]);
    const cancelTimer = clock.after(timeoutMs, () => {
      silence.abort(createProxyTimeoutFault(proxy.url.host, timeoutMs));
    });
    let isOver = false;
    const conclude: undici.Callback = (...outcome) => {
      cancelTimer();
      if (!isOver) callback(...outcome);
      isOver = true;
    };
    const fail = (error: unknown): void => {
      // What TLS says of a tunnel that was closed under it tells nobody anything.
      conclude((signal.aborted ? signal.reason : error) as Error, null);
    };
    openTunnel(proxy, getHostAndPort(destination), signal).then((tunnel) => {
      const giveUp = (): void => {
        tunnel.destroy();
        fail(undefined);
      };
      signal.addEventListener('abort', giveUp, { once: true });
      startTlsIfHttps(connect, { ...terms, httpSocket: tunnel }, (...outcome) => {
        signal.removeEventListener('abort', giveUp);
        if (outcome[0] === null) conclude(...outcome);
        else fail(outcome[0]);
      });
    }, fail);
  };
}

/** TLS with the destination, inside the tunnel, where its scheme asks for it. */
function startTlsIfHttps(
  connect: undici.connector,
  terms: undici.Options & { readonly httpSocket: Socket },
  done: undici.Callback,
): void {
  if (terms.protocol === 'https:') connect(terms, done);
  else done(null, terms.httpSocket.setNoDelay(true));
}
