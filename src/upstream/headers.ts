/**
 * What is taken out of and put into the field sections in both directions (RFC 9110 §7.6.1). Pure.
 * Fields travel as flat lists [name, value, name, value, …], so that order, case and repetition survive.
 * Removal always comes before the bearer is put in: a client cannot have it removed by naming it in `Connection`.
 */

import { memoize } from '../platform/memoize.ts';

/** Never forwarded to the upstream, whether `Connection` names them or not. */
const UNFORWARDED_REQUEST_HEADERS = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  // Framing, origin and expectations are the sidecar's own business towards the upstream.
  'content-length',
  'expect',
  'host',
  // Credentials: the client's are replaced, those for a proxy are for nobody behind it.
  'authorization',
  'proxy-authorization',
]);

/** Never forwarded to the client. */
const UNFORWARDED_RESPONSE_HEADERS = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

const CORS_HEADER = /^access-control-allow-(?:origin|credentials)$|^access-control-expose-headers$/;

/** What the name of a field says. */
interface RequestHeaderClass {
  /** In lower case, with underscores read as hyphens: gateways such as CGI cannot tell the two apart. */
  readonly canonical: string;
  /** In a request, whatever else is the case. */
  readonly isRemoved: boolean;
}

const classifyRequestHeader = memoize((name): RequestHeaderClass => {
  const canonical = canonicalizeName(name);
  return { canonical, isRemoved: UNFORWARDED_REQUEST_HEADERS.has(canonical) || canonical.startsWith('x-sidecar-') };
});

interface ResponseHeaderClass {
  readonly lower: string;
  readonly isRemoved: boolean;
  readonly isCors: boolean;
}

const classifyResponseHeader = memoize((name): ResponseHeaderClass => {
  const lower = name.toLowerCase();
  return { lower, isRemoved: UNFORWARDED_RESPONSE_HEADERS.has(lower), isCors: CORS_HEADER.test(lower) };
});

export interface ForwardedRequestHeaders {
  /** What goes upstream, without Host, framing and Authorization. The taker's own: it may add to it. */
  readonly headers: string[];
  /** The client sent an Authorization of its own. */
  readonly hadAuthorization: boolean;
  readonly hasContentType: boolean;
  readonly hasIdempotencyKey: boolean;
}

/**
 * The end-to-end fields of a client's request.
 * @param rawFields as node:http gives them
 * @param requiredHeader lower-case name of the field that admits clients; it stays here
 */
export function filterRequestHeaders(
  rawFields: readonly string[],
  requiredHeader: string | undefined,
): ForwardedRequestHeaders {
  const nominated = parseConnectionOptions(rawFields);
  const secretName = requiredHeader === undefined ? undefined : canonicalizeName(requiredHeader);
  const fields: string[] = [];
  let hadAuthorization = false;
  let hasContentType = false;
  let hasIdempotencyKey = false;
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    const { canonical: name, isRemoved } = classifyRequestHeader(rawFields[at] ?? '');
    if (name === 'authorization') hadAuthorization = true;
    if (isRemoved || name === secretName || nominated?.has(name) === true) continue;
    if (name === 'content-type') hasContentType = true;
    if (name === 'idempotency-key') hasIdempotencyKey = true;
    fields.push(rawFields[at] ?? '', rawFields[at + 1] ?? '');
  }
  return { headers: fields, hadAuthorization, hasContentType, hasIdempotencyKey };
}

/**
 * The end-to-end fields of an upstream's answer.
 * @param location rewrites the value of `Location`
 * @param corsOrigin the page origin that this answer is allowed for: its CORS fields replace the upstream's
 */
export function rewriteResponseHeaders(
  rawFields: readonly string[],
  location: (value: string) => string,
  corsOrigin: string | undefined,
): string[] {
  const nominated = parseConnectionOptions(rawFields);
  const fields: string[] = [];
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    const { lower: name, isRemoved, isCors } = classifyResponseHeader(rawFields[at] ?? '');
    if (isRemoved || nominated?.has(name) === true) continue;
    if (corsOrigin !== undefined && isCors) continue;
    const value = rawFields[at + 1] ?? '';
    fields.push(rawFields[at] ?? '', name === 'location' ? location(value) : value);
  }
  return corsOrigin === undefined ? fields : [...fields, ...corsHeaders(corsOrigin)];
}

/** A 204 that states a length would have its client wait for a body that never comes (RFC 9110 §8.6). */
export function withoutContentLength(fields: readonly string[]): string[] {
  const isLength = (at: number): boolean => fields[at]?.toLowerCase() === 'content-length';
  return fields.filter((_, at) => !isLength(at - (at % 2)));
}

/** The CORS fields of an answer for an allowed page origin (Fetch standard, CORS protocol). */
export function corsHeaders(origin: string): string[] {
  return ['Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', '*', 'Vary', 'Origin'];
}

/** First value of a field in a flat list; `name` in lower case. */
export function findHeader(rawFields: readonly string[], name: string): string | undefined {
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    const candidate = rawFields[at];
    if (candidate?.length === name.length && candidate.toLowerCase() === name) return rawFields[at + 1];
  }
  return undefined;
}

/** The names that the `Connection` fields nominate, in lower case; undefined when there is none. */
function parseConnectionOptions(rawFields: readonly string[]): Set<string> | undefined {
  let options: Set<string> | undefined;
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    const name = rawFields[at] ?? '';
    if (name.length !== 10 || name.toLowerCase() !== 'connection') continue;
    const value = rawFields[at + 1] ?? '';
    // The usual ones name no field.
    if (value === 'keep-alive' || value === 'close') continue;
    options ??= new Set();
    for (const option of value.split(',')) options.add(canonicalizeName(option.trim()));
  }
  return options;
}

function canonicalizeName(name: string): string {
  const lower = name.toLowerCase();
  return lower.includes('_') ? lower.replaceAll('_', '-') : lower;
}
