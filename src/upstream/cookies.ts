/**
 * Adapts `Set-Cookie` (RFC 6265 §4.1, parsed as in §5.2) to a client that reaches the sidecar over plain HTTP and under another host and path.
 * Pure. Names, values and all other attributes keep their bytes; the client's `Cookie` field is forwarded as it is.
 */
import { toClientPath, type ClientView } from './client-view.ts';
import { withoutTrailingSlash } from './request-target.ts';

interface CookieAttribute {
  /** As received, without its semicolon. */
  readonly text: string;
  readonly name: string;
  readonly value: string;
}

/**
 * Removes `Secure`, `SameSite=None` and the `Domain` of the upstream, and replaces the upstream's `Path` with the client's, within the route.
 * A cookie for another domain, which a client of the upstream would refuse, is not changed.
 */
export function adaptCookie(cookie: string, view: ClientView): string {
  const { cookieRoot, baseUrl } = view;
  if (cookieRoot === undefined) return cookie;
  const [pair = '', ...rest] = cookie.split(';');
  const attributes = rest.map(parseAttribute);
  // The last of repeated attributes counts (RFC 6265 §5.3).
  const domain = attributes.findLast(isDomain);
  if (domain !== undefined && !matchesDomain(baseUrl.hostname, domain.value)) return cookie;
  const kept = attributes.filter((attribute) => !isRemoved(attribute));
  const adapted = [pair, ...kept.map((attribute) => adaptPath(attribute, view))].join(';');
  const path = attributes.findLast(({ name }) => name === 'path');
  if (path?.value.startsWith('/') === true) return adapted;
  // A client takes a default from its own request path (RFC 6265 §5.1.4), which may be above the prefix: other routes share it.
  const root = findClientRoot(view);
  return root === '/' ? adapted : `${adapted}; Path=${root}`;
}

function parseAttribute(text: string): CookieAttribute {
  const equalsAt = text.indexOf('=');
  const name = equalsAt === -1 ? text : text.slice(0, equalsAt);
  return { text, name: trim(name).toLowerCase(), value: equalsAt === -1 ? '' : trim(text.slice(equalsAt + 1)) };
}

/** Other characters that JavaScript trims, such as byte 0xA0, belong to the value. */
function trim(text: string): string {
  return text.replace(/^[\t ]+|[\t ]+$/g, '');
}

/** An empty `Domain` is ignored (RFC 6265 §5.2.3). */
function isDomain({ name, value }: CookieAttribute): boolean {
  return name === 'domain' && value !== '';
}

function isRemoved(attribute: CookieAttribute): boolean {
  const { name, value } = attribute;
  return name === 'secure' || (name === 'samesite' && value.toLowerCase() === 'none') || isDomain(attribute);
}

/** Whether a client of the host accepts the domain (RFC 6265 §5.1.3). */
function matchesDomain(host: string, domain: string): boolean {
  const expected = domain.replace(/^\./, '').toLowerCase();
  const isIpAddress = host.startsWith('[') || /^[\d.]+$/.test(host);
  const isExact = host === expected || host === `[${expected}]` || expected === '';
  return isExact || (!isIpAddress && host.endsWith(`.${expected}`));
}

function adaptPath({ text, name, value }: CookieAttribute, view: ClientView): string {
  if (name !== 'path' || !value.startsWith('/')) return text;
  const valueAt = text.indexOf(value, text.indexOf('='));
  return text.slice(0, valueAt) + toCookiePath(value, view) + text.slice(valueAt + value.length);
}

/**
 * A path that includes the whole route, or leads out of it, becomes the route's prefix, so that the cookies of two routes are kept apart. To the
 * prefix `/` nothing can be limited: there, a path that the client cannot reach is not changed.
 */
function toCookiePath(path: string, view: ClientView): string {
  const root = findClientRoot(view);
  const found = isWithin(findRoot(view), path) ? root : toClientPath(view, path);
  if (root === '/') return found ?? path;
  return found !== undefined && isWithin(found, root) ? found : root;
}

function findClientRoot(view: ClientView): string {
  return toClientPath(view, findRoot(view)) ?? '/';
}

function findRoot({ baseUrl, cookieRoot = '' }: ClientView): string {
  return withoutTrailingSlash(baseUrl.pathname) + cookieRoot;
}

/** Whether a cookie for `cookiePath` is sent with a request for `path` (RFC 6265 §5.1.4). */
function isWithin(path: string, cookiePath: string): boolean {
  const requestPath = path || '/';
  return requestPath === cookiePath || requestPath.startsWith(withoutTrailingSlash(cookiePath) + '/');
}
