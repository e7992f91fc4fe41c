/**
 * `POST /quitquitquit`: the end on request, for a pod whose other containers cannot send this one a signal (a Job on a cluster
 * without native sidecars). Whoever asks must be on this machine and no browser; that it was opted for at all is the caller's word.
 */

/** Where it is asked. */
export const QUIT_PATH = '/quitquitquit';

/** What is looked at. */
export interface QuitRequest {
  readonly method: string | undefined;
  /** Names and values by turns, as node:http has them. */
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

/** Fields that a browser adds to a POST by itself, and that no script of a page can leave out. */
const BROWSER_HEADERS: ReadonlySet<string> = new Set(['origin', 'sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-dest']);

/**
 * Judges a request that has passed the guard of the port. It is stricter than that: not even `admin.exposeAll` lets another machine
 * end this process, and not even a page of this very port.
 */
export function evaluateQuit({ method, rawHeaders, isLocal }: QuitRequest): QuitDecision {
  if (!isLocal) return refuse(403, 'REQUEST_NOT_ALLOWED', 'The end may be asked for from this machine only.');
  if (method !== 'POST') return refuse(405, 'METHOD_NOT_ALLOWED', 'POST is expected.');
  const isBrowser = rawHeaders.some((name, index) => index % 2 === 0 && BROWSER_HEADERS.has(name.toLowerCase()));
  return isBrowser ? refuse(403, 'REQUEST_NOT_ALLOWED', 'A browser may not ask for the end.') : { kind: 'pass' };
}

function refuse(status: 403 | 405, code: 'REQUEST_NOT_ALLOWED' | 'METHOD_NOT_ALLOWED', detail: string): QuitDecision {
  return { kind: 'refuse', status, code, detail };
}
