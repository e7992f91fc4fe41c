/**
 * Whether a curl command requests a token or calls the API, by what it shows. An API call that is taken for a token request would be
 * carried out again and again, so what shows neither clearly is `unclear`. Pure.
 */
import { extraParameterNameFault } from '../../../config/schema/formats/credentials.ts';
import { parseUrl, type CurlRequest, type Field } from './curl-request.ts';

export type RequestKind = 'token' | 'call' | 'unclear';

/** Fields of token requests that have a setting (RFC 6749 §4.4.2, RFC 8707, RFC 7523). */
export const TOKEN_FIELDS: ReadonlySet<string> = new Set(
  'grant_type client_id client_secret scope audience resource client_assertion client_assertion_type'.split(' '),
);

/** Header fields that are credentials; a key of idempotency or against forgery is none. */
export const KEY_HEADER = /(?<!idempotency-|[cx]srf-)(?:key|token|secret)$/i;

/** Parameters of a query that are credentials; a token of a page is none. */
export const KEY_PARAMETER = /^(?:appid|(?:x-)?(?:(?:api|app|access|auth|subscription)[-_]?)?(?:key|token|secret))$/i;

export const SECRET_NAME = /secret|passw|pwd|assertion|authorization|token|api[-_]?key|^key$|-key$/i;

const TOKEN_WORD = /^(?:(?:access|api|auth|jwt|oauth)?token|oauth\d*|connect|login|auth)$/i;

export function classifyRequest(request: CurlRequest): RequestKind {
  const fields = [...request.body, ...request.query];
  if (fields.some(({ name }) => /^grant[_-]?type$/i.test(name)) || isClientPair(fields)) return 'token';
  const hasSecret = fields.some(({ name }) => SECRET_NAME.test(name));
  const place = findTokenWord(parseUrl(request.url ?? '')?.pathname ?? '');
  return place === undefined
    ? toKind('call', request.method !== 'POST' || !mayBeTokenRequest(request, hasSecret))
    : classifyAtTokenPath(request, place === 'at the end', hasSecret);
}

/** A POST to another path may request a token when it carries nothing but credentials. */
function mayBeTokenRequest({ body, headers, basic, authorization }: CurlRequest, hasSecret: boolean): boolean {
  const hasKey = basic ?? authorization ?? headers.find(({ name }) => KEY_HEADER.test(name));
  return isClientPair(headers) ? body.length === 0 : hasSecret && hasKey === undefined;
}

function classifyAtTokenPath(request: CurlRequest, isAtEnd: boolean, hasSecret: boolean): RequestKind {
  const { basic, body, bodyFault } = request;
  const isPost = request.method === 'POST';
  const hasClient = basic !== undefined || isClientPair(request.headers);
  if (request.authorization !== undefined) return toKind('call', !(isPost && (isAtEnd || hasSecret)));
  if (!isPost) return toKind('call', !(hasClient || isAtEnd));
  const hasNoOtherField = body.every(({ name }) => TOKEN_FIELDS.has(name)) && bodyFault === undefined;
  const isCertain = hasClient && hasNoOtherField;
  return toKind('token', isCertain || (isAtEnd && (hasClient || hasSecret || hasNoOtherField)));
}

function toKind(kind: RequestKind, isClear: boolean): RequestKind {
  return isClear ? kind : 'unclear';
}

function isClientPair(fields: readonly Field[]): boolean {
  return [/^client[_-]?id$/i, /^client[_-]?secret$/i].every((form) => fields.some(({ name }) => form.test(name)));
}

/** Words are parts of a segment between other characters than letters and digits, or in camel case. A version at the end does not count. */
function findTokenWord(pathname: string): 'at the end' | 'within' | undefined {
  const segments = pathname
    .split('/')
    .filter((segment) => segment !== '' && !/^v\d+(?:\.\d+)?$/i.test(segment))
    .map((segment) =>
      segment
        .replace(/\.[a-z]{2,4}$/i, '')
        .replaceAll(/([a-z\d])(?=[A-Z])/g, '$1 ')
        .split(/[^a-z\d]+/i),
    );
  if (TOKEN_WORD.test(segments.at(-1)?.at(-1) ?? '')) return 'at the end';
  return segments.flat().some((word) => TOKEN_WORD.test(word)) ? 'within' : undefined;
}

/** Why the sidecar cannot send a token request as it is; follows "the pasted text". Undefined when it can. */
export function findTokenRequestFault({
  method,
  headers,
  body,
  bodyFormat,
  bodyFault,
}: CurlRequest): string | undefined {
  const contentType = headers.find(({ name }) => name.toLowerCase() === 'content-type')?.value ?? '';
  const names = body.map(({ name }) => name).filter((name) => name !== 'audience' && name !== 'resource');
  if (method !== 'POST')
    return `requests a token by ${method}, which is not supported: the sidecar sends POST (RFC 6749 section 4.4.2)`;
  if (bodyFault !== undefined) return bodyFault;
  if (body.some(({ isOtherJson }) => isOtherJson))
    return 'requests a token by JSON with another value than a text (a number, an object, an array), which is not supported';
  // Documents often leave out the field.
  const isOfOtherType =
    contentType !== '' && !(bodyFormat === 'json' ? /\bjson\b/i : /\bx-www-form-urlencoded\b/i).test(contentType);
  if (body.length > 0 && isOfOtherType)
    return 'requests a token by another body than its Content-Type says, or than a form or JSON, which is not supported';
  if (names.some((name) => !TOKEN_FIELDS.has(name) && extraParameterNameFault(name) !== undefined))
    return 'requests a token by a field whose name has other characters than letters, digits, "-", "." and "_"';
  if (new Set(names).size < names.length) return 'requests a token by two fields of one name, which is not supported';
  return undefined;
}
