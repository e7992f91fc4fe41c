/**
 * Parses entries of NO_PROXY, which name the destinations that are reached without a proxy. Names are compared and never resolved: a
 * network matches only destinations written as addresses.
 */
import { BlockList, isIP, isIPv4 } from 'node:net';

/** Whether an entry covers a host (lower case, without brackets) and port. */
export type NoProxyMatcher = (host: string, port: number) => boolean;

const HOST_NAME = /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/;

/**
 * Parses one entry, case-insensitively: `*`; a name, which covers itself and its subdomains; `.suffix` or `*.suffix`, which covers
 * subdomains; an address; a network (`10.0.0.0/8`). Names and addresses may have a `:port`. Undefined for other text.
 */
export function parseNoProxyEntry(entry: string): NoProxyMatcher | undefined {
  const text = entry.toLowerCase();
  if (text === '*') return () => true;
  if (text.includes('/')) return parseNetworkEntry(text);
  const [, bracketed, plain, digits] = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  // An IPv6 address without brackets has no port.
  const host = bracketed ?? plain ?? (isIP(text) === 6 ? text : undefined);
  if (host === undefined) return undefined;
  const covers =
    bracketed === undefined ? parseHostEntry(host) : isIP(host) === 6 ? parseNetworkEntry(`${host}/128`) : undefined;
  if (covers === undefined || digits === undefined) return covers;
  return (requested, port) => port === Number(digits) && covers(requested, port);
}

function parseHostEntry(text: string): NoProxyMatcher | undefined {
  const version = isIP(text);
  if (version !== 0) return parseNetworkEntry(`${text}/${version === 4 ? '32' : '128'}`);
  const [, dot, name = ''] = /^(\*?\.)?(.*?)\.?$/.exec(text) ?? [];
  // Digits and dots alone are an IPv4 address or invalid, never a name.
  if (!HOST_NAME.test(name) || /^[0-9.]+$/.test(name)) return undefined;
  const suffix = `.${name}`;
  return dot === undefined ? (host) => host === name || host.endsWith(suffix) : (host) => host.endsWith(suffix);
}

function parseNetworkEntry(text: string): NoProxyMatcher | undefined {
  const [, address = '', digits] = /^([0-9a-f:.]+)\/(\d{1,3})$/.exec(text) ?? [];
  const version = isIP(address);
  const prefix = Number(digits);
  if (version === 0 || prefix > (version === 4 ? 32 : 128)) return undefined;
  const network = new BlockList();
  network.addSubnet(address, prefix, version === 4 ? 'ipv4' : 'ipv6');
  return (host) => isIP(host) !== 0 && network.check(host, isIPv4(host) ? 'ipv4' : 'ipv6');
}
