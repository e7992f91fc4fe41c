/** Formats of URLs and paths, how two are joined, and how a URL is shown without its password. */
import { MASK, maskQueryValues } from '../../../platform/secret-redaction.ts';
import { checkedText, type Format } from './formats.ts';
import { oneOrMany } from './one-or-many.ts';

/** Masks the user information of a URL, also of an invalid one, and drops the text after `?` or `#`. */
export function maskUrl(text: string): string {
  const [, scheme = '', rest = ''] = /^([a-z][a-z0-9+.-]*:\/\/)?(.*)$/isu.exec(text) ?? [];
  // The last `@`: an unencoded password may contain `@`, `/` or `?`.
  const at = rest.lastIndexOf('@');
  const host = rest.slice(at + 1).replace(/[?#].*$/su, (tail) => `${tail.slice(0, 1)}…`);
  return at < 0 ? scheme + host : `${scheme}${MASK}@${host}`;
}

/** An absolute https: or http: URL without user information, query or fragment; paths are joined to it. */
export function baseUrl(example: string): Format<string> {
  return checkedText({
    expected: `an absolute https: URL, such as ${example}`,
    check: baseUrlFault,
    show: maskUrl,
    pattern: String.raw`^[Hh][Tt][Tt][Pp][Ss]?://[^\s\\?#]+$`,
  });
}

function baseUrlFault(text: string): boolean | string {
  // The URL parser accepts blanks, backslashes and a missing `//`, which are typing errors here.
  if (!/^https?:\/\/[^\s\\/\p{Cc}][^\s\\\p{Cc}]*$/iu.test(text) || !URL.canParse(text)) return false;
  if (/[?#]/.test(text)) return 'expected a URL without a query or fragment';
  const url = new URL(text);
  return url.username === '' && url.password === '' ? true : 'expected a URL without user information (user:password@)';
}

/** Any text without control characters, usually a URL, which may contain a password. */
export const audience = oneOrMany({
  what: 'an audience without control characters, such as https://api.example.com',
  check: (entry) => /^\P{Cc}+$/u.test(entry),
  show: maskUrl,
});

/** An absolute URI without fragment (RFC 8707 §2). */
export const resource = oneOrMany({
  what: 'an absolute URI without fragment, such as https://api.example.com/v1',
  check: (entry) => /^[\x21\x22\x24-\x7e]+$/.test(entry) && URL.canParse(entry),
  show: maskUrl,
});

/** A path that is appended to a URL, without fragment or dot segment; it may have a query (RFC 3986 §3.4). */
export const urlPath = checkedText({
  expected: 'a path such as /oauth/token or /oauth/token?grant=x, without fragment or dot segments',
  check: (path) => {
    if (!isUrlPath(path)) return false;
    // `config` prints the mask; read back from its output it would be sent.
    return path.includes(MASK) ? `has the mask ${MASK} in its query, not the value itself` : true;
  },
  show: maskQueryValues,
  pattern: String.raw`^[^\s#]+$`,
});

function isUrlPath(text: string): boolean {
  const [, path = '', query] = /^([^?]*)(?:\?(.*))?$/s.exec(text) ?? [];
  return (
    /^\/?[\w.~!$&'()*+,;=:@%-]+(?:\/[\w.~!$&'()*+,;=:@%-]+)*\/?$/.test(path) &&
    !path.split('/').some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment)) &&
    // Without an apostrophe, which the URL parser would change.
    (query === undefined || /^[\w.~!$&()*+,;=:@%/?-]+$/.test(query))
  );
}

/** Appends `path`, which may have a query, to the path of `base` with exactly one slash between them. */
export function joinUrl(base: string, path: string): URL {
  const url = new URL(base);
  const [pathname = '', ...query] = path.split('?');
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${pathname.replace(/^\/+/, '')}`;
  url.search = query.join('?');
  return url;
}
