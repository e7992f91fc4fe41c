/**
 * Filters the header sections in both directions (RFC 9110 §7.6.1). Pure.
 * Headers are flat lists [name, value, name, value, …], so that order, case and repetition survive.
 * Removal comes before the sidecar's own fields are added: a client cannot have one removed by naming it in `Connection`.
 */
import { memoize } from '../platform/memoize.ts';
import { LIMIT_RELATED_NAME } from '../platform/rate-limit-fields/header-values.ts';
import type { AddedQuery } from './added-query.ts';
import type { ClientView } from './client-view.ts';
import { adaptCookie } from './cookies.ts';
import { rewriteLink, rewriteReference, rewriteRefresh } from './references.ts';

/** Hop by hop: never forwarded, whether `Connection` names them or not. */
const UNFORWARDED_RESPONSE_HEADERS = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

const UNFORWARDED_REQUEST_HEADERS = new Set([
  ...UNFORWARDED_RESPONSE_HEADERS,
  'http2-settings',
  // Framing, origin and expectations towards the upstream are the sidecar's own.
  'content-length',
  'expect',
  'host',
  // The client's credentials are replaced; those for a proxy end here.
  'authorization',
  'proxy-authorization',
]);

const CORS_HEADER = /^access-control-allow-(?:origin|credentials)$|^access-control-expose-headers$/;

type HeaderRewriter = (value: string, view: ClientView) => string;

/** Response headers whose values a client of the sidecar could not use; by name in lower case. No other value is changed. */
const REWRITERS: ReadonlyMap<string, HeaderRewriter> = new Map([
  ['location', redacted(rewriteReference)],
  ['content-location', redacted(rewriteReference)],
  ['link', redacted(rewriteLink)],
  ['refresh', redacted(rewriteRefresh)],
  ['set-cookie', adaptCookie],
]);

/** Also where no reference was found. */
function redacted(rewrite: HeaderRewriter): HeaderRewriter {
  return (value, view) => {
    const rewritten = rewrite(value, view);
    return view.addedQuery === undefined ? rewritten : view.addedQuery.redact(rewritten);
  };
}

/** What a name says of a response header. */
export const responseHeaderClasses = memoize((name) => {
  const lower = name.toLowerCase();
  return {
    lower,
    isRemoved: UNFORWARDED_RESPONSE_HEADERS.has(lower),
    isCors: CORS_HEADER.test(lower),
    rewrite: REWRITERS.get(lower),
    isLimitRelated: LIMIT_RELATED_NAME.test(lower),
    isFraming: lower === 'content-length' || lower === 'transfer-encoding',
  };
});

export interface ForwardedRequestHeaders {
  /** End-to-end headers, without Host, framing, Authorization and the sidecar's own fields. The caller may add to the list. */
  readonly headers: string[];
  readonly hadAuthorization: boolean;
  /** In the list, or among the sidecar's own fields. */
  readonly hasContentType: boolean;
  /** The first value of that name that is not blank; the empty text where it is no key that every server reads. Undefined without one. */
  readonly idempotencyKey: string | undefined;
}

/**
 * Selects the end-to-end headers of a client's request.
 * @param rawHeaders as node:http gives them
 * @param keyHeader the name of the field of an idempotency key. Default: Idempotency-Key
 */
export type FilterRequestHeaders = (rawHeaders: readonly string[], keyHeader?: string) => ForwardedRequestHeaders;

/** No key, also as an empty string of RFC 9651 §3.3.3. */
const BLANK_KEY = /^(?:\s*|\s*"\s*"\s*)$/;

/** Replaces all fields of this name, in any spelling, by one. */
export function replaceField(headers: string[], name: string, value: string): void {
  const canonical = canonicalizeName(name);
  for (let at = headers.length - 2; at >= 0; at -= 2)
    if (canonicalizeName(headers[at] ?? '') === canonical) headers.splice(at, 2);
  headers.push(name, value);
}

export interface AddedHeaders {
  /** Removes the client's own fields of these names too. */
  readonly filter: FilterRequestHeaders;
  /** The fields of an attempt that is sent now: flat list [name, value, …], each name once. */
  readonly list: (token: string) => readonly string[];
  /** The parameters of an attempt that is sent now. Default: none are added. */
  readonly query?: AddedQuery | undefined;
}

/** @param ownNames the fields that the sidecar adds itself, and the one that admits clients: a client's own are not forwarded, in any spelling */
export function createRequestHeaderFilter(ownNames: readonly string[]): FilterRequestHeaders {
  const own = new Set(ownNames.map(canonicalizeName));
  const classes = memoize((name) => {
    const canonical = canonicalizeName(name);
    const isOfSidecar = own.has(canonical) || canonical.startsWith('x-sidecar-');
    return { canonical, isRemoved: isOfSidecar || UNFORWARDED_REQUEST_HEADERS.has(canonical) };
  });
  const select = (
    rawHeaders: readonly string[],
    keyHeader?: string,
    nominated?: ReadonlySet<string>,
  ): ForwardedRequestHeaders => {
    const keyName = keyHeader === undefined ? 'idempotency-key' : classes.find(keyHeader).canonical;
    const headers: string[] = [];
    let hadAuthorization = false;
    let hasContentType = own.has('content-type');
    let idempotencyKey: string | undefined;
    for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
      const received = rawHeaders[at] ?? '';
      const value = rawHeaders[at + 1] ?? '';
      const { canonical: name, isRemoved } = classes.known.get(received) ?? classes.find(received);
      if (name === 'authorization') hadAuthorization = true;
      // Connection may name a field that came before it.
      if (name === 'connection' && nominated === undefined && !namesNoHeader(value))
        return select(rawHeaders, keyHeader, parseConnectionOptions(rawHeaders));
      if (isRemoved || nominated?.has(name) === true) continue;
      if (name === 'content-type') hasContentType = true;
      // Many servers drop a field with an underscore in its name.
      if (name === keyName && !BLANK_KEY.test(value)) idempotencyKey ??= received.includes('_') ? '' : value;
      headers.push(received, value);
    }
    return { headers, hadAuthorization, hasContentType, idempotencyKey };
  };
  return select;
}

/**
 * The end-to-end headers of an upstream's response, as its client can use them.
 * @param describeView called for a header whose value is rewritten for the client; most responses have none
 * @param corsOrigin the page origin that the response is allowed for: its CORS headers replace the upstream's
 */
export function rewriteResponseHeaders(
  rawHeaders: readonly string[],
  describeView: () => ClientView,
  corsOrigin: string | undefined,
): string[] {
  const nominated = parseConnectionOptions(rawHeaders);
  const headers: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const { lower: name, isRemoved, isCors, rewrite } = responseHeaderClasses.find(rawHeaders[at] ?? '');
    if (isRemoved || nominated.has(name)) continue;
    if (corsOrigin !== undefined && isCors) continue;
    const value = rawHeaders[at + 1] ?? '';
    headers.push(rawHeaders[at] ?? '', rewrite === undefined ? value : rewrite(value, describeView()));
  }
  return corsOrigin === undefined ? headers : [...headers, ...corsHeaders(corsOrigin)];
}

/** A 204 that states a length would have its client wait for a body that never comes (RFC 9110 §8.6). */
export function withoutContentLength(headers: readonly string[]): string[] {
  const isLength = (at: number): boolean => headers[at]?.toLowerCase() === 'content-length';
  return headers.filter((_, at) => !isLength(at - (at % 2)));
}

/** The CORS headers of a response for an allowed page origin (Fetch standard, CORS protocol). */
export function corsHeaders(origin: string): string[] {
  return ['Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', '*', 'Vary', 'Origin'];
}

const NO_OPTIONS: ReadonlySet<string> = new Set();

/** The names that `Connection` nominates, in lower case. */
export function parseConnectionOptions(rawHeaders: readonly string[]): ReadonlySet<string> {
  let options: Set<string> | undefined;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (name.length !== 10 || name.toLowerCase() !== 'connection') continue;
    const value = rawHeaders[at + 1] ?? '';
    if (namesNoHeader(value)) continue;
    options ??= new Set();
    for (const option of value.split(',')) options.add(canonicalizeName(option.trim()));
  }
  return options ?? NO_OPTIONS;
}

/** The usual values of `Connection`. */
function namesNoHeader(connection: string): boolean {
  return connection === 'keep-alive' || connection === 'close';
}

/** In lower case, with underscores read as hyphens: gateways such as CGI cannot distinguish the two. */
function canonicalizeName(name: string): string {
  const lower = name.toLowerCase();
  return lower.includes('_') ? lower.replaceAll('_', '-') : lower;
}
