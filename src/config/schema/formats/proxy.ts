/** Formats of forward proxies and of destinations without one. platform/egress chooses the proxy of a destination. */
import { parseNoProxyEntry } from '../../../platform/egress/no-proxy.ts';
import { format, type Format } from './formats.ts';
import { maskUrl } from './url.ts';

export const PROXY_OFF = 'none';

/** An http: or https: URL of a host, with optional port and credentials; without a scheme it is http:. */
export function proxyUrl(): Format<string> {
  return format({
    expected: `a proxy such as http://user:password@proxy.example.com:3128, or ${PROXY_OFF}`,
    check: (value) => {
      if (typeof value !== 'string') return false;
      if (value === PROXY_OFF) return true;
      if (/^socks/i.test(value)) return 'expected an http: or https: proxy; SOCKS is not supported';
      return parseProxyUrl(value) !== undefined;
    },
    show: maskUrl,
    schema: { type: 'string', pattern: String.raw`^[^\s\\]+$` },
  });
}

/** Undefined for `none` and for invalid text. */
export function parseProxyUrl(text: string): URL | undefined {
  const href = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  if (text === PROXY_OFF || /[\s\\\p{Cc}]/u.test(text) || !/^https?:\/\//i.test(href) || !URL.canParse(href))
    return undefined;
  const url = new URL(href);
  const isBare = url.pathname === '/' && url.search === '' && url.hash === '';
  return isBare && hasDecodableUser(url) ? url : undefined;
}

function hasDecodableUser({ username, password }: URL): boolean {
  try {
    return !decodeURIComponent(username + password).includes('\0');
  } catch {
    // A percent sign that begins no escape is ambiguous.
    return false;
  }
}

/** The fault of an entry of `egress.noProxy`; undefined when there is none. */
export function noProxyEntryFault(entry: string): string | undefined {
  return parseNoProxyEntry(entry) === undefined
    ? 'expected host[:port], .suffix, an address, a network such as 10.0.0.0/8, or *'
    : undefined;
}
