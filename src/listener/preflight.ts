/** Answers the CORS preflight of an allowed page (Fetch standard); who is allowed is the guard's. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { corsHeaders } from '../upstream/headers.ts';

/** The status of an answered preflight. */
export const PREFLIGHT_STATUS = 204;

/** What the page asks for is granted: the upstream judges the request itself. */
export function replyToPreflight(request: IncomingMessage, response: ServerResponse, origin: string): void {
  const allowed = { method: 'access-control-request-method', fields: 'access-control-request-headers' };
  response.writeHead(PREFLIGHT_STATUS, [
    ...corsHeaders(origin),
    'Access-Control-Allow-Methods',
    String(request.headers[allowed.method] ?? ''),
    'Access-Control-Allow-Headers',
    String(request.headers[allowed.fields] ?? ''),
    'Access-Control-Max-Age',
    '600',
  ]);
  response.end();
}
