/**
 * Finds the route of a request that names the upstream itself, by a URL in absolute-form (`listen.forwardProxy`). Pure.
 * The upstream sees the path of that URL. A path that could be read as one below another base URL has no route: no reading may decide
 * which credential is sent.
 */
import { SidecarError } from '../platform/errors.ts';
import { joinTarget, withoutTrailingSlash } from '../upstream/request-target.ts';
import { matchBaseUrl, type UpstreamTarget } from './absolute-form.ts';
import { createRouteTable, type RoutePath, type RouteTable } from './route-table.ts';

/** What is read of a route. */
export interface ProxiedRoute extends RoutePath {
  readonly parts: { readonly baseUrl: URL };
}

interface ProxiedRouteMatch<R> {
  readonly route: R;
  /** What a client that calls the sidecar itself would send. */
  readonly target: string;
}

/** @returns the error that rejects a path without a route */
export function findProxiedRoute<R extends ProxiedRoute>(
  table: RouteTable<R>,
  { host, port, path }: UpstreamTarget,
): ProxiedRouteMatch<R> | SidecarError {
  const joined = joinTarget('/', path);
  if (joined instanceof SidecarError) return joined;
  const named = table.routes.map((route) => ({
    route,
    match: matchBaseUrl(route.parts.baseUrl, { host, port }),
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
      .map(({ route }) => matchBelow(table, route, path));
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

function getBasePath({ parts }: ProxiedRoute): string {
  return withoutTrailingSlash(parts.baseUrl.pathname);
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
): ProxiedRouteMatch<R> | 'ambiguous' | undefined {
  const prefix = route.stripPrefix && route.pathPrefix !== '/' ? route.pathPrefix : '';
  const below = prefix + path.slice(getBasePath(route).length);
  const target = below.startsWith('/') ? below : `/${below}`;
  const match = table.match(target);
  if (match.kind === 'ambiguous') return 'ambiguous';
  return match.kind === 'matched' && match.route === route ? { route, target } : undefined;
}
