/**
 * Finds the route of a path: the longest prefix of whole segments, with one lookup per segment however many routes there are. Pure.
 * A path that lenient servers could read as a path of another route matches none: no reading may decide which credential is sent.
 */
import { AMBIGUOUS_CHARACTERS, listReadings } from '../platform/path-readings.ts';

export interface RoutePath {
  /** Plain segments without a slash at the end; `/` matches every path. */
  readonly pathPrefix: string;
  /** Whether the upstream sees paths without the prefix. */
  readonly stripPrefix: boolean;
  /** Default: those that no other route of the prefix lists. */
  readonly methods?: readonly string[] | undefined;
}

export type RouteMatch<R> =
  | {
      readonly kind: 'matched';
      readonly route: R;
      /** Characters at the start of the target that the upstream does not see. */
      readonly strippedLength: number;
    }
  | { readonly kind: 'none' }
  /** Different readings of the path lead to different routes. */
  | { readonly kind: 'ambiguous' };

export interface RouteTable<R> {
  readonly routes: readonly R[];
  /** @param method chooses among the routes of one prefix; one of them is found even if none serves it. Default: GET */
  readonly match: (target: string, method?: string) => RouteMatch<R>;
}

interface PrefixNode<R> {
  readonly children: Map<string, PrefixNode<R>>;
  /** No two routes serve the same method. */
  readonly routes: R[];
}

/** @param routes no two with the same prefix and method */
export function createRouteTable<R extends RoutePath>(routes: readonly R[]): RouteTable<R> {
  const root: PrefixNode<R> = { children: new Map(), routes: [] };
  for (const route of routes) {
    let node = root;
    for (const segment of route.pathPrefix.split('/').filter((part) => part !== '')) {
      const next = node.children.get(segment) ?? { children: new Map(), routes: [] };
      node.children.set(segment, next);
      node = next;
    }
    node.routes.push(route);
  }
  const rootMatch = toRouteMatch(root.routes[0], 0);
  // With a single route no reading of a path leads to another.
  const isSingle = root.children.size === 0 && routes.length === 1;
  return {
    routes,
    match: isSingle ? () => rootMatch : (target, method = 'GET') => matchPath(root, target, method),
  };
}

function matchPath<R extends RoutePath>(root: PrefixNode<R>, target: string, method: string): RouteMatch<R> {
  const path = target.split('?', 1)[0] ?? '';
  const { routes, depth } = findLongestPrefix(root, path.split('/').slice(1));
  if (AMBIGUOUS_CHARACTERS.test(path))
    for (const segments of listReadings(path))
      if (findLongestPrefix(root, segments).routes !== routes) return { kind: 'ambiguous' };
  const route = routes.length < 2 ? routes[0] : chooseByMethod(routes, method);
  return toRouteMatch(route, route?.stripPrefix === true ? measurePrefix(path, depth) : 0);
}

function chooseByMethod<R extends RoutePath>(routes: readonly R[], method: string): R | undefined {
  const listing = routes.find(({ methods }) => methods?.includes(method));
  return listing ?? routes.find(({ methods }) => methods === undefined) ?? routes[0];
}

function toRouteMatch<R>(route: R | undefined, strippedLength: number): RouteMatch<R> {
  return route === undefined ? { kind: 'none' } : { kind: 'matched', route, strippedLength };
}

/** The deepest routes on the way, and the number of segments of its prefix. Reads no further than the prefixes go. */
function findLongestPrefix<R>(
  root: PrefixNode<R>,
  segments: Iterable<string>,
): { routes: readonly R[]; depth: number } {
  let found = { routes: root.routes, depth: 0 };
  let node: PrefixNode<R> | undefined = root;
  let depth = 0;
  for (const segment of segments) {
    node = node.children.get(segment);
    if (node === undefined) break;
    depth++;
    if (node.routes.length > 0) found = { routes: node.routes, depth };
  }
  return found;
}

function measurePrefix(path: string, depth: number): number {
  let length = 0;
  for (let passed = 0; passed < depth; passed++) {
    const next = path.indexOf('/', length + 1);
    length = next < 0 ? path.length : next;
  }
  return length;
}
