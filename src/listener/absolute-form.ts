/**
 * Request targets in absolute-form (RFC 9112 §3.2.2), as clients send them to a proxy: whether they name this listener or the server of
 * a route's base URL, and the route of the latter (`listen.forwardProxy`). Pure. The guard checks the rest of the request.
 */
import { SidecarError } from '../platform/errors.ts';
import { parseHostPort, type HostPort } from '../platform/host-header.ts';
import { quoteForMessage } from '../platform/truncate.ts';
import { joinTarget, withoutTrailingSlash } from '../upstream/request-target.ts';
import { createRouteTable, type RoutePath, type RouteTable } from './route-table.ts';

export type AbsoluteTarget =
  /** This listener. Path and query begin with a slash. */
  { readonly kind: 'own'; readonly path: string } | UpstreamTarget;

export interface UpstreamTarget {
  readonly kind: 'upstream';
  readonly authority: Authority;
  /** As in a Host field. */
  readonly host: string;
  readonly port: number;
  /** Path and query, base path included. */
  readonly path: string;
}

interface Authority {
  readonly isSecure: boolean;
  readonly text: string;
}

export interface AbsoluteFormOptions {
  /** Undefined on a socket file, where every host is this listener. */
  readonly allowedHosts: readonly HostPort[] | undefined;
  readonly baseUrls?: readonly URL[];
  /** Whether a target may name the server of a base URL. Default false. */
  readonly forwardProxy?: boolean;
}

/**
 * @param ownPort the port that this listener has really bound
 * @returns the error that rejects a target that is invalid, or for another server
 */
export function readAbsoluteTarget(
  { allowedHosts, baseUrls = [], forwardProxy = false }: AbsoluteFormOptions,
  target: string,
  ownPort: number | undefined,
): AbsoluteTarget | SidecarError {
  const split = splitTarget(target);
  if (split instanceof SidecarError) return split;
  const { authority, path } = split;
  const parsed = parseAuthority(authority);
  if (parsed === undefined && allowedHosts === undefined) return { kind: 'own', path };
  if (parsed === undefined)
    return reject(`the request target has the invalid authority ${quoteForMessage(authority.text)}`);
  const { host, port } = parsed;
  const ownEntries = allowedHosts?.filter((entry) => entry.host === host && (entry.port ?? port) === port) ?? [];
  const namesUpstream = baseUrls.some((baseUrl) => matchBaseUrl(baseUrl, parsed) !== undefined);
  if (ownEntries.length > 0 && port === ownPort) return { kind: 'own', path };
  if (namesUpstream && forwardProxy) return { kind: 'upstream', authority, host, port, path };
  if (allowedHosts === undefined || ownEntries.some((entry) => entry.port === port)) return { kind: 'own', path };
  return createForeignTargetError(authority, namesUpstream);
}

function splitTarget(target: string): { readonly authority: Authority; readonly path: string } | SidecarError {
  const [, secure, text, rest = ''] = /^http(s?):\/\/([^/?#]*)(.*)$/is.exec(target) ?? [];
  if (text === undefined) return reject('the request target is neither a path nor an http: URL of an allowed host');
  // Not quoted: it may contain a password.
  if (text.includes('@')) return reject('the request target has user information: remove it');
  return { authority: { isSecure: secure !== '', text }, path: rest.startsWith('/') ? rest : `/${rest}` };
}

type HostAndPort = HostPort & { readonly port: number };

function parseAuthority({ isSecure, text }: Authority): HostAndPort | undefined {
  const parsed = parseHostPort(text);
  return parsed && { host: parsed.host, port: parsed.port ?? (isSecure ? 443 : 80) };
}

function createForeignTargetError({ text }: Authority, namesUpstream: boolean): SidecarError {
  const advice = namesUpstream
    ? 'to use the sidecar as http_proxy for it, set SIDECAR_LISTEN_FORWARD_PROXY=true (listen.forwardProxy)'
    : 'if that is a name of the sidecar, add it with its port to SIDECAR_ALLOWED_HOSTS (listen.allowedHosts)';
  const detail = `the request is for another server, ${quoteForMessage(text)}, and is not forwarded; ${advice}`;
  return new SidecarError('HOST_NOT_ALLOWED', detail);
}

/** Why a Host field contradicts the target; undefined when both name the same host and port. */
export function findHostConflict(
  { authority, host, port }: UpstreamTarget,
  hostField: string,
): SidecarError | undefined {
  const stated = parseAuthority({ ...authority, text: hostField });
  if (stated?.host === host && stated.port === port) return undefined;
  const names = `${quoteForMessage(hostField)} in Host, ${quoteForMessage(authority.text)} in the request target`;
  return reject(`the request names two hosts: ${names}`);
}

/**
 * Rejects a request of a page of another host: a browser that uses the sidecar as its proxy sends no Origin with a plain GET, and
 * Sec-Fetch-Site to secure origins only.
 */
export function checkReferer(target: string, referers: readonly string[] = []): SidecarError | undefined {
  const host = URL.parse(target)?.hostname;
  if (referers.every((referer) => URL.parse(referer, target)?.hostname === host)) return undefined;
  return new SidecarError(
    'ORIGIN_NOT_ALLOWED',
    'a request in absolute-form with a Referer of another host is not allowed: a browser must not use the sidecar as its proxy',
  );
}

/**
 * How a host and port name the server of a base URL: `exact` by its own port, `default` by a default port, as in the `http:` URL that a
 * client gives to a proxy for an `https:` one.
 */
function matchBaseUrl(
  { hostname, port: ownPort, protocol }: URL,
  { host, port }: HostAndPort,
): 'exact' | 'default' | undefined {
  if (hostname !== normalizeHost(host)) return undefined;
  if (port === Number(ownPort || (protocol === 'https:' ? 443 : 80))) return 'exact';
  return port === 80 || port === 443 ? 'default' : undefined;
}

/** In the form of URL.hostname, which shortens IPv6 addresses. */
function normalizeHost(host: string): string {
  return host.startsWith('[') ? (URL.parse(`http://${host}/`)?.hostname ?? host) : host;
}

export interface ProxiedRoute extends RoutePath {
  readonly context: { readonly baseUrl: URL };
}

interface ProxiedRouteMatch<R> {
  readonly route: R;
  /** What a client that calls the sidecar itself would send. */
  readonly target: string;
}

/**
 * Finds the route of a request that names the upstream itself. The upstream sees the path of that URL. A path that could be read as one
 * below another base URL has no route: no reading may decide which credential is sent.
 * @returns the error that rejects a path without a route
 */
export function findProxiedRoute<R extends ProxiedRoute>(
  table: RouteTable<R>,
  { host, port, path }: UpstreamTarget,
  method = 'GET',
): ProxiedRouteMatch<R> | SidecarError {
  const joined = joinTarget('/', path);
  if (joined instanceof SidecarError) return joined;
  const named = table.routes.map((route) => ({
    route,
    match: matchBaseUrl(route.context.baseUrl, { host, port }),
  }));
  const isExact = named.some(({ match }) => match === 'exact');
  const candidates = named
    .filter(({ match }) => match === (isExact ? 'exact' : 'default'))
    .map(({ route }) => ({ route, base: getBasePath(route) }));
  const bases = [...new Set(candidates.map(({ base }) => base))].toSorted((one, other) => other.length - one.length);
  const containing = bases.filter((base) => isBelow(base, path));
  if (containing.length === 0)
    return reject(`the path is not below that of the base URL, ${bases.map((base) => base || '/').join(' or ')}`);
  if (hasOtherReading(bases, path)) return reject(AMBIGUOUS_PATH);
  for (const base of containing) {
    const matches = candidates
      .filter((candidate) => candidate.base === base)
      .map(({ route }) => matchBelow(table, route, path, method));
    const [found, ...others] = matches.filter((match) => match !== undefined);
    if (matches.includes('ambiguous') || others.length > 0) return reject(AMBIGUOUS_PATH);
    if (typeof found === 'object') return found;
  }
  return reject('no route leads to this path of the upstream');
}

const AMBIGUOUS_PATH = 'the URL could belong to several routes: call the sidecar itself, by the path of one route';

function reject(detail: string): SidecarError {
  return new SidecarError('BAD_REQUEST', detail);
}

function getBasePath({ context }: ProxiedRoute): string {
  return withoutTrailingSlash(context.baseUrl.pathname);
}

function isBelow(base: string, path: string): boolean {
  return path.startsWith(base) && (path.length === base.length || '/?'.includes(path.charAt(base.length)));
}

/** Whether lenient servers could read the path as one below another of the base paths. */
function hasOtherReading(bases: readonly string[], path: string): boolean {
  if (bases.length < 2) return false;
  const asRoutes = bases.map((base) => ({ pathPrefix: base || '/', stripPrefix: false }));
  return createRouteTable(asRoutes).match(path).kind === 'ambiguous';
}

/** The route, if a client that calls the sidecar itself could reach this path of the upstream through it. */
function matchBelow<R extends ProxiedRoute>(
  table: RouteTable<R>,
  route: R,
  path: string,
  method: string,
): ProxiedRouteMatch<R> | 'ambiguous' | undefined {
  const prefix = route.stripPrefix && route.pathPrefix !== '/' ? route.pathPrefix : '';
  const below = prefix + path.slice(getBasePath(route).length);
  const target = below.startsWith('/') ? below : `/${below}`;
  const match = table.match(target, method);
  if (match.kind === 'ambiguous') return 'ambiguous';
  return match.kind === 'matched' && match.route === route ? { route, target } : undefined;
}
