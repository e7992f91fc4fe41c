/** Selects the forward proxy for a destination, if it has one. Loopback is always reached directly. */
import { isLoopbackHost } from '../loopback.ts';
import { createTlsContextProvider, type TlsContextProvider } from '../tls.ts';
import { parseNoProxyEntry } from './no-proxy.ts';

export interface ProxySelectorOptions {
  /** For `https:` destinations; user information in it becomes Basic credentials. */
  readonly proxy: URL | undefined;
  /** For `http:` destinations. */
  readonly httpProxy: URL | undefined;
  /** Entries for `parseNoProxyEntry`; invalid ones are ignored. */
  readonly noProxy: readonly string[];
  /** PEM file of the authorities to trust for an `https:` proxy; undefined = the system's roots. */
  readonly caFile: string | undefined;
}

/** A forward proxy (RFC 9110 §3.7) between the sidecar and a destination. */
export interface EgressProxy {
  /** May contain a password: messages show only its `host`. */
  readonly url: URL;
  /** For an `https:` proxy. */
  readonly tlsContext: TlsContextProvider | undefined;
}

/** The proxy for a destination; undefined = a direct connection. */
export type ProxySelector = (destination: URL) => EgressProxy | undefined;

export const selectNoProxy: ProxySelector = () => undefined;

/** @throws Error with a message for the operator when `caFile` cannot be used */
export function createProxySelector({ proxy, httpProxy, noProxy, caFile }: ProxySelectorOptions): ProxySelector {
  if (proxy === undefined && httpProxy === undefined) return selectNoProxy;
  const matchers = noProxy.map(parseNoProxyEntry).filter((matcher) => matcher !== undefined);
  const isSecure = [proxy, httpProxy].some((url) => url?.protocol === 'https:');
  const tlsContext = isSecure ? createTlsContextProvider(caFile) : undefined;
  return (destination) => {
    const url = destination.protocol === 'https:' ? proxy : httpProxy;
    const { host, port } = getHostAndPort(destination);
    const isDirect = isLoopbackHost(host) || matchers.some((matches) => matches(host, port));
    return url === undefined || isDirect ? undefined : { url, tlsContext };
  };
}

/** The host of a URL without brackets or a trailing dot, and its port or the default port of its scheme. */
export function getHostAndPort({ hostname, port, protocol }: URL): { readonly host: string; readonly port: number } {
  const host = hostname.replace(/^\[|\]$|\.$/g, '');
  return { host, port: Number(port || (protocol === 'https:' ? 443 : 80)) };
}
