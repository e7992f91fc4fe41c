/**
 * A simulated OAuth 2.0 authorization server on loopback: `POST /oauth/token` for the client credentials grant
 * (RFC 6749 §4.4), and `GET /.well-known/jwks.json` with the key of its tokens. Error texts and token contents are invented, since
 * those of the real server are unknown.
 */
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Clock } from '../platform/clock.ts';
import { jsonResponse, pathOf, readBody, serveOnLoopback } from './loopback-server.ts';
import type { LoopbackServer, SandboxResponse } from './loopback-server.ts';
import { LIFETIME_S, TokenIssuer } from './token-issuer.ts';
import { evaluateTokenRequest, TokenRequestError, type OAuthError, type RegisteredClient } from './token-grant.ts';

export interface AuthorizationServer extends LoopbackServer {
  readonly tokenUrl: URL;
  /** Verifies its tokens, in place of token introspection. */
  readonly issuer: TokenIssuer;
}

const TOKEN_PATH = '/oauth/token';
const JWKS_PATH = '/.well-known/jwks.json';
const FORM_TYPE = 'application/x-www-form-urlencoded';
const BODY_LIMIT_BYTES = 16 * 1024;

/** @throws the listen error of node:net */
export async function startAuthorizationServer(client: RegisteredClient, clock: Clock): Promise<AuthorizationServer> {
  const issuer = new TokenIssuer(clock);
  const server = await serveOnLoopback(async (request) => {
    switch (pathOf(request)) {
      case TOKEN_PATH:
        return request.method === 'POST'
          ? handleTokenRequest(request, client, issuer)
          : errorResponse(405, 'invalid_request', 'The token endpoint takes POST only.', { allow: 'POST' });
      case JWKS_PATH:
        return request.method === 'GET'
          ? jsonResponse(200, { keys: [issuer.publicJwk] })
          : errorResponse(405, 'invalid_request', 'The key set takes GET only.', { allow: 'GET' });
      default:
        return errorResponse(404, 'invalid_request', `Nothing here: the token endpoint is ${TOKEN_PATH}.`);
    }
  });
  return { ...server, tokenUrl: new URL(TOKEN_PATH, server.url), issuer };
}

async function handleTokenRequest(
  request: IncomingMessage,
  client: RegisteredClient,
  issuer: TokenIssuer,
): Promise<SandboxResponse> {
  // The real service is described with this type and no charset: a parameter should fail here, not in production.
  if (request.headers['content-type']?.toLowerCase() !== FORM_TYPE)
    return errorResponse(400, 'invalid_request', `Content-Type is not exactly ${FORM_TYPE}.`);
  const body = await readBody(request, BODY_LIMIT_BYTES);
  if (body === undefined)
    return errorResponse(413, 'invalid_request', 'The form is too large.', { connection: 'close' });
  const form = new URLSearchParams(body.toString('utf8'));
  try {
    const { audience, scope } = evaluateTokenRequest(client, request.headersDistinct.authorization ?? [], form);
    const token = issuer.issue({ clientId: client.id, audience, scope });
    return tokenResponse(200, { access_token: token, token_type: 'Bearer', expires_in: LIFETIME_S, scope });
  } catch (fault) {
    if (!(fault instanceof TokenRequestError)) throw fault;
    const { error, message } = fault;
    const challenge = { 'www-authenticate': 'Basic realm="sandbox", charset="UTF-8"' };
    return error === 'invalid_client'
      ? errorResponse(401, error, message, challenge)
      : errorResponse(400, error, message);
  }
}

function errorResponse(
  status: number,
  error: OAuthError,
  description: string,
  headers: OutgoingHttpHeaders = {},
): SandboxResponse {
  return tokenResponse(status, { error, error_description: description }, headers);
}

/** RFC 6749 §5.1 asks for `Pragma` next to `Cache-Control: no-store`. */
function tokenResponse(status: number, value: object, headers: OutgoingHttpHeaders = {}): SandboxResponse {
  return jsonResponse(status, value, { pragma: 'no-cache', ...headers });
}
