/**
 * A simulated OAuth 2.0 authorization server on loopback: `POST /oauth/token` for the client credentials grant
 * (RFC 6749 §4.4), and `GET /.well-known/jwks.json` with the key of its tokens. Error texts and token contents are invented, since
 * those of the real server are unknown.
 */
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Clock } from '../platform/clock.ts';
import { systemClock } from '../platform/clock.ts';
import { jsonResponse, pathOf, readBody, serveOnLoopback } from './loopback-server.ts';
import type { LoopbackServer, SandboxResponse } from './loopback-server.ts';
import { TokenIssuer } from './token-issuer.ts';
import type { TokenAuthority } from './token-issuer.ts';
import { evaluateTokenRequest, KNOWN_SCOPES } from './token-request.ts';
import type { OAuthError, RegisteredClient } from './token-request.ts';

export interface AuthorizationServerOptions {
  /** Without a colon. */
  readonly clientId: string;
  /** Any text; compared byte by byte in UTF-8. */
  readonly clientSecret: string;
  /** Audiences that the client may request; the first is the default. At least one. */
  readonly audiences: readonly string[];
  /** Scopes that the client may request. Default: every known scope. */
  readonly scopes?: readonly string[];
  /** Lifetime of a token; `expires_in` has whole seconds. Default 3 600 000. */
  readonly tokenLifetimeMs?: number;
  /** Default: the system clock. */
  readonly clock?: Clock;
}

export interface AuthorizationServer extends LoopbackServer, TokenAuthority {
  /** The full token endpoint. */
  readonly tokenUrl: URL;
  /** The number of tokens issued so far. */
  tokensIssued(): number;
}

const TOKEN_PATH = '/oauth/token';
const JWKS_PATH = '/.well-known/jwks.json';
const FORM_TYPE = 'application/x-www-form-urlencoded';
const BODY_LIMIT_BYTES = 16 * 1024;
const DEFAULT_LIFETIME_MS = 3_600_000;

/**
 * Starts it on 127.0.0.1, on a free port.
 * @throws the listen error of node:net
 */
export async function startAuthorizationServer(options: AuthorizationServerOptions): Promise<AuthorizationServer> {
  const { clock = systemClock, tokenLifetimeMs = DEFAULT_LIFETIME_MS, scopes = KNOWN_SCOPES, audiences } = options;
  const client: RegisteredClient = { id: options.clientId, secret: options.clientSecret, audiences, scopes };
  const issuer = new TokenIssuer(clock, tokenLifetimeMs);
  const expiresInSeconds = Math.floor(tokenLifetimeMs / 1000);

  const server = await serveOnLoopback(async (request) => {
    switch (pathOf(request)) {
      case TOKEN_PATH:
        return request.method === 'POST'
          ? handleTokenRequest(request, client, issuer, expiresInSeconds)
          : errorResponse(405, 'invalid_request', 'The token endpoint takes POST only.', { allow: 'POST' });
      case JWKS_PATH:
        return request.method === 'GET'
          ? jsonResponse(200, { keys: [issuer.publicJwk] })
          : errorResponse(405, 'invalid_request', 'The key set takes GET only.', { allow: 'GET' });
      default:
        return errorResponse(404, 'invalid_request', `Nothing here: the token endpoint is ${TOKEN_PATH}.`);
    }
  });
  return {
    ...server,
    tokenUrl: new URL(TOKEN_PATH, server.url),
    tokensIssued: () => issuer.issued,
    verify: (token) => issuer.verify(token),
    revokeAll: () => {
      issuer.revokeAll();
    },
  };
}

async function handleTokenRequest(
  request: IncomingMessage,
  client: RegisteredClient,
  issuer: TokenIssuer,
  expiresInSeconds: number,
): Promise<SandboxResponse> {
  // The real service is described with this type and no charset: a parameter should fail here, not in production.
  if (request.headers['content-type']?.toLowerCase() !== FORM_TYPE)
    return errorResponse(400, 'invalid_request', `Content-Type is not exactly ${FORM_TYPE}.`);
  const body = await readBody(request, BODY_LIMIT_BYTES);
  if (body.kind === 'too-large')
    return errorResponse(413, 'invalid_request', 'The form is too large.', { connection: 'close' });
  const form = new URLSearchParams(body.bytes.toString('utf8'));
  const decision = evaluateTokenRequest(client, request.headersDistinct.authorization ?? [], form);
  switch (decision.kind) {
    case 'granted': {
      const { audience, scope } = decision;
      const token = issuer.issue({ clientId: client.id, audience, scope });
      return tokenResponse(200, { access_token: token, token_type: 'Bearer', expires_in: expiresInSeconds, scope });
    }
    case 'rejected':
      return decision.error === 'invalid_client'
        ? errorResponse(401, decision.error, decision.description, {
            'www-authenticate': 'Basic realm="sandbox", charset="UTF-8"',
          })
        : errorResponse(400, decision.error, decision.description);
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
