/** Where a client of the sidecar finds the resources of an upstream, for header values that refer to them. Pure. */
import type { AddedQuery } from './added-query.ts';
import { withoutTrailingSlash } from './request-target.ts';

export interface ClientView {
  readonly baseUrl: URL;
  readonly requestPath: string;
  /** The client's path for a path below the base; undefined when there is none. */
  readonly clientPath: (path: string) => string | undefined;
  /** The path below the base to which the cookies of the route are limited; undefined: cookies are not adapted. */
  readonly cookieRoot: string | undefined;
  /** The parameters that the client must not see; undefined: the query of no call is changed. */
  readonly addedQuery?: AddedQuery | undefined;
}

/** The client's path for a path on the upstream's origin; undefined when no request of the client reaches it. */
export function toClientPath({ baseUrl, clientPath }: ClientView, path: string): string | undefined {
  const prefix = withoutTrailingSlash(baseUrl.pathname);
  if (path !== prefix && !path.startsWith(`${prefix}/`)) return undefined;
  const found = clientPath(path.slice(prefix.length));
  return found === '' ? '/' : found;
}
