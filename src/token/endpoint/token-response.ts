/**
 * Parses the response of a token endpoint: a success by RFC 6749 §5.1, an error by §5.2, `Retry-After` by RFC 9110 §10.2.3.
 * Pure. Not oauth4webapi: it accepts any string as a token and `3600abc` as a lifetime, and its errors carry the token in
 * `cause`, so that the same checks would be needed around it.
 */
import { parseHttpDate } from '../../platform/http-date.ts';
import { createRedact, type Redact } from '../../platform/secret-redaction.ts';
import { MIN_SECRET_LENGTH } from './echo-filter.ts';
import type { EchoFilter } from './echo-filter.ts';
import { parseJsonObject } from './json-object.ts';

/** The result of one token request. No `detail` holds a token, a secret or a raw body. */
export type TokenRequestResult =
  | {
      readonly kind: 'ok';
      /** Consists of RFC 6750 §2.1 `b64token` characters only. */
      readonly value: string;
      readonly lifetimeMs: number;
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
    } & FailureDetail)
  /** A 200 without a usable token. */
  | ({ readonly kind: 'malformed' } & FailureDetail);

interface FailureDetail {
  readonly detail: string;
  /** Who sent the request; undefined = this process. */
  readonly from?: string;
}

export type TokenRequestFailure = Exclude<TokenRequestResult, { kind: 'ok' }>;

/** For a response without `expires_in`, whose default RFC 6749 §5.1 leaves to documentation. */
export const DEFAULT_LIFETIME_MS = 300_000;

/** A shorter lifetime ends during the first request, and its refreshes would flood the endpoint. */
const MIN_LIFETIME_MS = 1_000;
/** Keeps every instant within what a Date can show. */
const MAX_LIFETIME_MS = 365 * 24 * 3_600_000;
/** Servers accept header lines up to 8 or 16 KiB. */
const MAX_TOKEN_LENGTH = 16 * 1024;
const MAX_ERROR_LENGTH = 100;

const B64_TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;
const DECIMAL = /^\d+(\.\d+)?$/;
/** Outside the characters of `error` (RFC 6749 §5.2): %x20-21 / %x23-5B / %x5D-7E. */
const NOT_ERROR_CHARACTER = /[^\x20-\x21\x23-\x5B\x5D-\x7E]/g;

const EMPTY_ECHO_FILTER: EchoFilter = { credentialForms: [], redact: (text) => text, requestedScope: undefined };

/** Parses the body of a 200. Never throws. Apart from `value`, the result holds neither the token nor a sent secret. */
export function parseTokenResponse(
  body: string,
  { credentialForms, redact, requestedScope }: EchoFilter = EMPTY_ECHO_FILTER,
): TokenRequestResult {
  const fields = parseJsonObject(body);
  if (fields === undefined) return createMalformedResult('a body that is not a JSON object');
  const { access_token: value, token_type: type, expires_in: expiresIn, scope = null } = fields;
  if (typeof value !== 'string' || value === '') return createMalformedResult('no access_token');
  if (value.length > MAX_TOKEN_LENGTH)
    return createMalformedResult(`an access_token of more than ${String(MAX_TOKEN_LENGTH)} characters`);
  if (credentialForms.some((form) => value.includes(form)))
    return createMalformedResult('an access_token that contains the credential of the client');
  if (!B64_TOKEN.test(value))
    return createMalformedResult('an access_token with characters that a bearer token may not have');
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer')
    return createMalformedResult('a token_type other than Bearer');
  const lifetimeMs = parseLifetimeMs(expiresIn);
  if (lifetimeMs === undefined)
    return createMalformedResult('an expires_in that is not a number of seconds, 1 or more');
  if (scope !== null && typeof scope !== 'string') return createMalformedResult('a scope that is not a string');
  if (scope === null || scope === '') return { kind: 'ok', value, lifetimeMs, scope: undefined };
  return { kind: 'ok', value, lifetimeMs, scope: redactScope(scope, value, redact, requestedScope) };
}

function redactScope(scope: string, token: string, redact: Redact, requestedScope = ''): string {
  const requested = new Set(requestedScope.split(' '));
  if (scope.split(' ').every((name) => requested.has(name))) return scope;
  return redact(token.length < MIN_SECRET_LENGTH ? scope : createRedact([token])(scope));
}

/**
 * The OAuth `error` in the body of an error response, cut to the characters of RFC 6749 §5.2 and to 100 of them; undefined
 * when there is none. `error_description` is ignored: free text may echo what was sent.
 * @param redact masks sent secrets
 */
export function parseOAuthError(body: string, redact: Redact): string | undefined {
  const code = parseJsonObject(body)?.error;
  if (typeof code !== 'string') return undefined;
  // Twice: a secret may contain removed characters, and may appear only after their removal.
  const shown = redact(redact(code).replace(NOT_ERROR_CHARACTER, '')).slice(0, MAX_ERROR_LENGTH);
  return shown === '' ? undefined : shown;
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

/** Some servers send the number as a string. */
function parseLifetimeMs(expiresIn: unknown): number | undefined {
  if (expiresIn === undefined || expiresIn === null) return DEFAULT_LIFETIME_MS;
  const seconds = typeof expiresIn === 'string' && DECIMAL.test(expiresIn) ? Number(expiresIn) : expiresIn;
  if (typeof seconds !== 'number' || !(seconds * 1000 >= MIN_LIFETIME_MS)) return undefined;
  return Math.min(seconds * 1000, MAX_LIFETIME_MS);
}

function createMalformedResult(fault: string): TokenRequestResult {
  return { kind: 'malformed', detail: `the token endpoint answered 200 with ${fault}` };
}
