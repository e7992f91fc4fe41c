/**
 * Parses the response of a token endpoint: a success by RFC 6749 §5.1 and as servers really send it. Errors are parsed in
 * error-response.ts. Pure. Not oauth4webapi: it accepts any string as a token and `3600abc` as a lifetime, and its errors carry the token
 * in `cause`, so that the same checks would be needed around it.
 */
import { MASK, type Redact } from '../../platform/secret-redaction.ts';
import { msFromMaking, type MadeAt } from '../../platform/origin-clock.ts';
import { createRedact } from '../../platform/secrets.ts';
import { parseErrorResponse } from './error-response.ts';
import { findMember, parseJsonObject, type JsonFields } from './json-object.ts';
import type { EchoFilter, ShowServerText } from './server-text.ts';

/** The result of one token request. No `detail` holds a token, a secret or a raw body. */
export type TokenRequestResult =
  | {
      readonly kind: 'ok';
      /** Visible ASCII without a comma: it cannot break or split a header field. */
      readonly value: string;
      readonly lifetimeMs: number;
      /** Why `lifetimeMs` is `auth.defaultLifetimeMs`, after "the server sends"; absent when the server stated a lifetime. */
      readonly lifetimeFault?: string;
      /** The response stated no lifetime, and `lifetimeMs` lasts to the end that was stated with the same token before; below 0 when that has passed. Default false. */
      readonly endsAsKnown?: boolean;
      /** Undefined when absent or empty. */
      readonly scope: string | undefined;
      /** Only for the grant that uses one. Default: the response has none. */
      readonly refreshToken?: string;
    }
  /** The client, its grant or the endpoint's address was rejected: an early retry cannot help. */
  | ({
      readonly kind: 'rejected';
      readonly error?: string;
      /** A 401 without an OAuth error: it may come from something in front of the server. Default false. */
      readonly isUnexplained?: boolean;
    } & FailureDetail)
  | ({
      readonly kind: 'unavailable';
      /** A 2xx, or a 429 that states no wait: an early retry cannot help. Default false. */
      readonly isLasting?: boolean;
      /** The OAuth error code of a server that is busy or broken, such as `slow_down`. */
      readonly error?: string;
    } & FailureDetail)
  /** A 200 or 201 without a usable token. */
  | ({ readonly kind: 'malformed' } & FailureDetail);

interface FailureDetail {
  readonly detail: string;
  readonly refreshToken?: string;
  /** The endpoint's own `Retry-After`, or how long the process that sent the request waits; milliseconds. Default: none is known. */
  readonly retryAfterMs?: number;
  /** Who sent the request; undefined = this process. */
  readonly from?: string;
  /** No request was sent, because a file that it needs cannot be used. Default false. */
  readonly isUnsent?: boolean;
}

export type TokenRequestFailure = Exclude<TokenRequestResult, { kind: 'ok' }>;

/** `expires_in` has whole seconds: less is 0. Honoured, it would end during the first request, and its refreshes would flood the endpoint. */
const MIN_LIFETIME_MS = 1_000;
/** Keeps every instant within what a Date can show. */
const MAX_LIFETIME_MS = 365 * 24 * 3_600_000;
/** Servers accept header lines up to 8 or 16 KiB. */
const MAX_TOKEN_LENGTH = 16 * 1024;
const MAX_SHOWN_TYPE_CHARS = 40;

/** More than `b64token` (RFC 6750 §2.1), because servers send more. A comma would let a proxy split the field into two. */
export const TOKEN_SYNTAX = /^[\x21-\x2B\x2D-\x7E]+$/;
const DECIMAL = /^[+-]?\d+(\.\d+)?$/;
/** In small letters. Without a type it is taken for Bearer: no other type was requested. */
const BEARER_TYPES: readonly unknown[] = ['bearer', 'bearertoken', '', null];

/** Where the members of a token response are: names, or names that dots join. */
export interface TokenResponseForm {
  /** For another one than `access_token` the member `token_type` has no meaning. */
  readonly tokenField: string;
  readonly expiresInField: string;
  readonly expiresInUnit: 'seconds' | 'milliseconds';
  /** The lifetime of a token whose own is not stated, milliseconds. */
  readonly defaultLifetimeMs: number;
  /** What calls put before the token: a `token_type` that one of them names is accepted. Default: Bearer alone. */
  readonly tokenPrefixes?: readonly string[];
}

const STANDARD_TOKEN_FIELD = 'access_token';

/** Parses the body of a 200 or 201. Never throws. Apart from `value`, the result holds neither the token nor a sent secret. */
export function parseTokenResponse(
  body: string,
  echoFilter: EchoFilter,
  form: TokenResponseForm,
  { status, made }: { readonly status: number; readonly made: MadeAt },
): TokenRequestResult {
  const { tokenField } = form;
  const createMalformedResult = (fault: string): TokenRequestResult => ({
    kind: 'malformed',
    detail: `the token endpoint answered ${String(status)} with ${fault}`,
  });
  const { holdsCredential, redact, showText, requestedScope } = echoFilter;
  const fields = parseJsonObject(body);
  if (fields === undefined) return createMalformedResult('a body that is not a JSON object');
  const { token_type: type = null, scope } = fields;
  const value = findMember(fields, tokenField);
  if (typeof value !== 'string' || value === '') {
    const { text } = parseErrorResponse(body, undefined, (words, maxChars) => showText(maskTokens(words), maxChars));
    return createMalformedResult(`no ${tokenField}${text}`);
  }
  if (value.length > MAX_TOKEN_LENGTH)
    return createMalformedResult(`${tokenField} of more than ${String(MAX_TOKEN_LENGTH)} characters`);
  if (holdsCredential(value)) return createMalformedResult(`${tokenField} that contains the credential of the client`);
  if (!TOKEN_SYNTAX.test(value))
    return createMalformedResult(`${tokenField} with characters that a bearer token may not have`);
  if (tokenField === STANDARD_TOKEN_FIELD && !isSentType(type, form))
    return createMalformedResult(`a token_type other than Bearer: ${showTokenType(type, value, echoFilter)}`);
  const names = readScope(scope);
  const grantedScope = names === '' ? undefined : redactScope(names, value, redact, requestedScope);
  return { kind: 'ok', value, ...readLifetime(fields, form, made), scope: grantedScope };
}

/** With the refresh token beside the token, or at the top, if it can be sent (RFC 6749 appendix A.17). Masks it in other members. */
export function addRefreshToken(
  result: TokenRequestResult,
  body: string,
  { tokenField }: Pick<TokenResponseForm, 'tokenField'>,
): TokenRequestResult {
  const fields = parseJsonObject(body) ?? {};
  const beside = findMember(fields, tokenField.replace(/[^.]+$/, 'refresh_token'));
  const refreshToken = beside ?? fields.refresh_token;
  if (typeof refreshToken !== 'string' || !/^\P{Cc}+$/u.test(refreshToken)) return result;
  const redact = createRedact([refreshToken]);
  if (result.kind !== 'ok') return { ...result, refreshToken, detail: redact(result.detail) };
  return { ...result, refreshToken, scope: result.scope && redact(result.scope) };
}

/** Masks the tokens of a refusal, which the sidecar does not take and so does not know, in its texts. */
export function hideTokens(
  body: string | undefined,
  { tokenField }: Pick<TokenResponseForm, 'tokenField'>,
  showText: ShowServerText,
): ShowServerText {
  const fields = parseJsonObject(body ?? '') ?? {};
  const tokens = [findMember(fields, tokenField), fields.refresh_token].filter((value) => typeof value === 'string');
  const redact = createRedact(tokens);
  return (text, maxChars) => showText(redact(text), maxChars);
}

function isSentType(type: unknown, { tokenPrefixes = [] }: TokenResponseForm): boolean {
  const lower = typeof type === 'string' ? type.toLowerCase() : type;
  return BEARER_TYPES.includes(lower) || tokenPrefixes.some((prefix) => prefix.trim().toLowerCase() === lower);
}

/** Masks what may be a token, in a response whose token is elsewhere than configured: long words with a digit. */
function maskTokens(text: string): string {
  return text.replaceAll(/\S{16,}/g, (word) => (/\d/.test(word) ? MASK : word));
}

/** Names that blanks separate; empty when they are not known. Some servers send a list. */
function readScope(scope: unknown): string {
  const names: readonly unknown[] = Array.isArray(scope) ? scope : [scope];
  return names.every((name) => typeof name === 'string') ? names.filter((name) => name !== '').join(' ') : '';
}

function showTokenType(type: unknown, token: string, { showText }: EchoFilter): string {
  if (typeof type !== 'string') return 'not a string';
  return `"${showText(createRedact([token])(type), MAX_SHOWN_TYPE_CHARS)}"`;
}

function redactScope(scope: string, token: string, redact: Redact, requestedScope = ''): string {
  const requested = new Set(requestedScope.split(' '));
  if (scope.split(' ').every((name) => requested.has(name))) return scope;
  return redact(createRedact([token])(scope));
}

/** Above these a number is an instant since the epoch: as a duration it would be longer than 30 years. */
const LEAST_INSTANT_SECONDS = 1e9;
const LEAST_INSTANT_MS = 1e12;

/** Some servers send the number as a string, some the instant of the end, and some tokens without a stated end. */
function readLifetime(
  fields: JsonFields,
  { defaultLifetimeMs, expiresInField, expiresInUnit }: TokenResponseForm,
  made: MadeAt,
): { readonly lifetimeMs: number; readonly lifetimeFault?: string } {
  const assume = (lifetimeFault: string) => ({ lifetimeMs: defaultLifetimeMs, lifetimeFault });
  const expiresIn = findMember(fields, expiresInField);
  if (expiresIn === undefined || expiresIn === null || expiresIn === '') return assume(`no ${expiresInField}`);
  const text = typeof expiresIn === 'string' ? expiresIn.trim() : undefined;
  const stated = text !== undefined && DECIMAL.test(text) ? Number(text) : expiresIn;
  if (typeof stated !== 'number') return assume(`${expiresInField} that is not a number`);
  const isInSeconds = expiresInUnit === 'seconds' && stated <= LEAST_INSTANT_MS;
  const statedMs = isInSeconds ? stated * 1000 : stated;
  const isInstant = isInSeconds ? stated > LEAST_INSTANT_SECONDS : stated > LEAST_INSTANT_MS;
  const lifetimeMs = (isInstant ? msFromMaking(statedMs, made) : statedMs) - made.ageMs;
  if (lifetimeMs < MIN_LIFETIME_MS)
    return assume(
      isInstant || statedMs >= MIN_LIFETIME_MS ? `${expiresInField} that has passed` : `${expiresInField} below 1 s`,
    );
  return { lifetimeMs: Math.min(lifetimeMs, MAX_LIFETIME_MS) };
}

/** Each once, in the order requested. @param granted undefined or empty = unknown, which counts as all granted */
export function findMissingScopes(requested: string | undefined, granted: string | undefined): readonly string[] {
  const [wanted, known] = [requested, granted].map((scope = '') => scope.split(' ').filter((name) => name !== ''));
  return known?.length === 0 ? [] : [...new Set(wanted)].filter((name) => known?.includes(name) !== true);
}
