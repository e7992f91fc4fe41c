/**
 * What an authorization server says about a token request that it did not grant: the error of RFC 6749 §5.2, else of a `WWW-Authenticate`
 * challenge (RFC 6750 §3), with the error codes, ids and descriptions of Okta, Entra and others. Pure.
 */
import { findMember, parseJsonObject, type JsonFields } from './json-object.ts';
import type { ShowServerText } from './server-text.ts';

/** The server is busy or broken, and the client is not at fault (RFC 6749 §4.1.2.1, RFC 8628 §3.5). */
const TRANSIENT_CODES: ReadonlySet<string> = new Set(['slow_down', 'temporarily_unavailable', 'server_error']);

/** Words of a registry reveal nothing, even if the client id is one of them. */
const REGISTERED_CODES: ReadonlySet<string> = new Set([
  ...TRANSIENT_CODES,
  'access_denied',
  'invalid_client',
  'invalid_grant',
  'invalid_request',
  'invalid_resource',
  'invalid_scope',
  'invalid_target',
  'invalid_token',
  'unauthorized_client',
  'unsupported_grant_type',
]);

/** Where servers describe an error; the first text counts. The last ones: Apigee, WSO2, Mule and other gateways, RFC 9457, ASP.NET. */
const DESCRIPTION_MEMBERS = [
  ...['error_description', 'errorSummary', 'fault.faultstring', 'fault.description', 'fault.message', 'error.message'],
  ...['error_message', 'errorMessage', 'message', 'detail', 'title', 'Error', 'Message'],
];
const MAX_CODE_CHARS = 100;
/** With the ids, the whole detail stays within the 512 characters of a log field. */
const MAX_DESCRIPTION_CHARS = 240;
const MAX_ID_CHARS = 64;
const MAX_ERROR_NUMBERS = 5;

/**
 * The code, if the server named one; whether it says that an early retry cannot help; and a text that follows "… answered with 401": code,
 * description and ids, cleaned, bounded and masked, empty when there are none. Never throws.
 * @param challenge the value of `WWW-Authenticate`, if there is one
 */
export function parseErrorResponse(body: string | undefined, challenge: string | undefined, showText: ShowServerText) {
  const fields = parseJsonObject(body ?? '') ?? {};
  const ofBody = readBody(fields);
  const hasCode = (ofBody.oauthCode ?? ofBody.vendorCode) !== undefined;
  const ofChallenge = hasCode ? undefined : readChallenge(challenge ?? '');
  const { oauthCode, vendorCode } = ofChallenge ?? ofBody;
  const description = ofBody.description ?? ofChallenge?.description;
  const rawCode = oauthCode ?? vendorCode ?? '';
  const code = REGISTERED_CODES.has(rawCode) ? rawCode : showText(rawCode, MAX_CODE_CHARS);
  const text = formatWords(code, showText(description ?? '', MAX_DESCRIPTION_CHARS), fields, showText);
  const isRejection = code !== '' && (vendorCode !== undefined || !TRANSIENT_CODES.has(rawCode));
  return { code: code === '' ? undefined : code, isRejection, text };
}

/** The error code and its description in a JSON body, as they came; empty for another body. */
export function readErrorBody(body: string) {
  return readBody(parseJsonObject(body) ?? {});
}

/** The `vendorCode` is Okta's. */
function readBody(fields: JsonFields) {
  const texts = DESCRIPTION_MEMBERS.map((path) => readText(findMember(fields, path)));
  const description = texts.find((text) => text !== undefined);
  return { oauthCode: readText(fields.error), vendorCode: readText(fields.errorCode), description };
}

/** One parameter of a challenge, or a quoted text that is none. */
const CHALLENGE_PART = /([\w-]{1,40})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))|"(?:[^"\\]|\\.)*"/g;

function readChallenge(challenge: string) {
  const parameters = new Map<string, string>();
  for (const [, name, quoted, token] of challenge.matchAll(CHALLENGE_PART)) {
    const value = quoted?.replaceAll(/\\(.)/g, '$1') ?? token;
    if (name !== undefined && value !== undefined && !parameters.has(name.toLowerCase()))
      parameters.set(name.toLowerCase(), value);
  }
  const description = readText(parameters.get('error_description'));
  return { oauthCode: readText(parameters.get('error')), vendorCode: undefined, description };
}

function formatWords(code: string, description: string, fields: JsonFields, showText: ShowServerText): string {
  const ids = ['trace_id', 'correlation_id', 'errorId'].flatMap((name) => {
    const id = showText(readText(fields[name]) ?? '', MAX_ID_CHARS);
    return id === '' || description.includes(id) ? [] : [`${name} ${id}`];
  });
  const listed = [...readErrorNumbers(fields.error_codes, description), ...ids];
  const named = code === '' ? '' : ` and the error "${code}"`;
  const described = description === '' ? '' : `: ${description}`;
  return `${named}${described}${listed.length === 0 ? '' : ` (${listed.join(', ')})`}`;
}

/** Entra's numbers; its description usually begins with the same, as in `AADSTS7000215`. */
function readErrorNumbers(value: unknown, description: string): string[] {
  const numbers: unknown[] = Array.isArray(value) ? value : [];
  const listed = numbers
    .filter((number) => typeof number === 'number' && Number.isSafeInteger(number))
    .map(String)
    .filter((number) => !description.includes(number));
  return listed.length === 0 ? [] : [`error_codes ${listed.slice(0, MAX_ERROR_NUMBERS).join(' ')}`];
}

function readText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
