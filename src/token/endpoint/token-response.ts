/**
 * Parses the response of a token endpoint: a success by RFC 6749 §5.1 and as servers really send it, `Retry-After` by RFC 9110
 * §10.2.3. Errors are parsed in error-response.ts. Pure. Not oauth4webapi: it accepts any string as a token and `3600abc` as a lifetime, and its errors carry the token in
 * `cause`, so that the same checks would be needed around it.
 */
import { parseHttpDate } from '../../platform/http-date.ts';
import { createRedact, type Redact } from '../../platform/secret-redaction.ts';
import { MIN_SECRET_LENGTH } from './echo-filter.ts';
import type { EchoFilter } from './echo-filter.ts';
import { parseErrorResponse } from './error-response.ts';
import { parseJsonObject } from './json-object.ts';
import { createServerTextFilter } from './server-text.ts';

/** The result of one token request. No `detail` holds a token, a secret or a raw body. */
export type TokenRequestResult =
  | {
      readonly kind: 'ok';
      /** Visible ASCII without a comma: it cannot break or split a header field. */
      readonly value: string;
      readonly lifetimeMs: number;
      /** Why `lifetimeMs` is `auth.defaultLifetimeMs`; absent when the server stated a lifetime. */
      readonly lifetimeFault?: LifetimeFault;
      /** Undefined when absent or empty. */
      readonly scope: string | undefined;
    }
  /** The client, its grant or the endpoint's address was refused: an early retry cannot help. */
  | ({
      readonly kind: 'rejected';
      /** The OAuth error code, if the server named one. */
      readonly error?: string;
    } & FailureDetail)
  | ({
      readonly kind: 'unavailable';
      /** The endpoint's own `Retry-After`, milliseconds. */
      readonly retryAfterMs?: number;
      /** The OAuth error code of a server that is busy or broken, such as `slow_down`. */
      readonly error?: string;
    } & FailureDetail)
  /** A 200 or 201 without a usable token. */
  | ({ readonly kind: 'malformed' } & FailureDetail);

interface FailureDetail {
  readonly detail: string;
  /** Who sent the request; undefined = this process. */
  readonly from?: string;
  /** No request was sent, because a file that it needs cannot be used. Default false. */
  readonly isUnsent?: boolean;
}

export type TokenRequestFailure = Exclude<TokenRequestResult, { kind: 'ok' }>;

/** Follows "the server sends": the same text for every token with the same fault. */
export type LifetimeFault = 'no expires_in' | 'an expires_in of less than 1 s' | 'an expires_in that is not a number';

/** For a response without `expires_in`, whose default RFC 6749 §5.1 leaves to documentation. */
const DEFAULT_LIFETIME_MS = 300_000;

/** `expires_in` has whole seconds: less is 0. Honoured, it would end during the first request, and its refreshes would flood the endpoint. */
const MIN_LIFETIME_MS = 1_000;
/** Keeps every instant within what a Date can show. */
const MAX_LIFETIME_MS = 365 * 24 * 3_600_000;
/** Servers accept header lines up to 8 or 16 KiB. */
const MAX_TOKEN_LENGTH = 16 * 1024;
const MAX_SHOWN_TYPE_CHARS = 40;

/** More than `b64token` (RFC 6750 §2.1), because servers send more. A comma would let a proxy split the field into two. */
const TOKEN = /^[\x21-\x2B\x2D-\x7E]+$/;
const DECIMAL = /^[+-]?\d+(\.\d+)?$/;
/** In small letters. Without a type it is taken for Bearer: no other type was requested. */
const BEARER_TYPES: readonly unknown[] = ['bearer', 'bearertoken', '', null];

const EMPTY_ECHO_FILTER: EchoFilter = {
  credentialForms: [],
  redact: (text) => text,
  showText: createServerTextFilter([], ''),
  requestedScope: undefined,
};

export interface TokenResponseFacts {
  /** 200 or 201. Default 200 */
  readonly status?: number;
  /** The lifetime of a token whose own is not stated, milliseconds. Default 300000 */
  readonly defaultLifetimeMs?: number;
}

/**
 * Parses the body of a 200 or 201. Never throws. Apart from `value`, the result holds neither the token nor a sent secret.
 */
export function parseTokenResponse(
  body: string,
  echoFilter: EchoFilter = EMPTY_ECHO_FILTER,
  { status = 200, defaultLifetimeMs = DEFAULT_LIFETIME_MS }: TokenResponseFacts = {},
): TokenRequestResult {
  const createMalformedResult = (fault: string): TokenRequestResult => ({
    kind: 'malformed',
    detail: `the token endpoint answered ${String(status)} with ${fault}`,
  });
  const { credentialForms, redact, requestedScope } = echoFilter;
  const fields = parseJsonObject(body);
  if (fields === undefined) return createMalformedResult('a body that is not a JSON object');
  const { access_token: value, token_type: type = null, expires_in: expiresIn, scope = null } = fields;
  if (typeof value !== 'string' || value === '')
    return createMalformedResult(`no access_token${parseErrorResponse(body, undefined, echoFilter.showText).text}`);
  if (value.length > MAX_TOKEN_LENGTH)
    return createMalformedResult(`an access_token of more than ${String(MAX_TOKEN_LENGTH)} characters`);
  const readings = [value, decodePercent(value)];
  if (credentialForms.some((form) => readings.some((reading) => reading.includes(form))))
    return createMalformedResult('an access_token that contains the credential of the client');
  if (!TOKEN.test(value))
    return createMalformedResult('an access_token with characters that a bearer token may not have');
  if (!BEARER_TYPES.includes(typeof type === 'string' ? type.toLowerCase() : type))
    return createMalformedResult(`a token_type other than Bearer: ${showTokenType(type, value, echoFilter)}`);
  if (scope !== null && typeof scope !== 'string') return createMalformedResult('a scope that is not a string');
  const grantedScope = scope === null || scope === '' ? undefined : redactScope(scope, value, redact, requestedScope);
  return { kind: 'ok', value, ...readLifetime(expiresIn, defaultLifetimeMs), scope: grantedScope };
}

function decodePercent(text: string): string {
  return text.replace(/%([\da-f]{2})/gi, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)));
}

function showTokenType(type: unknown, token: string, { showText }: EchoFilter): string {
  if (typeof type !== 'string') return 'not a string';
  const redact = token.length < MIN_SECRET_LENGTH ? (text: string) => text : createRedact([token]);
  return `"${showText(redact(type), MAX_SHOWN_TYPE_CHARS)}"`;
}

function redactScope(scope: string, token: string, redact: Redact, requestedScope = ''): string {
  const requested = new Set(requestedScope.split(' '));
  if (scope.split(' ').every((name) => requested.has(name))) return scope;
  return redact(token.length < MIN_SECRET_LENGTH ? scope : createRedact([token])(scope));
}

/**
 * `Retry-After` in milliseconds: whole seconds or an HTTP-date in any of its three forms, one in the past as 0; undefined
 * when absent or unreadable.
 * @param wallNow epoch milliseconds
 */
export function parseRetryAfterMs(field: string | readonly string[] | undefined, wallNow: number): number | undefined {
  if (typeof field !== 'string') return undefined;
  const text = field.trim();
  if (/^\d{1,10}$/.test(text)) return Number(text) * 1000;
  const at = parseHttpDate(text, wallNow);
  return at === undefined ? undefined : Math.max(0, at - wallNow);
}

/** Some servers send the number as a string, and some tokens without a stated end. */
function readLifetime(
  expiresIn: unknown,
  defaultLifetimeMs: number,
): { readonly lifetimeMs: number; readonly lifetimeFault?: LifetimeFault } {
  const assume = (lifetimeFault: LifetimeFault) => ({ lifetimeMs: defaultLifetimeMs, lifetimeFault });
  if (expiresIn === undefined || expiresIn === null || expiresIn === '') return assume('no expires_in');
  const text = typeof expiresIn === 'string' ? expiresIn.trim() : undefined;
  const seconds = text !== undefined && DECIMAL.test(text) ? Number(text) : expiresIn;
  if (typeof seconds !== 'number') return assume('an expires_in that is not a number');
  if (seconds * 1000 < MIN_LIFETIME_MS) return assume('an expires_in of less than 1 s');
  return { lifetimeMs: Math.min(seconds * 1000, MAX_LIFETIME_MS) };
}
