/**
 * Reads what a token endpoint said: a success by RFC 6749 §5.1, an error by §5.2, a wait by RFC 9110 §10.2.3.
 * Pure. Sending the request is token-endpoint's; what to do about the answer is token-source's.
 * Not oauth4webapi: of this it checks the least (any string passes as a token, `3600abc` as a life), and its errors
 * carry the token in `cause`, so that every use of it needs the same bounds and checks around it.
 */
import { parseHttpDate } from '../../platform/http-date.ts';
import { createRedact, type Redact } from '../../platform/secret-redaction.ts';

/** What one request to the token endpoint came to. No `detail` holds a token, a secret or a raw body. */
export type TokenRequestResult =
  | {
      readonly kind: 'ok';
      /** Consists of RFC 6750 §2.1 `b64token` characters only. */
      readonly value: string;
      readonly lifetimeMs: number;
      /** Undefined when absent or empty. */
      readonly scope: string | undefined;
    }
  /** The client, its grant or the endpoint's address was refused: asking again soon is of no use. */
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
  /** A success that is none. */
  | ({ readonly kind: 'malformed' } & FailureDetail);

interface FailureDetail {
  readonly detail: string;
  /** Who has asked, if it was not this process. */
  readonly from?: string;
}

/** One that brought no token. */
export type TokenRequestFailure = Exclude<TokenRequestResult, { kind: 'ok' }>;

/** The life of a token whose answer does not state one (RFC 6749 §5.1 leaves that to documentation): 300 s. */
export const DEFAULT_LIFETIME_MS = 300_000;

/** A shorter life ends in the flight of the first request, and renewing such tokens would be a flood. */
const SHORTEST_LIFETIME_MS = 1_000;
/** Keeps every instant within what a Date can show. */
const LONGEST_LIFETIME_MS = 365 * 24 * 3_600_000;
/** Past this no server takes the field line (its own limits are 8 or 16 KiB). */
const LONGEST_TOKEN = 16 * 1024;
const LONGEST_ERROR_CODE = 100;
/** A shorter one would be found in words by chance. */
const SHORTEST_REDACTED_TOKEN = 8;

const B64_TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;
const DECIMAL = /^\d+(\.\d+)?$/;
/** Everything outside RFC 6749 §5.2's `error` characters: %x20-21 / %x23-5B / %x5D-7E. */
const NOT_ERROR_CHARACTER = /[^\x20-\x21\x23-\x5B\x5D-\x7E]/g;

/** What a server may echo of what it knows. */
export interface EchoFilter {
  /** The client's credential in every encoding. It must not be part of the access token, which is sent to the upstream. */
  readonly credentialForms: readonly string[];
  /** Takes what was sent in confidence out of a text. */
  readonly redact: Redact;
  /** Scopes asked for, separated by blanks: these names are no echo. */
  readonly requestedScope: string | undefined;
}

const EMPTY_ECHO_FILTER: EchoFilter = { credentialForms: [], redact: (text) => text, requestedScope: undefined };

/** Checks the body of a 200. Never throws. No text of the result but the token holds what was sent in confidence, or the token. */
export function parseTokenResponse(
  body: string,
  { credentialForms, redact, requestedScope }: EchoFilter = EMPTY_ECHO_FILTER,
): TokenRequestResult {
  const answer = parseObject(body);
  if (answer === undefined) return createMalformedResult('a body that is not a JSON object');
  const { access_token: value, token_type: type, expires_in: expiresIn, scope = null } = answer;
  if (typeof value !== 'string' || value === '') return createMalformedResult('no access_token');
  if (value.length > LONGEST_TOKEN)
    return createMalformedResult(`an access_token of more than ${String(LONGEST_TOKEN)} characters`);
  if (credentialForms.some((proof) => value.includes(proof)))
    return createMalformedResult('an access_token that contains the credential of the client');
  if (!B64_TOKEN.test(value))
    return createMalformedResult('an access_token with characters that a bearer token may not have');
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer')
    return createMalformedResult('a token_type other than Bearer');
  const lifetimeMs = parseLifetimeMs(expiresIn);
  if (lifetimeMs === undefined)
    return createMalformedResult('an expires_in that is not a number of seconds, 1 or more');
  if (scope !== null && typeof scope !== 'string') return createMalformedResult('a scope that is not a string');
  const shown = scope === null || scope === '' ? undefined : redactScope(scope, value, redact, requestedScope);
  return { kind: 'ok', value, lifetimeMs, scope: shown };
}

function redactScope(scope: string, token: string, redact: Redact, askedScope = ''): string {
  const asked = new Set(askedScope.split(' '));
  if (scope.split(' ').every((name) => asked.has(name))) return scope;
  return redact(token.length < SHORTEST_REDACTED_TOKEN ? scope : createRedact([token])(scope));
}

/**
 * The OAuth `error` of an error answer's body, reduced to the characters of RFC 6749 §5.2 and at most 100 of them;
 * undefined when there is none. `error_description` is left out: free text may echo what was sent.
 * @param redact takes out what was sent in confidence, should the code echo it
 */
export function parseOAuthError(body: string, redact: Redact): string | undefined {
  const code = parseObject(body)?.error;
  if (typeof code !== 'string') return undefined;
  // Before and behind: a secret may hold such characters, and may be hidden between them.
  const shown = redact(redact(code).replace(NOT_ERROR_CHARACTER, '')).slice(0, LONGEST_ERROR_CODE);
  return shown === '' ? undefined : shown;
}

/**
 * Milliseconds that `Retry-After` asks for: whole seconds or an HTTP-date in any of its three forms, one past counting
 * as 0; undefined when absent or unreadable.
 * @param wallNow epoch milliseconds
 */
export function parseRetryAfterMs(field: string | readonly string[] | undefined, wallNow: number): number | undefined {
  if (typeof field !== 'string') return undefined;
  const text = field.trim();
  if (/^\d{1,10}$/.test(text)) return Number(text) * 1000;
  const at = parseHttpDate(text, wallNow);
  return at === undefined ? undefined : Math.max(0, at - wallNow);
}

/** Some servers quote the number. */
function parseLifetimeMs(expiresIn: unknown): number | undefined {
  if (expiresIn === undefined || expiresIn === null) return DEFAULT_LIFETIME_MS;
  const seconds = typeof expiresIn === 'string' && DECIMAL.test(expiresIn) ? Number(expiresIn) : expiresIn;
  if (typeof seconds !== 'number' || !(seconds * 1000 >= SHORTEST_LIFETIME_MS)) return undefined;
  return Math.min(seconds * 1000, LONGEST_LIFETIME_MS);
}

function parseObject(body: string): Readonly<Record<string, unknown>> | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    // The parser's message quotes the body, which may be the token.
    return undefined;
  }
  return isObject(parsed) ? parsed : undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function createMalformedResult(found: string): TokenRequestResult {
  return { kind: 'malformed', detail: `the token endpoint answered 200 with ${found}` };
}
