/**
 * The optional list of what may be asked for at all: methods and path prefixes (`listen.allow`). Pure.
 * Paths are compared by whole segments with unneeded escapes undone (RFC 3986 §6.2.2), so that no spelling slips past:
 * one that the list does not know is refused. Dot segments never get here, upstream/target refuses them.
 */
import { SidecarError } from '../platform/errors.ts';

export interface AllowListRule {
  /** Undefined allows every method. */
  readonly methods: readonly string[] | undefined;
  /** Allowed itself and with everything below it; `/` allows every path. */
  readonly path: string;
}

/** Why a request is not on the list; undefined when it is. `target` is in origin-form. */
export type AllowListCheck = (method: string, target: string) => SidecarError | undefined;

/** @param rules none allow everything */
export function createAllowList(rules: readonly AllowListRule[]): AllowListCheck {
  if (rules.length === 0) return () => undefined;
  const compiled = rules.map(({ methods, path }) => ({ methods, segments: splitSegments(path) }));
  return (method, target) => {
    const path = target.split('?', 1)[0] ?? '';
    const given = isWellEncoded(path) ? splitSegments(path) : undefined;
    const matching = compiled.filter(({ segments }) => given !== undefined && startsWith(given, segments));
    if (matching.some(({ methods }) => methods?.includes(method) ?? true)) return undefined;
    const what = matching.length === 0 ? 'this path' : `the method ${method} on this path`;
    return new SidecarError(
      'REQUEST_NOT_ALLOWED',
      `${what} is not allowed; if it is meant, add it to SIDECAR_LISTEN_ALLOW (listen.allow)`,
    );
  };
}

/** What lenient decoders would each read in their own way (RFC 3986 §2.1, RFC 3629 §3) could be any path. */
function isWellEncoded(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

/** The root has none. */
function splitSegments(path: string): string[] {
  const normal = path.replace(/%[\da-f]{2}/gi, (escape) => {
    const sign = String.fromCharCode(parseInt(escape.slice(1), 16));
    return /[\w.~-]/.test(sign) ? sign : escape.toUpperCase();
  });
  return normal === '/' ? [] : normal.slice(1).split('/');
}

function startsWith(segments: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((segment, at) => segments[at] === segment);
}
