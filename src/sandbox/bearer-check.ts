/**
 * The simulated API's door: is there one bearer token, is it good, is it for this API, does its scope allow the call?
 * Its refusals are those of RFC 6750 §3.1.
 */
import type { IncomingMessage } from 'node:http';
import { problemReply } from './problem-reply.ts';
import type { Reply } from './loopback-server.ts';
import type { TokenAuthority, TokenVerdict } from './token-issuer.ts';

export type BearerVerdict =
  | { readonly kind: 'allowed'; readonly scopes: ReadonlySet<string> }
  | { readonly kind: 'refused'; readonly reply: Reply };

const REASONS: Record<Extract<TokenVerdict, { kind: 'invalid' }>['reason'] | 'audience', string> = {
  malformed: 'The access token is malformed.',
  signature: 'The signature of the access token is wrong.',
  expired: 'The access token has expired.',
  revoked: 'The access token has been revoked.',
  audience: 'The access token is for another audience.',
};

/** Checks who calls. Whether the token's scopes allow the call is left to `refuseScope`. */
export function checkBearer(request: IncomingMessage, tokens: TokenAuthority, audience: string): BearerVerdict {
  const fields = request.headersDistinct.authorization ?? [];
  if (fields.length > 1) return refused(400, 'invalid_request', 'The request carries more than one access token.');
  const [, token] = /^bearer +(\S+)$/i.exec(fields[0] ?? '') ?? [];
  // A caller that brought no token learns the scheme, not an error code.
  if (token === undefined)
    return { kind: 'refused', reply: problemReply(401, 'A bearer token is expected.', {}, challenge('')) };
  const verdict = tokens.verify(token);
  if (verdict.kind === 'invalid') return refused(401, 'invalid_token', REASONS[verdict.reason]);
  if (verdict.claims.aud !== audience) return refused(401, 'invalid_token', REASONS.audience);
  return { kind: 'allowed', scopes: new Set(verdict.claims.scope.split(' ')) };
}

/** The refusal when the token lacks the scope that the resource asks for. */
export function refuseScope(granted: ReadonlySet<string>, needed: string | undefined): Reply | undefined {
  if (needed === undefined || granted.has(needed)) return undefined;
  const detail = `The access token lacks the scope ${needed}.`;
  return problemReply(403, detail, {}, challenge(`, error="insufficient_scope", scope="${needed}"`));
}

function refused(status: 400 | 401, error: string, detail: string): BearerVerdict {
  const parameters = `, error="${error}", error_description="${detail}"`;
  return { kind: 'refused', reply: problemReply(status, detail, {}, challenge(parameters)) };
}

function challenge(parameters: string): Record<string, string> {
  return { 'www-authenticate': `Bearer realm="sandbox"${parameters}` };
}
