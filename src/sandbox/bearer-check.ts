/** Checks the bearer token of a call to the simulated API: validity, audience, scope. Rejections follow RFC 6750 §3.1. */
import type { IncomingMessage } from 'node:http';
import { problemResponse } from './loopback-server.ts';
import type { SandboxResponse } from './loopback-server.ts';
import type { TokenAuthority, TokenVerification } from './token-issuer.ts';

export type BearerDecision =
  | { readonly kind: 'allowed'; readonly scopes: ReadonlySet<string> }
  | { readonly kind: 'rejected'; readonly reply: SandboxResponse };

const REASONS: Record<Extract<TokenVerification, { kind: 'invalid' }>['reason'] | 'audience', string> = {
  malformed: 'The access token is malformed.',
  signature: 'The signature of the access token is wrong.',
  expired: 'The access token has expired.',
  revoked: 'The access token has been revoked.',
  audience: 'The access token is for another audience.',
};

/** Checks the token. `rejectScope` checks its scopes. */
export function checkBearer(request: IncomingMessage, tokens: TokenAuthority, audience: string): BearerDecision {
  const authorization = request.headersDistinct.authorization ?? [];
  if (authorization.length > 1)
    return createBearerRejection(400, 'invalid_request', 'The request carries more than one access token.');
  const [, token] = /^bearer +(\S+)$/i.exec(authorization[0] ?? '') ?? [];
  // Without a token the challenge has the scheme only, no error code.
  if (token === undefined)
    return { kind: 'rejected', reply: problemResponse(401, 'A bearer token is expected.', {}, formatChallenge('')) };
  const verification = tokens.verify(token);
  if (verification.kind === 'invalid') return createBearerRejection(401, 'invalid_token', REASONS[verification.reason]);
  if (verification.claims.aud !== audience) return createBearerRejection(401, 'invalid_token', REASONS.audience);
  return { kind: 'allowed', scopes: new Set(verification.claims.scope.split(' ')) };
}

/** The rejection when the token lacks the scope of the resource; undefined when it has it. */
export function rejectScope(granted: ReadonlySet<string>, needed: string | undefined): SandboxResponse | undefined {
  if (needed === undefined || granted.has(needed)) return undefined;
  const detail = `The access token lacks the scope ${needed}.`;
  return problemResponse(403, detail, {}, formatChallenge(`, error="insufficient_scope", scope="${needed}"`));
}

function createBearerRejection(status: 400 | 401, error: string, detail: string): BearerDecision {
  const parameters = `, error="${error}", error_description="${detail}"`;
  return { kind: 'rejected', reply: problemResponse(status, detail, {}, formatChallenge(parameters)) };
}

function formatChallenge(parameters: string): Record<string, string> {
  return { 'www-authenticate': `Bearer realm="sandbox"${parameters}` };
}
