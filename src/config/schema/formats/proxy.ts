/** Formats of forward proxies and of destinations without one. platform/egress chooses the proxy of a destination. */
import { parseNoProxyEntry } from '../../../platform/egress/no-proxy.ts';
import { isLoopbackHost } from '../../../platform/loopback.ts';
import { tryRead } from '../../../platform/try-read.ts';
import { parseHost, parseListenAddress } from './address.ts';
import { checkedText, list } from './formats.ts';
import { maskUrl } from './url.ts';

export const PROXY_OFF = 'none';

/** An http: or https: URL of a host, with optional port and credentials; without a scheme it is http:. */
export const proxyUrl = checkedText({
  expected: `a proxy such as http://user:password@proxy.example.com:3128, or ${PROXY_OFF}`,
  check: (text) => {
    if (/^socks/i.test(text)) return 'expected an http: or https: proxy; SOCKS is not supported';
    return text === PROXY_OFF || parseProxyUrl(text) !== undefined;
  },
  show: maskUrl,
  pattern: String.raw`^[^\s\\]+$`,
});

/** Undefined for `none` and for invalid text. */
export function parseProxyUrl(text: string): URL | undefined {
  const href = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  if (text === PROXY_OFF || /[\s\\\p{Cc}]/u.test(text) || !/^https?:\/\//i.test(href) || !URL.canParse(href))
    return undefined;
  const url = new URL(href);
  const isBare = url.pathname === '/' && url.search === '' && url.hash === '';
  // Undefined where a percent sign begins no escape, which is ambiguous.
  const user = tryRead(() => decodeURIComponent(url.username + url.password));
  return isBare && user?.includes('\0') === false ? url : undefined;
}

export const noProxy = list('host[:port], .suffix, address, network in CIDR notation or *', 0, (entry) =>
  parseNoProxyEntry(entry) === undefined
    ? 'expected host[:port], .suffix, an address, a network such as 10.0.0.0/8, or *'
    : true,
);

const WILDCARD_HOSTS = ['0.0.0.0', '::'];

/**
 * Whether a forward proxy is the sidecar's own listener: the sidecar would call itself without end. No name is resolved.
 * A port 0 is no match: the environment and the settings are older than the port that is then taken.
 * @param proxy as in `egress.proxy`
 * @param address as in `listen.address`
 * @param allowedHosts names of the sidecar, as in `listen.allowedHosts`
 */
export function isOwnListener(proxy: string, address: string, allowedHosts: readonly string[]): boolean {
  const url = parseProxyUrl(proxy);
  const listener = parseListenAddress(address);
  if (url === undefined || listener?.kind !== 'tcp') return false;
  if (listener.port !== Number(url.port || (url.protocol === 'https:' ? 443 : 80))) return false;
  const host = url.hostname.replace(/^\[|\]$|\.$/g, '');
  if (host === listener.host) return true;
  const isLocal = isLoopbackHost(host) || WILDCARD_HOSTS.includes(host);
  if (isLocal) return isLoopbackHost(listener.host) || WILDCARD_HOSTS.includes(listener.host);
  return allowedHosts.some((entry) => {
    const named = parseHost(entry);
    return named?.host === url.hostname && (named.port ?? listener.port) === listener.port;
  });
}
