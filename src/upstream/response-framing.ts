/**
 * Whether a response's head says where its body ends (RFC 9112 §6.3). Pure. Undici's parser refuses most contradictions itself; it
 * miscounts a length followed by white space, and passes on a body in a transfer coding that it has not removed.
 */
import type { UpstreamResponse } from './upstream-response.ts';

/** As far as a number counts exactly. */
const LENGTH = /^\d{1,15}$/;
/** `identity` is of older servers, and means nothing. */
const CODING = /^(?:chunked|identity)$/i;

/** @returns why the end of the body cannot be determined, fit for a log; undefined when it can, or when there is no body */
export function findFramingFault(method: string, { status, headers }: UpstreamResponse): string | undefined {
  if (method === 'HEAD' || status === 204 || status === 304) return undefined;
  let lengths = 0;
  let codings = 0;
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] ?? '';
    if (name.length === 14 && name.toLowerCase() === 'content-length') {
      lengths++;
      if (!LENGTH.test(headers[at + 1] ?? '')) return 'a Content-Length that is not a plain number';
    } else if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') {
      codings++;
      if (!CODING.test(headers[at + 1] ?? '')) return 'a Transfer-Encoding other than chunked';
    }
  }
  if (lengths > 1) return 'more than one Content-Length';
  if (codings > 1) return 'more than one Transfer-Encoding';
  return lengths > 0 && codings > 0 ? 'Content-Length beside Transfer-Encoding' : undefined;
}
