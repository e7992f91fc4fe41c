/** The answers of the admin port as values, and how they are sent. Refusals are problem details (RFC 9457). */
import { STATUS_CODES } from '../platform/http.ts';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';

/** A whole answer. */
export interface Answer {
  readonly status: number;
  /** Win over the usual ones. */
  readonly headers: OutgoingHttpHeaders;
  readonly body: string | Buffer;
  /** Goes on after the head, instead of `body`; not called for HEAD. */
  readonly stream?: (response: ServerResponse) => void;
}

export function json(status: number, value: object): Answer {
  return { status, headers: { 'Content-Type': 'application/json' }, body: `${JSON.stringify(value)}\n` };
}

export function text(contentType: string, body: string): Answer {
  return { status: 200, headers: { 'Content-Type': contentType }, body };
}

export function refuse(status: number, code: string, detail: string, headers: OutgoingHttpHeaders = {}): Answer {
  const problem = { type: 'about:blank', title: STATUS_CODES[status], status, detail, code };
  return {
    status,
    headers: { ...headers, 'Content-Type': 'application/problem+json' },
    body: `${JSON.stringify(problem)}\n`,
  };
}

/** HEAD has the fields of GET and no body. */
export function send(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
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
