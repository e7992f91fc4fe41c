/**
 * Access to `POST /quitquitquit`, which starts the shutdown: for a pod whose other containers cannot signal this one (a Job on a
 * cluster without native sidecars). Only for local peers that are no browser. The caller checks that `admin.allowQuit` is set.
 */
import { hasAnyHeader } from '../guard.ts';

export const QUIT_PATH = '/quitquitquit';

export interface QuitRequest {
  readonly method: string | undefined;
  /** Flat list [name, value, …]. */
  readonly rawHeaders: readonly string[];
  /** Whether the peer is on this machine. */
  readonly isLocal: boolean;
}

export type QuitDecision =
  | { readonly kind: 'pass' }
  | {
      readonly kind: 'refuse';
      readonly status: 403 | 405;
      readonly code: 'REQUEST_NOT_ALLOWED' | 'METHOD_NOT_ALLOWED';
      readonly detail: string;
    };

/** Header fields that a browser adds to a POST and that no script can remove. */
const BROWSER_HEADERS: ReadonlySet<string> = new Set(['origin', 'sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-dest']);

/**
 * Decides on a request that has passed the guard of the port. Stricter than the guard: `admin.exposeAll` does not allow another
 * machine, and the status page is refused, too.
 */
export function evaluateQuit({ method, rawHeaders, isLocal }: QuitRequest): QuitDecision {
  if (!isLocal) return refuse(403, 'REQUEST_NOT_ALLOWED', 'Only available from this machine.');
  if (method !== 'POST') return refuse(405, 'METHOD_NOT_ALLOWED', 'Use POST.');
  if (hasAnyHeader(rawHeaders, BROWSER_HEADERS))
    return refuse(403, 'REQUEST_NOT_ALLOWED', 'A browser may not stop the sidecar.');
  return { kind: 'pass' };
}

function refuse(status: 403 | 405, code: 'REQUEST_NOT_ALLOWED' | 'METHOD_NOT_ALLOWED', detail: string): QuitDecision {
  return { kind: 'refuse', status, code, detail };
}
