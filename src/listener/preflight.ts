/** Responds to the CORS preflight of an allowed page (Fetch standard). The guard decides which pages are allowed. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { corsHeaders } from '../upstream/headers.ts';

export const PREFLIGHT_STATUS = 204;

/** Allows every method and header field that the page asks for: the upstream decides about the request itself. */
export function replyToPreflight(request: IncomingMessage, response: ServerResponse, origin: string): void {
  const { headers } = request;
  response.writeHead(PREFLIGHT_STATUS, [
    ...corsHeaders(origin),
    'Access-Control-Allow-Methods',
    headers['access-control-request-method'] ?? '',
    'Access-Control-Allow-Headers',
    headers['access-control-request-headers'] ?? '',
    'Access-Control-Max-Age',
    '600',
  ]);
  response.end();
}
