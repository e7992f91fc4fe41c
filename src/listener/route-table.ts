/**
 * Which route a request takes: the longest prefix of whole segments, found by one look-up for each segment however many routes there
 * are. Pure. A path that lenient servers could read as that of another route is taken by none: the credential must never depend on
 * whose reading is right.
 */
import { decodeRounds } from '../upstream/request-target.ts';

/** What the choice depends on. */
export interface RoutePath {
  /** Plain segments without a slash at the end; `/` takes every path. */
  readonly pathPrefix: string;
  /** Whether the upstream sees paths without the prefix. */
  readonly stripPrefix: boolean;
}

export type RouteMatch<R> =
  | {
      readonly kind: 'chosen';
      readonly route: R;
      /** Characters at the start of the target that the upstream does not see. */
      readonly strippedLength: number;
    }
  | { readonly kind: 'none' }
  /** Different readings of the path lead to different routes. */
  | { readonly kind: 'ambiguous' };

export interface RouteTable<R> {
  readonly routes: readonly R[];
  /** @param target in origin-form, query included */
  match(target: string): RouteMatch<R>;
}

interface PrefixNode<R> {
  readonly children: Map<string, PrefixNode<R>>;
  route: R | undefined;
}

/** What two readers of a path may understand in two ways. */
const AMBIGUOUS_CHARACTERS = /[%\\;]|\/\/|[\0- ]/;

/** @param routes with prefixes that differ */
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
  return {
    routes,
    match(target) {
      // Without prefixes there is nothing to choose, nor to mistake.
      if (root.children.size === 0) return toRouteMatch(root.route, 0);
      const path = target.split('?', 1)[0] ?? '';
      const found = findLongestPrefix(root, path.split('/').slice(1));
      if (AMBIGUOUS_CHARACTERS.test(path))
        for (const reading of listReadings(path))
          if (findLongestPrefix(root, reading).route !== found.route) return { kind: 'ambiguous' };
      const { route, depth } = found;
      return toRouteMatch(route, route?.stripPrefix === true ? measurePrefix(path, depth) : 0);
    },
  };
}

function toRouteMatch<R>(route: R | undefined, strippedLength: number): RouteMatch<R> {
  return route === undefined ? { kind: 'none' } : { kind: 'chosen', route, strippedLength };
}

/** The deepest route on the way, and how many segments its prefix has. Looks no further than the prefixes go. */
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

/** What servers that decode, fold backslashes, drop `;parameters` and white space, or join slashes read. */
function* listReadings(path: string): Generator<Iterable<string>> {
  for (const decoded of decodeRounds(path)) {
    const segments = decoded.split(/[/\\]/).slice(1);
    yield normalizeSegments(segments, true);
    yield normalizeSegments(segments, false);
  }
}

/** One by one: a path may have thousands, of which the first few decide. */
function* normalizeSegments(segments: readonly string[], keepsEmpty: boolean): Generator<string> {
  for (const segment of segments) {
    const name = segment.replace(/[;?#].*$/s, '').replace(/[\0- ]/g, '');
    if (keepsEmpty || name !== '') yield name;
  }
}

/** Of the first `depth` segments with their slashes, as they came. */
function measurePrefix(path: string, depth: number): number {
  let length = 0;
  for (let passed = 0; passed < depth; passed++) {
    const next = path.indexOf('/', length + 1);
    length = next < 0 ? path.length : next;
  }
  return length;
}
