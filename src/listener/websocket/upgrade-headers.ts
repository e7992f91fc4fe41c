/** The header fields of an upgrade request and of its response, in the form that http-proxy-3 expects. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { ClientView } from '../../upstream/client-view.ts';
import { rewriteResponseHeaders } from '../../upstream/headers.ts';
import type { FilterRequestHeaders } from '../../upstream/headers.ts';

const UPGRADED_CONNECTION = { connection: 'Upgrade', upgrade: 'websocket' };

/**
 * The end-to-end fields of the request, and the two connection-specific ones that an upgrade needs.
 * @param filter of the route
 */
export function buildUpgradeRequestHeaders(
  request: IncomingMessage,
  filter: FilterRequestHeaders,
): { readonly headers: Record<string, string>; readonly hadAuthorization: boolean } {
  const { headers: filtered, hadAuthorization } = filter(request.rawHeaders);
  const headers = Object.create(null) as Record<string, string>;
  for (let index = 0; index + 1 < filtered.length; index += 2) {
    const name = (filtered[index] ?? '').toLowerCase();
    const value = filtered[index + 1] ?? '';
    const earlier = headers[name];
    headers[name] = earlier === undefined ? value : `${earlier}, ${value}`;
  }
  return { headers: Object.assign(headers, UPGRADED_CONNECTION), hadAuthorization };
}

/**
 * The end-to-end fields of the response to an upgrade, as its client can use them, and the connection-specific ones: those of an upgraded
 * connection for a 101, else `Connection: close`.
 */
export function buildUpgradeResponseHeaders(
  { statusCode, rawHeaders }: IncomingMessage,
  describeView: () => ClientView,
): IncomingHttpHeaders {
  const rewritten = rewriteResponseHeaders(rawHeaders, describeView, undefined);
  const headers = Object.create(null) as Record<string, string[]>;
  for (let index = 0; index + 1 < rewritten.length; index += 2)
    (headers[(rewritten[index] ?? '').toLowerCase()] ??= []).push(rewritten[index + 1] ?? '');
  const own = statusCode === 101 ? UPGRADED_CONNECTION : { connection: 'close' };
  return Object.assign(headers, own);
}
