/** Evaluates a token request of the client credentials grant (RFC 6749 §4.4): client, grant type, audience, scope. */
import { createHash, timingSafeEqual } from 'node:crypto';

/** The scope names that were seen at the real service, with `example` in the vendor's place. */
export const POLICIES_SCOPE = 'urn:example.partners.sales.individual.travel.policies.write';
export const QUOTES_SCOPE = 'urn:example.partners.sales.individual.travel.quotesrequests.write';
export const KNOWN_SCOPES: readonly string[] = [POLICIES_SCOPE, QUOTES_SCOPE];

export interface RegisteredClient {
  /** Without a colon (RFC 7617 §2). */
  readonly id: string;
  readonly secret: string;
  /** The only one that it may request. */
  readonly audience: string;
}

/** RFC 6749 §5.2, and `invalid_target` for an audience (RFC 8693 §2.2.2). */
export type OAuthError =
  | 'invalid_request'
  | 'invalid_client'
  | 'unsupported_grant_type'
  | 'invalid_scope'
  | 'invalid_target';

/** A token request that gets no token. @param description printable ASCII without quotes and backslashes (RFC 6749 §5.2) */
export class TokenRequestError extends Error {
  readonly error: OAuthError;

  constructor(error: OAuthError, description: string) {
    super(description);
    this.error = error;
  }
}

export interface TokenGrant {
  readonly audience: string;
  readonly scope: string;
}

/**
 * @param authorization every Authorization field of the request, in order
 * @param form the decoded body; a parameter without a value counts as absent (RFC 6749 §3.2)
 * @throws TokenRequestError, whose description never quotes the request
 */
export function evaluateTokenRequest(
  client: RegisteredClient,
  authorization: readonly string[],
  form: URLSearchParams,
): TokenGrant {
  if (authorization.length > 1) throw new TokenRequestError('invalid_request', 'More than one Authorization field.');
  if (new Set(form.keys()).size < form.size) throw new TokenRequestError('invalid_request', 'A parameter is repeated.');
  authenticateClient(client, authorization[0], form);
  const grantType = form.get('grant_type') ?? '';
  if (grantType === '') throw new TokenRequestError('invalid_request', 'grant_type is missing.');
  if (grantType !== 'client_credentials')
    throw new TokenRequestError('unsupported_grant_type', 'Only client_credentials is supported.');
  return grantToken(client, form);
}

function authenticateClient(client: RegisteredClient, authorization: string | undefined, form: URLSearchParams): void {
  if (authorization === undefined)
    throw new TokenRequestError('invalid_client', 'Client authentication is missing: HTTP Basic is expected.');
  if (form.has('client_secret'))
    throw new TokenRequestError('invalid_request', 'More than one way of client authentication.');
  const given = readBasic(authorization);
  if (given === undefined)
    throw new TokenRequestError(
      'invalid_client',
      'Authorization is not Basic with BASE64(client_id:client_secret) in UTF-8.',
    );
  // Both are always compared, so that the time does not show which one is wrong.
  const sameId = isEqualInConstantTime(given.id, client.id);
  const sameSecret = isEqualInConstantTime(given.secret, client.secret);
  if (!sameId || !sameSecret) throw new TokenRequestError('invalid_client', 'Unknown client or wrong secret.');
}

/** Without a scope all known ones are granted, and without an audience the client's own. */
function grantToken(client: RegisteredClient, form: URLSearchParams): TokenGrant {
  const audience = form.get('audience') ?? '';
  const scopes = new Set((form.get('scope') ?? '').split(' ').filter((name) => name !== ''));
  if (audience === '' && scopes.size === 0)
    throw new TokenRequestError('invalid_request', 'Neither audience nor scope is given: at least one is expected.');
  if (audience !== '' && audience !== client.audience)
    throw new TokenRequestError('invalid_target', 'This client may not have a token for the audience.');
  if (![...scopes].every((name) => KNOWN_SCOPES.includes(name)))
    throw new TokenRequestError('invalid_scope', 'A scope is unknown, or not for this client.');
  return { audience: client.audience, scope: [...(scopes.size === 0 ? KNOWN_SCOPES : scopes)].join(' ') };
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
