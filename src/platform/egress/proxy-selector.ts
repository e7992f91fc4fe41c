/**
 * Which way leads to a destination: directly, or through a forward proxy. Loopback is always reached directly. Opening the
 * way is tunnel.ts's and connector.ts's.
 */
import { isLoopbackHost } from '../loopback.ts';
import { createTlsContextProvider } from '../tls.ts';
import type { TlsContextProvider } from '../tls.ts';
import { parseNoProxyEntry } from './no-proxy.ts';

export interface ProxySelectorOptions {
  /** For `https:` destinations; user information in it becomes Basic credentials. */
  readonly proxy: URL | undefined;
  /** For `http:` destinations. */
  readonly httpProxy: URL | undefined;
  /** Entries as `readExemption` takes them; others cover nothing. */
  readonly noProxy: readonly string[];
  /** PEM file of the authorities to trust for an `https:` proxy; undefined = the system's roots. */
  readonly caFile: string | undefined;
}

/** A forward proxy. */
export interface ForwardProxy {
  /** May hold a password: to be shown by its `host` only. */
  readonly url: URL;
  /** For an `https:` proxy. */
  readonly tlsContext: TlsContextProvider | undefined;
}

/** The proxy for a destination; undefined = directly. */
export type ProxySelector = (destination: URL) => ForwardProxy | undefined;

/** Without a proxy. */
export const selectNoProxy: ProxySelector = () => undefined;

/** @throws Error in words for people when the file of authorities cannot be used */
export function createProxySelector({ proxy, httpProxy, noProxy, caFile }: ProxySelectorOptions): ProxySelector {
  if (proxy === undefined && httpProxy === undefined) return selectNoProxy;
  const exemptions = noProxy.map(parseNoProxyEntry).filter((exemption) => exemption !== undefined);
  const isSecure = [proxy, httpProxy].some((url) => url?.protocol === 'https:');
  const trust = isSecure ? createTlsContextProvider(caFile) : undefined;
  return (destination) => {
    const url = destination.protocol === 'https:' ? proxy : httpProxy;
    const { host, port } = getHostAndPort(destination);
    const isDirect = isLoopbackHost(host) || exemptions.some((covers) => covers(host, port));
    return url === undefined || isDirect ? undefined : { url, tlsContext: trust };
  };
}

/** Where a URL leads: the host without brackets or a dot at its end, and the port, its scheme's own where none is named. */
export function getHostAndPort({ hostname, port, protocol }: URL): { readonly host: string; readonly port: number } {
  const host = hostname.replace(/^\[|\]$|\.$/g, '');
  return { host, port: Number(port || (protocol === 'https:' ? 443 : 80)) };
}
