/** The header fields of an upgrade on both sides of the sidecar, as http-proxy-3 takes them. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { filterRequestHeaders, rewriteResponseHeaders } from '../../upstream/headers.ts';

/**
 * The end-to-end fields of the request, and of the connection-specific ones those that make the upgrade.
 * @param requiredHeader a field that is the sidecar's own
 */
export function buildUpgradeRequestHeaders(
  request: IncomingMessage,
  requiredHeader: string | undefined,
): { readonly headers: Record<string, string>; readonly hadAuthorization: boolean } {
  const { headers: fields, hadAuthorization } = filterRequestHeaders(request.rawHeaders, requiredHeader);
  const headers = Object.create(null) as Record<string, string>;
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const name = (fields[at] ?? '').toLowerCase();
    const before = headers[name];
    headers[name] = before === undefined ? (fields[at + 1] ?? '') : `${before}, ${fields[at + 1] ?? ''}`;
  }
  return { headers: Object.assign(headers, { connection: 'Upgrade', upgrade: 'websocket' }), hadAuthorization };
}

/** The end-to-end fields of a response that is no upgrade; the connection is closed after it. */
export function buildRefusalHeaders({ headers, rawHeaders }: IncomingMessage): IncomingHttpHeaders {
  const kept = new Set(
    rewriteResponseHeaders(rawHeaders, (location) => location, undefined)
      .filter((_, at) => at % 2 === 0)
      .map((name) => name.toLowerCase()),
  );
  return { ...Object.fromEntries(Object.entries(headers).filter(([name]) => kept.has(name))), connection: 'close' };
}
