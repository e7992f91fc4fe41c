/** The answers of the admin port as values, and how they are sent. Refusals are problem details (RFC 9457). */
import { STATUS_CODES } from '../platform/http.ts';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';

/** A whole answer. */
export interface AdminResponse {
  readonly status: number;
  /** Win over the usual ones. */
  readonly headers: OutgoingHttpHeaders;
  readonly body: string | Buffer;
  /** Goes on after the head, instead of `body`; not called for HEAD. */
  readonly stream?: (response: ServerResponse) => void;
}

export function createJsonResponse(status: number, value: object): AdminResponse {
  return { status, headers: { 'Content-Type': 'application/json' }, body: `${JSON.stringify(value)}\n` };
}

export function createTextResponse(contentType: string, body: string): AdminResponse {
  return { status: 200, headers: { 'Content-Type': contentType }, body };
}

export function createProblemResponse(
  status: number,
  code: string,
  detail: string,
  headers: OutgoingHttpHeaders = {},
): AdminResponse {
  const problem = { type: 'about:blank', title: STATUS_CODES[status], status, detail, code };
  return {
    status,
    headers: { ...headers, 'Content-Type': 'application/problem+json' },
    body: `${JSON.stringify(problem)}\n`,
  };
}

/** HEAD has the fields of GET and no body. */
export function sendResponse(request: IncomingMessage, response: ServerResponse, answer: AdminResponse): void {
  const { status, headers, body, stream } = answer;
  // What is not modified (304) has no content, and so no length of its own.
  const length = stream === undefined && status !== 304 ? { 'Content-Length': Buffer.byteLength(body) } : {};
  response.writeHead(status, {
    'Cache-Control': 'no-store',
    ...length,
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    ...headers,
  });
  if (request.method === 'HEAD') response.end();
  else if (stream === undefined) response.end(body);
  else stream(response);
}
