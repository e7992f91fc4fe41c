/** Formats of listen addresses, Host values (RFC 9110 §7.2) and web origins (RFC 6454 §6.2). No name is resolved. */
import { isIPv4, isIPv6 } from 'node:net';
import type { HostPort, ListenAddress } from '../../../platform/host-header.ts';
import { checkedText, list, type Format } from './formats.ts';

/** Longest path that a `unix:` socket address of Linux holds. */
const MAX_SOCKET_PATH_BYTES = 107;
// DNS host names have no underscores, but service names of Compose and Kubernetes may.
const HOST_NAME = /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/;
const HOST_AND_PORT = /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::([0-9]{1,5}))?$/;

/** Splits `host`, `host:port`, `[v6]` and `[v6]:port`, the host in lower case; undefined for any other text. */
export function parseHost(text: string): HostPort | undefined {
  const [, host, digits] = HOST_AND_PORT.exec(text.toLowerCase()) ?? [];
  if (host === undefined || !isHost(host)) return undefined;
  const port = digits === undefined ? undefined : Number(digits);
  if (port !== undefined && port > 65_535) return undefined;
  // Browsers and curl send IPv6 hosts in their shortest form: compare in that form.
  return { host: host.startsWith('[') ? new URL(`http://${host}`).hostname : host, port };
}

function isHost(host: string): boolean {
  if (host.startsWith('[')) return isIPv6(host.slice(1, -1));
  // Only digits and dots: an IPv4 address or a mistake, never a name.
  return /^[0-9.]+$/.test(host) ? isIPv4(host) : host.length <= 253 && HOST_NAME.test(host);
}

/** Reads `localhost:PORT`, `HOST:PORT`, `[v6]:PORT` (the result has no brackets) or `unix:/path`; undefined for any other text. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  if (text.startsWith('unix:')) {
    const path = text.slice('unix:'.length);
    const fits = /^\/\P{Cc}+$/u.test(path) && Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES;
    return fits ? { kind: 'unix', path } : undefined;
  }
  const parsed = parseHost(text);
  if (parsed?.port === undefined) return undefined;
  return { kind: 'tcp', host: parsed.host.replace(/^\[|\]$/g, ''), port: parsed.port };
}

export const listenAddress = checkedText({
  expected: `localhost:PORT, HOST:PORT, [IPv6]:PORT or unix:/path (port 0-65535, path up to ${String(MAX_SOCKET_PATH_BYTES)} bytes)`,
  check: (text) => parseListenAddress(text) !== undefined,
  pattern: String.raw`^(?:unix:/.+|.+:[0-9]{1,5})$`,
});

export function allowedHosts(minEntries: number): Format<readonly string[]> {
  return list('host[:port] (no port = any port; no wildcard)', minEntries, (entry) => parseHost(entry) !== undefined);
}

/** Web origins exactly as a browser sends them. */
export const allowedOrigins = list('an exact origin, scheme://host[:port]', 0, (entry) => {
  const [, scheme, authority] = /^([a-z][a-z0-9+.-]*):\/\/([^/]+)$/.exec(entry.toLowerCase()) ?? [];
  if (scheme === undefined || authority === undefined || parseHost(authority) === undefined) return false;
  if (scheme !== 'http' && scheme !== 'https') return true;
  const serialized = new URL(entry).origin;
  return serialized === entry.toLowerCase() || `browsers send it as ${serialized}: write that`;
});
