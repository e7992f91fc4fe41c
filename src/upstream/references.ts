/**
 * Rewrites `Location`, so that a client that follows a redirect stays on the sidecar (RFC 9110 §10.2.2): a URL below the
 * upstream's base becomes a path-absolute reference. Pure. Redirects are passed on, never followed.
 */
import { withoutTrailingSlash } from './request-target.ts';

const HAS_SCHEME = /^[a-z][a-z\d+.-]*:/i;

/**
 * @param base the upstream's base URL
 * @param requestPath path of the upstream request, which relative references resolve against
 * @param clientPath the client's path for a path below the base; undefined when there is none. Default: the same
 */
export function rewriteReference(
  base: URL,
  requestPath: string,
  location: string,
  clientPath: (path: string) => string | undefined = (path) => path,
): string {
  const resolved = parse(location, base.origin + requestPath);
  if (resolved === undefined) return location;
  // Without a scheme, the client would add the sidecar's.
  if (resolved.origin !== base.origin) return HAS_SCHEME.test(location) ? location : resolved.href;
  const prefix = withoutTrailingSlash(base.pathname);
  const isUnderBase = resolved.pathname === prefix || resolved.pathname.startsWith(`${prefix}/`);
  // On the upstream's origin, but not reachable through the sidecar: only the absolute form still points there.
  const found = isUnderBase ? clientPath(resolved.pathname.slice(prefix.length)) : undefined;
  if (found === undefined) return resolved.href;
  const path = found || '/';
  // A path that begins with two slashes would be read as another host (RFC 3986 §4.2).
  return (path.startsWith('//') ? `/.${path}` : path) + resolved.search + resolved.hash;
}

function parse(reference: string, against: string): URL | undefined {
  return URL.parse(reference, against) ?? undefined;
}
