/** The header fields of an upgrade request and of a refusal, in the form that http-proxy-3 expects. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { filterRequestHeaders, rewriteResponseHeaders } from '../../upstream/headers.ts';

/**
 * The end-to-end fields of the request, and the two connection-specific ones that an upgrade needs.
 * @param requiredHeader a field for the sidecar itself, which is not forwarded
 */
export function buildUpgradeRequestHeaders(
  request: IncomingMessage,
  requiredHeader: string | undefined,
): { readonly headers: Record<string, string>; readonly hadAuthorization: boolean } {
  const { headers: filtered, hadAuthorization } = filterRequestHeaders(request.rawHeaders, requiredHeader);
  const headers = Object.create(null) as Record<string, string>;
  for (let index = 0; index + 1 < filtered.length; index += 2) {
    const name = (filtered[index] ?? '').toLowerCase();
    const value = filtered[index + 1] ?? '';
    const earlier = headers[name];
    headers[name] = earlier === undefined ? value : `${earlier}, ${value}`;
  }
  return { headers: Object.assign(headers, { connection: 'Upgrade', upgrade: 'websocket' }), hadAuthorization };
}

/** The end-to-end fields of a response that refuses the upgrade; the connection closes after it. */
export function buildRefusalHeaders({ headers, rawHeaders }: IncomingMessage): IncomingHttpHeaders {
  const kept = new Set(
    rewriteResponseHeaders(rawHeaders, (location) => location, undefined)
      .filter((_, index) => index % 2 === 0)
      .map((name) => name.toLowerCase()),
  );
  return { ...Object.fromEntries(Object.entries(headers).filter(([name]) => kept.has(name))), connection: 'close' };
}
