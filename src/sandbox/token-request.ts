/** Evaluates a token request of the client credentials grant (RFC 6749 §4.4): client, grant type, audience, scope. */
import { createHash, timingSafeEqual } from 'node:crypto';

/** The scope names that were seen at the real service, with `example` in the vendor's place. */
export const POLICIES_SCOPE = 'urn:example.partners.sales.individual.travel.policies.write';
export const QUOTES_SCOPE = 'urn:example.partners.sales.individual.travel.quotesrequests.write';
export const KNOWN_SCOPES: readonly string[] = [POLICIES_SCOPE, QUOTES_SCOPE];

/** The client that the simulated authorization server knows. */
export interface RegisteredClient {
  /** Without a colon (RFC 7617 §2). */
  readonly id: string;
  readonly secret: string;
  /** The first is granted when the request names none. At least one. */
  readonly audiences: readonly string[];
  /** All are granted when the request names none. */
  readonly scopes: readonly string[];
}

/** RFC 6749 §5.2, and `invalid_target` for an audience (RFC 8693 §2.2.2). */
export type OAuthError =
  'invalid_request' | 'invalid_client' | 'unsupported_grant_type' | 'invalid_scope' | 'invalid_target';

export type TokenDecision =
  | { readonly kind: 'granted'; readonly audience: string; readonly scope: string }
  | { readonly kind: 'rejected'; readonly error: OAuthError; readonly description: string };

type RejectedTokenDecision = Extract<TokenDecision, { kind: 'rejected' }>;

/**
 * @param authorization every Authorization field of the request, in order
 * @param form the decoded body; a parameter without a value counts as absent (RFC 6749 §3.2)
 */
export function evaluateTokenRequest(
  client: RegisteredClient,
  authorization: readonly string[],
  form: URLSearchParams,
): TokenDecision {
  return (
    rejectRepeated(authorization, form) ??
    rejectClient(client, authorization[0], form) ??
    rejectGrantType(form) ??
    grantToken(client, form)
  );
}

function rejectRepeated(authorization: readonly string[], form: URLSearchParams): RejectedTokenDecision | undefined {
  if (authorization.length > 1) return reject('invalid_request', 'More than one Authorization field.');
  if (new Set(form.keys()).size < form.size) return reject('invalid_request', 'A parameter is repeated.');
  return undefined;
}

function rejectClient(
  client: RegisteredClient,
  authorization: string | undefined,
  form: URLSearchParams,
): RejectedTokenDecision | undefined {
  if (authorization === undefined)
    return reject('invalid_client', 'Client authentication is missing: HTTP Basic is expected.');
  if (form.has('client_secret')) return reject('invalid_request', 'More than one way of client authentication.');
  const given = readBasic(authorization);
  if (given === undefined)
    return reject('invalid_client', 'Authorization is not Basic with BASE64(client_id:client_secret) in UTF-8.');
  // Both are always compared, so that the time does not show which one is wrong.
  const sameId = isEqualInConstantTime(given.id, client.id);
  const sameSecret = isEqualInConstantTime(given.secret, client.secret);
  return sameId && sameSecret ? undefined : reject('invalid_client', 'Unknown client or wrong secret.');
}

function rejectGrantType(form: URLSearchParams): RejectedTokenDecision | undefined {
  const grantType = form.get('grant_type') ?? '';
  if (grantType === '') return reject('invalid_request', 'grant_type is missing.');
  if (grantType !== 'client_credentials')
    return reject('unsupported_grant_type', 'Only client_credentials is supported.');
  return undefined;
}

function grantToken(client: RegisteredClient, form: URLSearchParams): TokenDecision {
  const audience = form.get('audience') ?? '';
  const scopes = new Set((form.get('scope') ?? '').split(' ').filter((name) => name !== ''));
  if (audience === '' && scopes.size === 0)
    return reject('invalid_request', 'Neither audience nor scope is given: at least one is expected.');
  if (audience !== '' && !client.audiences.includes(audience))
    return reject('invalid_target', 'This client may not have a token for the audience.');
  if (![...scopes].every((name) => client.scopes.includes(name)))
    return reject('invalid_scope', 'A scope is unknown, or not for this client.');
  return {
    kind: 'granted',
    audience: audience === '' ? (client.audiences[0] ?? '') : audience,
    scope: [...(scopes.size === 0 ? client.scopes : scopes)].join(' '),
  };
}

/** RFC 7617 §2 with UTF-8; the first colon ends the id, further ones belong to the secret. */
function readBasic(authorization: string): { readonly id: string; readonly secret: string } | undefined {
  const encoded = /^basic +([a-z0-9+/]+={0,2})$/i.exec(authorization)?.[1];
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  const text = bytes.toString('utf8');
  const colon = text.indexOf(':');
  // Node also decodes invalid base64, which is rejected here.
  if (colon < 0 || bytes.toString('base64') !== encoded) return undefined;
  return { id: text.slice(0, colon), secret: text.slice(colon + 1) };
}

/** Digests have the same length, so the time shows neither content nor length. */
function isEqualInConstantTime(left: string, right: string): boolean {
  return timingSafeEqual(digest(left), digest(right));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** @param description printable ASCII without quotes and backslashes (RFC 6749 §5.2), so it never quotes the request */
function reject(error: OAuthError, description: string): RejectedTokenDecision {
  return { kind: 'rejected', error, description };
}
