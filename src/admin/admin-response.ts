/** Responses of the admin port as values, and how they are sent. Errors are problem details (RFC 9457). */
import { STATUS_CODES } from '../platform/http.ts';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';

export interface AdminResponse {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string | Buffer;
  /** Writes the body after the head, instead of `body`; not called for HEAD. */
  readonly stream?: (response: ServerResponse) => void;
}

export interface AdminProblem {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  /** Default: none. */
  readonly headers?: OutgoingHttpHeaders;
}

export function createJsonResponse(status: number, value: object, headers: OutgoingHttpHeaders = {}): AdminResponse {
  return {
    status,
    headers: { 'Content-Type': 'application/json', ...headers },
    body: `${JSON.stringify(value)}\n`,
  };
}

export function createTextResponse(contentType: string, body: string): AdminResponse {
  return { status: 200, headers: { 'Content-Type': contentType }, body };
}

export function createProblemResponse({ status, code, detail, headers }: AdminProblem): AdminResponse {
  const problem = { type: 'about:blank', title: STATUS_CODES[status], status, detail, code };
  return createJsonResponse(status, problem, { ...headers, 'Content-Type': 'application/problem+json' });
}

/** Sends a response; HEAD gets the headers of GET and no body. */
export function sendResponse(request: IncomingMessage, response: ServerResponse, content: AdminResponse): void {
  const { status, headers, body, stream } = content;
  // A 304 has no content and no Content-Length.
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
