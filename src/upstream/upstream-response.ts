/** The head of an upstream's answer, as undici's parser gives it. */
import type { Dispatcher } from 'undici';
import { findHeader } from './headers.ts';

/** A value, whatever its status. */
export interface UpstreamResponse {
  readonly status: number;
  readonly statusText: string;
  /** Flat list [name, value, …] as received. */
  readonly headers: readonly string[];
}

/** @param raw undici's list of names and values */
export function readResponseHead(
  status: number,
  statusText: string,
  raw: Dispatcher.DispatchController['rawHeaders'],
): UpstreamResponse {
  return { status, statusText: sanitizeReasonPhrase(statusText), headers: decodeHeaders(raw) };
}

/** A reason phrase that cannot be sent on is dropped: clients are to ignore it anyway (RFC 9112 §4). */
function sanitizeReasonPhrase(statusText: string): string {
  if (statusText === 'OK') return statusText;
  return /^[\t -~\x80-\xff]*$/.test(statusText) ? statusText : '';
}

/** Undici's raw field list as text; bytes above 0x7f stay what they are (latin1). */
function decodeHeaders(raw: Dispatcher.DispatchController['rawHeaders']): string[] {
  if (!Array.isArray(raw)) return [];
  return raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')));
}

/** First value of a field of an answer; `name` in lower case. */
export function getResponseHeader(head: UpstreamResponse, name: string): string | undefined {
  return findHeader(head.headers, name);
}
