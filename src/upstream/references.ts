/**
 * Rewrites the references in `Location`, `Content-Location`, `Link` (RFC 8288) and `Refresh` (HTML, shared declarative refresh steps),
 * so that a client that follows one stays on the sidecar: a URL below the upstream's base becomes a path-absolute reference.
 * What cannot be parsed is not changed. Pure. Redirects are passed on, never followed.
 */
import { toClientPath, type ClientView } from './client-view.ts';

/** A reference that no client resolves against the sidecar's URL. `http:x`, without slashes, can be read as a relative one. */
const ABSOLUTE = /^(?:https?:\/\/|(?!https?:)[a-z][a-z\d+.-]*:)/i;
const NON_ASCII_BYTE = /[\x80-\xff]/g;

/** Rewrites a value that is one URI reference (RFC 9110 §8.7, §10.2.2). The sidecar's own query parameters are removed. */
export function rewriteReference(reference: string, view: ClientView): string {
  const [rewritten, isOwnServer] = toClientReference(reference, view);
  return view.addedQuery === undefined ? rewritten : view.addedQuery.removeFrom(rewritten, isOwnServer);
}

function toClientReference(reference: string, view: ClientView): [rewritten: string, isOwnServer: boolean] {
  // A byte that is not ASCII stands for itself; as a character, it would be encoded as two.
  const ascii = reference.replace(NON_ASCII_BYTE, encodeByte);
  const resolved = URL.parse(ascii, view.baseUrl.origin + view.requestPath);
  if (resolved === null) return [reference, true];
  // Without a scheme, the client would add the sidecar's.
  if (!isSameServer(resolved, view.baseUrl)) return [ABSOLUTE.test(reference) ? reference : resolved.href, false];
  const path = toClientPath(view, resolved.pathname);
  // On the upstream's origin, but not reachable through the sidecar: only the absolute form still points there.
  if (path === undefined) return [resolved.href, true];
  resolved.username = resolved.password = '';
  const queryAndFragment = resolved.href.slice(resolved.origin.length + resolved.pathname.length);
  // A path that begins with two slashes would be read as another host (RFC 3986 §4.2).
  return [(path.startsWith('//') ? `/.${path}` : path) + queryAndFragment, true];
}

/** The server to which a reference leads; undefined where it stays on that of `url`, or cannot be parsed. @param url absolute */
export function findOtherServer(reference: string, url: string): string | undefined {
  const resolved = URL.parse(reference.replace(NON_ASCII_BYTE, encodeByte), url);
  if (resolved === null || isSameServer(resolved, new URL(url))) return undefined;
  return resolved.host === '' ? resolved.protocol : resolved.host;
}

/** Leading white space and empty members, and a target (RFC 8288 appendix B.2). */
const LINK_TARGET = /([\t ,]*<)([^>]*)>/y;
/** With its value, which is a quoted string or ends before the next `;` or `,` (RFC 8288 appendix B.3). */
const LINK_PARAMETER = /([\t ]*;[\t ]*([^\t ;,=]*)[\t ]*)(?:(=[\t ]*)("(?:[^"\\]|\\.)*"|(?![\t "])[^;,]*))?(?!=)/y;

/** Rewrites the target of every link, and its context, the parameter `anchor`. */
export function rewriteLink(links: string, view: ClientView): string {
  let rewritten = '';
  let at = 0;
  const next = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(links);
    if (found !== null) at = pattern.lastIndex;
    return found;
  };
  for (let link = next(LINK_TARGET); link !== null; link = next(LINK_TARGET)) {
    const [, before = '', target = ''] = link;
    rewritten += `${before}${rewriteReference(target, view)}>`;
    for (let found = next(LINK_PARAMETER); found !== null; found = next(LINK_PARAMETER)) {
      const [, start = '', name = '', equals = '', value = ''] = found;
      rewritten += start + equals + (name.toLowerCase() === 'anchor' ? rewriteAnchor(value, view) : value);
    }
  }
  return rewritten + links.slice(at);
}

function rewriteAnchor(value: string, view: ClientView): string {
  const isQuoted = value.startsWith('"');
  const anchor = isQuoted ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value.replace(/[\t ]+$/, '');
  const rewritten = anchor === '' ? anchor : rewriteReference(anchor, view);
  if (rewritten === anchor) return value;
  return `"${rewritten.replace(/["\\]/g, '\\$&')}"${isQuoted ? '' : value.slice(anchor.length)}`;
}

const REFRESH_DELAY = /^[\t ]*(?:\d|\.)[\d.]*(?:[\t ]*[;,]|[\t ])[\t ]*(?:url[\t ]*=[\t ]*)?/i;

/** Rewrites the URL of a `Refresh`, as browsers find it. */
export function rewriteRefresh(refresh: string, view: ClientView): string {
  const start = REFRESH_DELAY.exec(refresh)?.[0];
  if (start === undefined || start.length === refresh.length) return refresh;
  const rest = refresh.slice(start.length);
  const quote = /^['"]/.exec(rest)?.[0] ?? '';
  const closesAt = quote === '' ? -1 : rest.indexOf(quote, 1);
  const end = closesAt === -1 ? rest.length : closesAt;
  const rewritten = rewriteReference(rest.slice(quote.length, end), view);
  const safe = quote === '' ? rewritten : rewritten.replaceAll(quote, encodeByte);
  return start + quote + safe + rest.slice(end);
}

/**
 * The other of http and https counts as the same server, at its default port or at the same one: behind a TLS terminator many servers name the
 * scheme in which they were reached.
 */
function isSameServer(url: URL, base: URL): boolean {
  if (url.origin === base.origin) return true;
  if (url.hostname !== base.hostname || defaultPort(url) === undefined) return false;
  return url.port === base.port || effectivePort(url) === effectivePort(base);
}

function effectivePort(url: URL): string | undefined {
  return url.port === '' ? defaultPort(url) : url.port;
}

function defaultPort({ protocol }: URL): string | undefined {
  return protocol === 'https:' ? '443' : protocol === 'http:' ? '80' : undefined;
}

function encodeByte(byte: string): string {
  return `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}
