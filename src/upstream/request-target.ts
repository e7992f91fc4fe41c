/**
 * Joins a client's request target to the upstream's base path (RFC 9112 §3.2.1, RFC 3986 §3.3). Pure.
 * The query and an accepted path are not changed; a path that could leave the base is rejected, in every spelling of its dot
 * segments. The guard has converted absolute-form targets before.
 */
import { SidecarError } from '../platform/errors.ts';
import { cleanSegment, decodeRounds } from '../platform/path-readings.ts';

/**
 * @param basePath pathname of the base URL; a trailing slash is ignored
 * @param target origin-form request target, query included
 * @param strippedLength length of the leading segments that are removed. Default 0
 * @returns path and query on the upstream, or the error that rejects the target
 */
export function joinTarget(basePath: string, target: string, strippedLength = 0): string | SidecarError {
  if (!target.startsWith('/')) return reject('the request target is not a path: expected one that begins with "/"');
  const queryAt = target.indexOf('?');
  const path = queryAt === -1 ? target : target.slice(0, queryAt);
  if (target.includes('#')) return reject('the request target has a fragment ("#"): send it percent-encoded as %23');
  if (path.includes('\\')) return reject('the path has a backslash: send it percent-encoded as %5C');
  // Most paths have neither an escape nor a dot at the start of a segment.
  if (/[/\\](?:\.|%)|%/.test(path) && hasDotSegment(path))
    return reject('the path has a dot segment ("." or ".."): send the path it resolves to');
  const joined = (basePath === '/' ? '' : withoutTrailingSlash(basePath)) + target.slice(strippedLength);
  return joined.startsWith('/') ? joined : `/${joined}`;
}

/** The base path as a prefix: `/v1/` becomes `/v1`, and the root is empty. */
export function withoutTrailingSlash(basePath: string): string {
  return basePath.endsWith('/') ? basePath.slice(0, -1) : basePath;
}

function reject(why: string): SidecarError {
  return new SidecarError('BAD_REQUEST', why);
}

/** Whether a server that decodes, converts backslashes, or drops `;parameters`, `?`, `#` or white space could read a dot segment. */
function hasDotSegment(path: string): boolean {
  const isDotSegment = (segment: string): boolean => /^\.\.?$/.test(cleanSegment(segment));
  return decodeRounds(path).some((decoded) => decoded.split(/[/\\]/).some(isDotSegment));
}
