/**
 * A simulated OAuth 2.0 authorization server on loopback: `POST /oauth/token` for the client credentials grant
 * (RFC 6749 §4.4), `GET /.well-known/jwks.json` with the key of its tokens, and `GET /ca.pem` with the certificate to trust. Error
 * texts and token contents are invented, since those of the real server are unknown; they never quote the request.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Clock } from '../platform/clock.ts';
import type { ServerIdentity } from './certificate.ts';
import { jsonResponse, pathOf, readBody, RequestRejection, serveOnLoopback } from './loopback-server.ts';
import type { SandboxResponse } from './loopback-server.ts';
import { KNOWN_SCOPES, type SandboxScenario } from './scenario.ts';
import { LIFETIME_S, TokenIssuer } from './token-issuer.ts';

export interface RegisteredClient {
  /** Without a colon (RFC 7617 §2). */
  readonly id: string;
  readonly secret: string;
  /** The only one that it may request. */
  readonly audience: string;
}

/** RFC 6749 §5.2, and `invalid_target` for an audience (RFC 8693 §2.2.2). */
type OAuthError = 'invalid_request' | 'invalid_client' | 'unsupported_grant_type' | 'invalid_scope' | 'invalid_target';

export type AuthorizationServer = Awaited<ReturnType<typeof startAuthorizationServer>>;

const TOKEN_PATH = '/oauth/token';
const JWKS_PATH = '/.well-known/jwks.json';
const CERTIFICATE_PATH = '/ca.pem';
const FORM_TYPE = 'application/x-www-form-urlencoded';
const BODY_LIMIT_BYTES = 16 * 1024;

/** @throws the listen error of node:net */
export async function startAuthorizationServer(
  identity: ServerIdentity,
  client: RegisteredClient,
  scenario: SandboxScenario,
  clock: Clock,
) {
  const issuer = new TokenIssuer(clock);
  const server = await serveOnLoopback(identity, async (request) => {
    switch (pathOf(request)) {
      case TOKEN_PATH:
        return request.method === 'POST'
          ? handleTokenRequest(request, client, scenario, issuer)
          : errorResponse('invalid_request', 'The token endpoint takes POST only.', 405, { allow: 'POST' });
      case JWKS_PATH:
        return request.method === 'GET'
          ? jsonResponse(200, { keys: [issuer.publicJwk] })
          : errorResponse('invalid_request', 'The key set takes GET only.', 405, { allow: 'GET' });
      case CERTIFICATE_PATH:
        return { status: 200, headers: { 'content-type': 'application/x-pem-file' }, body: identity.cert };
      default:
        return errorResponse('invalid_request', `Nothing here: the token endpoint is ${TOKEN_PATH}.`, 404);
    }
  });
  return {
    ...server,
    tokenUrl: new URL(TOKEN_PATH, server.url),
    certificateUrl: new URL(CERTIFICATE_PATH, server.url),
    issuer,
  };
}

async function handleTokenRequest(
  request: IncomingMessage,
  client: RegisteredClient,
  { role, scopes, scopeField, tokenType }: SandboxScenario,
  issuer: TokenIssuer,
): Promise<SandboxResponse> {
  // The real service is described with this type and no charset: a parameter should fail here, not in production.
  if (request.headers['content-type']?.toLowerCase() !== FORM_TYPE)
    return errorResponse('invalid_request', `Content-Type is not exactly ${FORM_TYPE}.`);
  const body = await readBody(request, BODY_LIMIT_BYTES);
  if (body === undefined)
    return errorResponse('invalid_request', 'The form is too large.', 413, { connection: 'close' });
  const form = new URLSearchParams(body.toString('utf8'));
  const authorization = request.headersDistinct.authorization ?? [];
  if (authorization.length > 1) throw reject('invalid_request', 'More than one Authorization field.');
  if (new Set(form.keys()).size < form.size) throw reject('invalid_request', 'A parameter is repeated.');
  authenticateClient(client, authorization[0], form);
  // A parameter without a value counts as absent (RFC 6749 §3.2).
  const grantType = form.get('grant_type') ?? '';
  if (grantType === '') throw reject('invalid_request', 'grant_type is missing.');
  if (grantType !== 'client_credentials')
    throw reject('unsupported_grant_type', 'Only client_credentials is supported.');
  const scope = grantScope(client, scopes, form);
  const token = issuer.issue({ clientId: client.id, audience: client.audience, scope, role });
  const stated = { granted: scope, empty: '', absent: undefined }[scopeField];
  return tokenResponse(200, { access_token: token, token_type: tokenType, expires_in: LIFETIME_S, scope: stated });
}

function authenticateClient(client: RegisteredClient, authorization: string | undefined, form: URLSearchParams): void {
  if (authorization === undefined)
    throw reject('invalid_client', 'Client authentication is missing: HTTP Basic is expected.');
  if (form.has('client_secret')) throw reject('invalid_request', 'More than one way of client authentication.');
  const given = readBasic(authorization);
  if (given === undefined)
    throw reject('invalid_client', 'Authorization is not Basic with BASE64(client_id:client_secret) in UTF-8.');
  if (!timingSafeEqual(digest(given), digest(client)))
    throw reject('invalid_client', 'Unknown client or wrong secret.');
}

/** What is requested and allowed; without a requested scope all that is allowed. The audience is the client's own. */
function grantScope(client: RegisteredClient, allowed: readonly string[], form: URLSearchParams): string {
  const audience = form.get('audience') ?? '';
  const requested = (form.get('scope') ?? '').split(' ').filter((name) => name !== '');
  if (audience === '' && requested.length === 0)
    throw reject('invalid_request', 'Neither audience nor scope is given: at least one is expected.');
  if (audience !== '' && audience !== client.audience)
    throw reject('invalid_target', 'This client may not have a token for the audience.');
  if (!requested.every((name) => KNOWN_SCOPES.includes(name))) throw reject('invalid_scope', 'A scope is unknown.');
  const wanted = requested.length === 0 ? allowed : new Set(requested);
  return [...wanted].filter((name) => allowed.includes(name)).join(' ');
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
function digest({ id, secret }: Pick<RegisteredClient, 'id' | 'secret'>): Buffer {
  return hash('sha256', `${id}:${secret}`, 'buffer');
}

function reject(error: OAuthError, description: string): RequestRejection {
  const challenge = { 'www-authenticate': 'Basic realm="sandbox", charset="UTF-8"' };
  const [status, headers] = error === 'invalid_client' ? [401, challenge] : [400, {}];
  return new RequestRejection(errorResponse(error, description, status, headers));
}

/** @param description printable ASCII without quotes and backslashes (RFC 6749 §5.2) */
function errorResponse(error: OAuthError, description: string, status = 400, headers: OutgoingHttpHeaders = {}) {
  return tokenResponse(status, { error, error_description: description }, headers);
}

/** RFC 6749 §5.1 asks for `Pragma` next to `Cache-Control: no-store`. */
function tokenResponse(status: number, value: object, headers: OutgoingHttpHeaders = {}): SandboxResponse {
  return jsonResponse(status, value, { pragma: 'no-cache', ...headers });
}
