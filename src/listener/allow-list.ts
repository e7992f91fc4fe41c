/**
 * The optional list of the requests that are allowed: methods and path prefixes (`listen.allow`). Pure. Paths are compared by whole segments
 * after unneeded escapes are decoded (RFC 3986 §6.2.2), so that no spelling passes the list. Dot segments are rejected before.
 */
import { SidecarError } from '../platform/errors.ts';
import { tryRead } from '../platform/try-read.ts';

export interface AllowListRule {
  /** Undefined allows every method. */
  readonly methods: readonly string[] | undefined;
  /** Allowed with everything below it; `/` allows every path. */
  readonly path: string;
}

/** Why a request is not on the list; undefined when it is. `target` is in origin-form. */
export type AllowListCheck = (method: string, target: string) => SidecarError | undefined;

/** @param rules those of which one must match; without any, no request is allowed */
export function createAllowList(rules: readonly AllowListRule[]): AllowListCheck {
  const parsedRules = rules.map(({ methods, path }) => ({ methods, segments: splitSegments(path) }));
  return (method, target) => {
    const path = target.split('?', 1)[0] ?? '';
    // Lenient decoders read other escapes each in their own way (RFC 3986 §2.1, RFC 3629 §3).
    const isWellEncoded = tryRead(() => decodeURIComponent(path)) !== undefined;
    const requested = isWellEncoded ? splitSegments(path) : undefined;
    const matching = parsedRules.filter(({ segments }) => requested !== undefined && startsWith(requested, segments));
    if (matching.some(({ methods }) => methods?.includes(method) ?? true)) return undefined;
    const what = matching.length === 0 ? 'this path' : `the method ${method} on this path`;
    return new SidecarError(
      'REQUEST_NOT_ALLOWED',
      `${what} is not allowed; to allow it, add it to SIDECAR_LISTEN_ALLOW (listen.allow)`,
    );
  };
}

function splitSegments(path: string): string[] {
  const normalized = path.replace(/%[\da-f]{2}/gi, (escape) => {
    const character = String.fromCharCode(parseInt(escape.slice(1), 16));
    return /[\w.~-]/.test(character) ? character : escape.toUpperCase();
  });
  return normalized === '/' ? [] : normalized.slice(1).split('/');
}

function startsWith(segments: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((segment, index) => segments[index] === segment);
}
