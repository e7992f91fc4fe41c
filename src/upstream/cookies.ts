/**
 * Adapts `Set-Cookie` (RFC 6265 §4.1, parsed as in §5.2) to a client that reaches the sidecar over plain HTTP and under another host and path.
 * Pure. Names, values and all other attributes keep their bytes; the client's `Cookie` field is forwarded as it is.
 */
import { toClientPath, type ClientView } from './client-view.ts';
import { withoutTrailingSlash } from './request-target.ts';

interface CookieAttribute {
  /** As received, without its semicolon. */
  readonly text: string;
  /** In lower case. */
  readonly name: string;
  readonly value: string;
}

/**
 * Removes `Secure`, `SameSite=None` and the `Domain` of the upstream, and replaces the upstream's `Path` with the client's.
 * A cookie for another domain, which a client of the upstream would refuse, is not changed.
 */
export function adaptCookie(cookie: string, view: ClientView): string {
  const { cookieRoot, baseUrl } = view;
  if (cookieRoot === undefined) return cookie;
  const [pair = '', ...rest] = cookie.split(';');
  const attributes = rest.map(parseAttribute);
  // Of repeated attributes the last one counts (RFC 6265 §5.3).
  const domain = attributes.findLast(isDomain);
  if (domain !== undefined && !matchesDomain(baseUrl.hostname, domain.value)) return cookie;
  const kept = attributes.filter((attribute) => !isRemoved(attribute));
  const adapted = [pair, ...kept.map((attribute) => adaptPath(attribute, view))].join(';');
  const path = attributes.findLast(({ name }) => name === 'path');
  return path?.value.startsWith('/') === true ? adapted : adapted + describeDefaultPath(view);
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
 * A path that includes the whole route is limited to it, so that the cookies of two routes are kept apart; one that the client cannot reach is
 * not changed.
 */
function toCookiePath(path: string, view: ClientView): string {
  const root = findRoot(view);
  return toClientPath(view, isWithin(root, path) ? root : path) ?? path;
}

/**
 * A client takes a default from its own request path (RFC 6265 §5.1.4). For a request to the route's prefix itself that would be the path above
 * the prefix, which other routes share.
 */
function describeDefaultPath(view: ClientView): string {
  const path = view.requestPath.split('?', 1)[0] ?? '';
  const routePath = toClientPath(view, findRoot(view)) ?? '/';
  const defaultPath = toCookiePath(path.slice(0, path.lastIndexOf('/')) || '/', view);
  return defaultPath === routePath && routePath !== '/' ? `; Path=${routePath}` : '';
}

/** The upstream's path of the whole route. */
function findRoot({ baseUrl, cookieRoot = '' }: ClientView): string {
  return withoutTrailingSlash(baseUrl.pathname) + cookieRoot;
}

/** Whether a cookie for `cookiePath` is sent with a request for `path` (RFC 6265 §5.1.4). */
function isWithin(path: string, cookiePath: string): boolean {
  const requestPath = path || '/';
  return requestPath === cookiePath || requestPath.startsWith(withoutTrailingSlash(cookiePath) + '/');
}
