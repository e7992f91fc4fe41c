/**
 * What is taken out of and put into the field sections in both directions (RFC 9110 §7.6.1). Pure.
 * Fields travel as flat lists [name, value, name, value, …], so that order, case and repetition survive.
 * Removal always comes before the bearer is put in: a client cannot have it removed by naming it in `Connection`.
 */

import { rememberEach } from '../platform/remembered.ts';

/** Never forwarded to the upstream, whether `Connection` names them or not. */
const REQUEST_ONLY_HERE = new Set([
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
const RESPONSE_ONLY_HERE = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

const CORS_FIELD = /^access-control-allow-(?:origin|credentials)$|^access-control-expose-headers$/;

/** What the name of a field says. */
interface JudgedName {
  /** In lower case, with underscores read as hyphens: gateways such as CGI cannot tell the two apart. */
  readonly canonical: string;
  /** In a request, whatever else is the case. */
  readonly staysHere: boolean;
}

const judgeRequestName = rememberEach((name): JudgedName => {
  const canonical = canonicalName(name);
  return { canonical, staysHere: REQUEST_ONLY_HERE.has(canonical) || canonical.startsWith('x-sidecar-') };
});

interface JudgedAnswerName {
  readonly lower: string;
  readonly staysHere: boolean;
  readonly isCors: boolean;
}

const judgeAnswerName = rememberEach((name): JudgedAnswerName => {
  const lower = name.toLowerCase();
  return { lower, staysHere: RESPONSE_ONLY_HERE.has(lower), isCors: CORS_FIELD.test(lower) };
});

export interface RequestFields {
  /** What goes upstream, without Host, framing and Authorization. The taker's own: it may add to it. */
  readonly fields: string[];
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
export function endToEndRequestFields(rawFields: readonly string[], requiredHeader: string | undefined): RequestFields {
  const nominated = connectionOptions(rawFields);
  const secretName = requiredHeader === undefined ? undefined : canonicalName(requiredHeader);
  const fields: string[] = [];
  let hadAuthorization = false;
  let hasContentType = false;
  let hasIdempotencyKey = false;
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    const { canonical: name, staysHere } = judgeRequestName(rawFields[at] ?? '');
    if (name === 'authorization') hadAuthorization = true;
    if (staysHere || name === secretName || nominated?.has(name) === true) continue;
    if (name === 'content-type') hasContentType = true;
    if (name === 'idempotency-key') hasIdempotencyKey = true;
    fields.push(rawFields[at] ?? '', rawFields[at + 1] ?? '');
  }
  return { fields, hadAuthorization, hasContentType, hasIdempotencyKey };
}

/**
 * The end-to-end fields of an upstream's answer.
 * @param location rewrites the value of `Location`
 * @param corsOrigin the page origin that this answer is allowed for: its CORS fields replace the upstream's
 */
export function endToEndResponseFields(
  rawFields: readonly string[],
  location: (value: string) => string,
  corsOrigin: string | undefined,
): string[] {
  const nominated = connectionOptions(rawFields);
  const fields: string[] = [];
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    const { lower: name, staysHere, isCors } = judgeAnswerName(rawFields[at] ?? '');
    if (staysHere || nominated?.has(name) === true) continue;
    if (corsOrigin !== undefined && isCors) continue;
    const value = rawFields[at + 1] ?? '';
    fields.push(rawFields[at] ?? '', name === 'location' ? location(value) : value);
  }
  return corsOrigin === undefined ? fields : [...fields, ...corsFields(corsOrigin)];
}

/** A 204 that states a length would have its client wait for a body that never comes (RFC 9110 §8.6). */
export function withoutLength(fields: readonly string[]): string[] {
  const isLength = (at: number): boolean => fields[at]?.toLowerCase() === 'content-length';
  return fields.filter((_, at) => !isLength(at - (at % 2)));
}

/** The CORS fields of an answer for an allowed page origin (Fetch standard, CORS protocol). */
export function corsFields(origin: string): string[] {
  return ['Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', '*', 'Vary', 'Origin'];
}

/** First value of a field in a flat list; `name` in lower case. */
export function fieldOf(rawFields: readonly string[], name: string): string | undefined {
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    const candidate = rawFields[at];
    if (candidate?.length === name.length && candidate.toLowerCase() === name) return rawFields[at + 1];
  }
  return undefined;
}

/** The names that the `Connection` fields nominate, in lower case; undefined when there is none. */
function connectionOptions(rawFields: readonly string[]): Set<string> | undefined {
  let options: Set<string> | undefined;
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    const name = rawFields[at] ?? '';
    if (name.length !== 10 || name.toLowerCase() !== 'connection') continue;
    const value = rawFields[at + 1] ?? '';
    // The usual ones name no field.
    if (value === 'keep-alive' || value === 'close') continue;
    options ??= new Set();
    for (const option of value.split(',')) options.add(canonicalName(option.trim()));
  }
  return options;
}

function canonicalName(name: string): string {
  const lower = name.toLowerCase();
  return lower.includes('_') ? lower.replaceAll('_', '-') : lower;
}
