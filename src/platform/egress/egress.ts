/**
 * Which way leads to a destination: directly, or through a forward proxy. Loopback is always reached directly. Opening the
 * way is tunnel.ts's and connector.ts's.
 */
import { isLoopbackHost } from '../loopback.ts';
import { followTrust } from '../tls.ts';
import type { Trust } from '../tls.ts';
import { readExemption } from './no-proxy.ts';

export interface EgressOptions {
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
export interface Proxy {
  /** May hold a password: to be shown by its `host` only. */
  readonly url: URL;
  /** For an `https:` proxy. */
  readonly trust: Trust | undefined;
}

/** The proxy for a destination; undefined = directly. */
export type Egress = (destination: URL) => Proxy | undefined;

/** Without a proxy. */
export const goDirectly: Egress = () => undefined;

/** @throws Error in words for people when the file of authorities cannot be used */
export function createEgress({ proxy, httpProxy, noProxy, caFile }: EgressOptions): Egress {
  if (proxy === undefined && httpProxy === undefined) return goDirectly;
  const exemptions = noProxy.map(readExemption).filter((exemption) => exemption !== undefined);
  const isSecure = [proxy, httpProxy].some((url) => url?.protocol === 'https:');
  const trust = isSecure ? followTrust(caFile) : undefined;
  return (destination) => {
    const url = destination.protocol === 'https:' ? proxy : httpProxy;
    const { host, port } = addressOf(destination);
    const isDirect = isLoopbackHost(host) || exemptions.some((covers) => covers(host, port));
    return url === undefined || isDirect ? undefined : { url, trust };
  };
}

/** Where a URL leads: the host without brackets or a dot at its end, and the port, its scheme's own where none is named. */
export function addressOf({ hostname, port, protocol }: URL): { readonly host: string; readonly port: number } {
  const host = hostname.replace(/^\[|\]$|\.$/g, '');
  return { host, port: Number(port || (protocol === 'https:' ? 443 : 80)) };
}
