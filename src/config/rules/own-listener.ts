/**
 * Whether a forward proxy is the sidecar's own listener: the sidecar would call itself without end. Pure; no name is resolved.
 * A port 0 is no match: the environment and the settings are older than the port that is then taken.
 */
import { isLoopbackHost } from '../../platform/loopback.ts';
import { parseHost, parseListenAddress } from '../schema/formats/address.ts';
import { parseProxyUrl } from '../schema/formats/proxy.ts';

const WILDCARD_HOSTS = ['0.0.0.0', '::'];

/**
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
