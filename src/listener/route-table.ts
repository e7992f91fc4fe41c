/**
 * Finds the route of a path: the longest prefix of whole segments, with one lookup per segment however many routes there are. Pure.
 * A path that lenient servers could read as a path of another route matches none: no reading may decide which credential is sent.
 */
import { isAmbiguousPath, listReadings } from '../platform/path-readings.ts';

export interface RoutePath {
  /** Plain segments without a slash at the end; `/` matches every path. */
  readonly pathPrefix: string;
  /** Whether the upstream sees paths without the prefix. */
  readonly stripPrefix: boolean;
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
  readonly match: (target: string) => RouteMatch<R>;
}

interface PrefixNode<R> {
  readonly children: Map<string, PrefixNode<R>>;
  route: R | undefined;
}

/** @param routes no two with the same prefix */
export function createRouteTable<R extends RoutePath>(routes: readonly R[]): RouteTable<R> {
  const root: PrefixNode<R> = { children: new Map(), route: undefined };
  for (const route of routes) {
    let node = root;
    for (const segment of route.pathPrefix.split('/').filter((part) => part !== '')) {
      const next = node.children.get(segment) ?? { children: new Map(), route: undefined };
      node.children.set(segment, next);
      node = next;
    }
    node.route = route;
  }
  const rootMatch = toRouteMatch(root.route, 0);
  // Without prefixes no reading of a path leads to another route.
  return { routes, match: root.children.size === 0 ? () => rootMatch : (target) => matchPath(root, target) };
}

function matchPath<R extends RoutePath>(root: PrefixNode<R>, target: string): RouteMatch<R> {
  const path = target.split('?', 1)[0] ?? '';
  const { route, depth } = findLongestPrefix(root, path.split('/').slice(1));
  if (isAmbiguousPath(path))
    for (const segments of listReadings(path))
      if (findLongestPrefix(root, segments).route !== route) return { kind: 'ambiguous' };
  return toRouteMatch(route, route?.stripPrefix === true ? measurePrefix(path, depth) : 0);
}

function toRouteMatch<R>(route: R | undefined, strippedLength: number): RouteMatch<R> {
  return route === undefined ? { kind: 'none' } : { kind: 'matched', route, strippedLength };
}

/** The deepest route on the way, and the number of segments of its prefix. Reads no further than the prefixes go. */
function findLongestPrefix<R>(
  root: PrefixNode<R>,
  segments: Iterable<string>,
): { route: R | undefined; depth: number } {
  let found = { route: root.route, depth: 0 };
  let node: PrefixNode<R> | undefined = root;
  let depth = 0;
  for (const segment of segments) {
    node = node.children.get(segment);
    if (node === undefined) break;
    depth++;
    if (node.route !== undefined) found = { route: node.route, depth };
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
