/**
 * Formats of credentials: client id and secret (RFC 6749 §2.3.1), scope (§3.3), the required header (RFC 9110 §5.6.2, §5.5).
 * The same checks apply to the contents of a `…File`.
 */
import { MASK } from '../../../platform/secret-redaction.ts';
import { isHeaderValue } from '../../../token/client/secret-file.ts';
import { checkedText, matching, quotedText, type Format } from './formats.ts';

/** The fault of a client secret, without quoting it; undefined when there is none. */
export function secretFault(value: string): string | undefined {
  if (value === '') return 'must not be empty';
  if (/\p{Cc}/u.test(value)) return 'must not hold control characters (a line end or tab among them)';
  // `config` prints the mask; read back from its output it would be sent as the secret.
  if (value === MASK) return `is the mask ${MASK}, not the value itself`;
  return undefined;
}

/** As secretFault, for a query parameter. */
export function queryValueFault(value: string): string | undefined {
  return secretFault(value) ?? (value.isWellFormed() ? undefined : 'must be Unicode text');
}

export function queryNameFault(name: string): string | undefined {
  const isName = /^\P{Cc}+$/u.test(name) && name.isWellFormed() && name !== '__proto__';
  return isName ? undefined : 'expected the name of a parameter, not encoded, such as api_key';
}

/** As secretFault; also refuses what a header field cannot carry unchanged. */
export function headerValueFault(value: string): string | undefined {
  const fault = secretFault(value);
  if (fault !== undefined) return fault;
  return isHeaderValue(value) ? undefined : 'must be printable ASCII without a blank at either end';
}

export function secret(expected: string, faultOf: (value: string) => string | undefined): Format<string> {
  return quotedText({ expected, check: (text) => faultOf(text) ?? true, pattern: String.raw`^\P{Cc}+$` });
}

export const scope = matching(
  /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/,
  'scope names of printable ASCII without quotes or backslashes, one blank between them',
);

/** The name of a header field (RFC 9110 §5.1). */
export const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Header fields that the token request sets itself. */
const TOKEN_REQUEST_HEADERS = new Set('accept accept-encoding'.split(' '));

/** Header fields that frame or route a message. */
const FRAMING_HEADERS = new Set([
  ...'connection content-encoding content-length content-range content-type expect host keep-alive'.split(' '),
  ...'te trailer transfer-encoding upgrade'.split(' '),
]);

const FRAMING_FAULT = 'expected a field that does not frame or route the message';

/** Parameters of the token request that another setting decides. */
const PARAMETERS_WITH_SETTING = new Map([
  ['audience', 'auth.audience'],
  ['grant_type', 'auth.grantType'],
  ['resource', 'auth.resource'],
  ['scope', 'auth.scope'],
]);

/** The fault of the name of an extra parameter (RFC 6749 appendix A). */
export function extraParameterNameFault(name: string): string | undefined {
  const own = PARAMETERS_WITH_SETTING.get(name);
  if (own !== undefined) return `is set by ${own}`;
  return /^[\w.-]+$/.test(name) && name !== '__proto__'
    ? undefined
    : 'expected a name of letters, digits, "-", "." and "_"';
}

/** Who decides a claim of an assertion that cannot be given (RFC 7519 §4.1). */
const CLAIMS_WITH_OWNER = new Map([
  ['iss', 'auth.clientId'],
  ['aud', 'auth.assertionAudience'],
  ['exp', 'the sidecar itself'],
  ['iat', 'the sidecar itself'],
  ['nbf', 'the sidecar itself'],
  ['jti', 'the sidecar itself'],
]);

export function claimNameFault(name: string): string | undefined {
  const owner = CLAIMS_WITH_OWNER.get(name);
  if (owner !== undefined) return `is set by ${owner}`;
  return name === '' || name === '__proto__' ? 'expected the name of a claim, such as sub' : undefined;
}

export function extraHeaderNameFault(name: string): string | undefined {
  const lower = name.toLowerCase();
  if (FRAMING_HEADERS.has(lower) || TOKEN_REQUEST_HEADERS.has(lower) || lower.startsWith('proxy-'))
    return 'is set by the sidecar itself';
  return HEADER_NAME.test(name) && name !== '__proto__' ? undefined : 'expected a field name such as X-Api-Key';
}

export const headerName = fieldName('X-Sidecar-Key', (name) =>
  FRAMING_HEADERS.has(name.toLowerCase()) ? FRAMING_FAULT : undefined,
);

const OTHER_MEANING = 'expected a field that has no other meaning';

/** Fields of requests and responses with a meaning of their own, which a token or a random key would break. */
const MEANINGFUL_FIELDS = [
  /^(?:accept|access-control|content|if|sec)(?:-|$)/,
  /^(?:age|allow|cache-control|date|digest|etag|expires|last-modified|location|pragma|repr-digest|retry-after)$/,
  /^(?:baggage|early-data|forwarded|from|max-forwards|origin|prefer|priority|range|referer|server|set-cookie)$/,
  /^(?:traceparent|tracestate|user-agent|vary|via|www-authenticate|x-forwarded-(?:for|host|port|proto)|x-real-ip)$/,
];

function otherMeaningFault(name: string): string | undefined {
  const isMeaningful = MEANINGFUL_FIELDS.some((field) => field.test(canonicalFieldName(name)));
  return upstreamHeaderNameFault(name) ?? (isMeaningful ? OTHER_MEANING : undefined);
}

export const tokenHeader = fieldName('Authorization', otherMeaningFault);

/** The field of an idempotency key (draft-ietf-httpapi-idempotency-key-header). */
export const idempotencyKeyHeader = fieldName('Idempotency-Key', (name) =>
  /^(?:authorization|cookie)$/i.test(name) ? OTHER_MEANING : otherMeaningFault(name),
);

function fieldName(example: string, faultOf: (name: string) => string | undefined): Format<string> {
  return checkedText({
    expected: `a field name such as ${example}`,
    check: (name) => faultOf(name) ?? HEADER_NAME.test(name),
    pattern: HEADER_NAME.source,
  });
}

/** In lower case, with hyphens for underscores: gateways such as CGI do not distinguish `_` from `-`. */
export function canonicalFieldName(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}

/** The fault of the name of a header field that every call carries. */
export function upstreamHeaderNameFault(name: string): string | undefined {
  const canonical = canonicalFieldName(name);
  const isOfMessage = canonical !== 'content-type' && FRAMING_HEADERS.has(canonical);
  if (isOfMessage || /^(?:proxy-|x-sidecar-|sec-websocket-|http2-settings$)/.test(canonical)) return FRAMING_FAULT;
  return HEADER_NAME.test(name) && name !== '__proto__' ? undefined : 'expected a field name such as X-Api-Key';
}
