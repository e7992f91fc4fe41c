/**
 * The simulated API's door: is there one bearer token, is it good, is it for this API, does its scope allow the call?
 * Its refusals are those of RFC 6750 §3.1.
 */
import type { IncomingMessage } from 'node:http';
import { problemResponse } from './loopback-server.ts';
import type { SandboxResponse } from './loopback-server.ts';
import type { TokenAuthority, TokenVerification } from './token-issuer.ts';

export type BearerDecision =
  | { readonly kind: 'allowed'; readonly scopes: ReadonlySet<string> }
  | { readonly kind: 'refused'; readonly reply: SandboxResponse };

const REASONS: Record<Extract<TokenVerification, { kind: 'invalid' }>['reason'] | 'audience', string> = {
  malformed: 'The access token is malformed.',
  signature: 'The signature of the access token is wrong.',
  expired: 'The access token has expired.',
  revoked: 'The access token has been revoked.',
  audience: 'The access token is for another audience.',
};

/** Checks who calls. Whether the token's scopes allow the call is left to `refuseScope`. */
export function checkBearer(request: IncomingMessage, tokens: TokenAuthority, audience: string): BearerDecision {
  const fields = request.headersDistinct.authorization ?? [];
  if (fields.length > 1)
    return createBearerRefusal(400, 'invalid_request', 'The request carries more than one access token.');
  const [, token] = /^bearer +(\S+)$/i.exec(fields[0] ?? '') ?? [];
  // A caller that brought no token learns the scheme, not an error code.
  if (token === undefined)
    return { kind: 'refused', reply: problemResponse(401, 'A bearer token is expected.', {}, formatChallenge('')) };
  const verdict = tokens.verify(token);
  if (verdict.kind === 'invalid') return createBearerRefusal(401, 'invalid_token', REASONS[verdict.reason]);
  if (verdict.claims.aud !== audience) return createBearerRefusal(401, 'invalid_token', REASONS.audience);
  return { kind: 'allowed', scopes: new Set(verdict.claims.scope.split(' ')) };
}

/** The refusal when the token lacks the scope that the resource asks for. */
export function refuseScope(granted: ReadonlySet<string>, needed: string | undefined): SandboxResponse | undefined {
  if (needed === undefined || granted.has(needed)) return undefined;
  const detail = `The access token lacks the scope ${needed}.`;
  return problemResponse(403, detail, {}, formatChallenge(`, error="insufficient_scope", scope="${needed}"`));
}

function createBearerRefusal(status: 400 | 401, error: string, detail: string): BearerDecision {
  const parameters = `, error="${error}", error_description="${detail}"`;
  return { kind: 'refused', reply: problemResponse(status, detail, {}, formatChallenge(parameters)) };
}

function formatChallenge(parameters: string): Record<string, string> {
  return { 'www-authenticate': `Bearer realm="sandbox"${parameters}` };
}
