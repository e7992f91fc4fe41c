/**
 * Authorization servers that we did not write, each on a port of its own with everything that it was sent kept as bytes:
 * oidc-provider over TLS with every method, oauth2-mock-server, and @node-oauth/oauth2-server on node:http.
 */
import { randomBytes, X509Certificate } from 'node:crypto';
import { createServer as createPlainServer } from 'node:http';
import type { Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import OAuth2Server, { Request, Response } from '@node-oauth/oauth2-server';
import { OAuth2Server as MockServer } from 'oauth2-mock-server';
import Provider from 'oidc-provider';
import type { ClientMetadata } from 'oidc-provider';
import type { Certificates } from '../support/certificates.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { registerSecret } from '../support/secrets.ts';
import type { Credential } from '../support/secrets.ts';

export const AUDIENCE = 'https://api.partner.example/';
export const SCOPE = 'urn:example.partners.sales.individual.travel.policies.write';

export interface PeerServer extends AsyncDisposable {
  /** What the server calls itself, and where it is. */
  readonly issuer: string;
  readonly tokenUrl: string;
  /** The last token request as it was received, and the common name of the certificate that came with it. */
  readonly lastRequest: () => WireRequest | undefined;
}

export interface WireRequest {
  readonly head: string;
  readonly form: URLSearchParams;
  readonly certificate: string | undefined;
}

/** Keeps what comes in on each connection; a server reads its own copy. */
function record(server: Server, event: 'connection' | 'secureConnection'): () => WireRequest | undefined {
  let last: { bytes: string; certificate: string | undefined } | undefined;
  server.on(event, (socket: Socket) => {
    const kept = { bytes: '', certificate: peerCertificate(socket)?.subject };
    socket.on('data', (chunk: Buffer) => {
      kept.bytes += chunk.toString('latin1');
      if (kept.bytes.startsWith('POST ')) last = kept;
    });
  });
  return () => {
    if (last === undefined) return undefined;
    const [head = '', body = ''] = last.bytes.split('\r\n\r\n');
    return { head, form: new URLSearchParams(body), certificate: last.certificate };
  };
}

/** A client of oidc-provider: what is registered besides id, grant and scope. */
export type RegisteredClient = Pick<ClientMetadata, 'client_id' | 'token_endpoint_auth_method'> &
  Partial<ClientMetadata>;

/** The whole of what a client registers of its key. */
export function publicJwks(jwk: object): ClientMetadata['jwks'] {
  return { keys: [jwk] };
}

export async function startOidcProvider(
  certificates: Certificates,
  clients: readonly RegisteredClient[],
): Promise<PeerServer> {
  const authority = new X509Certificate(certificates.ca);
  const { key, cert, ca } = certificates;
  const server = createSecureServer({ key, cert, ca, requestCert: true, rejectUnauthorized: false });
  const lastRequest = record(server, 'secureConnection');
  const issuer = (await listenOnLoopback(server)).replace('http:', 'https:');
  const provider = new Provider(issuer, {
    clients: clients.map((client) => ({
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
      scope: SCOPE,
      ...client,
    })),
    clientAuthMethods: [
      'client_secret_basic',
      'client_secret_post',
      'private_key_jwt',
      'tls_client_auth',
      'self_signed_tls_client_auth',
    ],
    scopes: [SCOPE],
    routes: { token: '/oauth/token' },
    ttl: { ClientCredentials: 3600 },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      mTLS: {
        enabled: true,
        tlsClientAuth: true,
        selfSignedTlsClientAuth: true,
        certificateBoundAccessTokens: true,
        getCertificate: (ctx) => peerCertificate(ctx.req.socket)?.toString(),
        certificateAuthorized: (ctx) => peerCertificate(ctx.req.socket)?.verify(authority.publicKey) ?? false,
        certificateSubjectMatches: (ctx, property, expected) =>
          property === 'tls_client_auth_subject_dn' && peerCertificate(ctx.req.socket)?.subject === expected,
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => AUDIENCE,
        getResourceServerInfo: () => ({ scope: SCOPE, audience: AUDIENCE, accessTokenFormat: 'jwt' }),
      },
    },
  });
  provider.on('grant.success', (ctx) => {
    registerSecret('an access token', (ctx.body as { access_token: string }).access_token);
  });
  const handle = provider.callback();
  server.on('request', (request, response) => void handle(request, response));
  return {
    issuer,
    tokenUrl: `${issuer}/oauth/token`,
    lastRequest,
    [Symbol.asyncDispose]: () => closeServer(server),
  };
}

function peerCertificate(socket: Socket): X509Certificate | undefined {
  return socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
}

/** Takes every client; gives signed tokens; publishes OpenID metadata alone. */
export async function startMockServer(): Promise<PeerServer> {
  const server = new MockServer();
  await server.issuer.keys.generate('RS256');
  const handle = server.service.requestHandler;
  const http = createPlainServer((request, response) => {
    handle(request, response);
  });
  const lastRequest = record(http, 'connection');
  const issuer = await listenOnLoopback(http);
  server.issuer.url = issuer;
  server.service.on('beforeResponse', ({ body }: { body: { access_token: string } }) => {
    registerSecret('an access token', body.access_token);
  });
  return {
    issuer,
    tokenUrl: `${issuer}/token`,
    lastRequest,
    [Symbol.asyncDispose]: () => closeServer(http),
  };
}

/** Knows its clients by their secrets, in Basic (not decoded) or in the form. */
export async function startNodeOAuth(...credentials: readonly Credential[]): Promise<PeerServer> {
  const secrets = new Map(credentials.map(({ id, secret }) => [id, secret]));
  const oauth = new OAuth2Server({
    model: {
      getClient: async (id: string, secret: string) =>
        secrets.get(id) === secret ? { id, grants: ['client_credentials'] } : undefined,
      getUserFromClient: async ({ id }: { id: string }) => ({ id }),
      generateAccessToken: async () => {
        const token = randomBytes(20).toString('hex');
        registerSecret('an access token', token);
        return token;
      },
      validateScope: async (_user: unknown, _client: unknown, scope: string[]) => scope,
      saveToken: async (token: object, client: object, user: object) => ({ ...token, client, user }) as never,
      getAccessToken: async () => undefined,
    },
    accessTokenLifetime: 3600,
  });
  const server = createPlainServer((incoming, serverResponse) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const body = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()));
      const request = new Request({ method: 'POST', headers: incoming.headers as never, query: {}, body });
      const response = new Response();
      // What went wrong is in the response as well.
      const handled = oauth.token(request, response).catch(() => undefined);
      void handled.then(() => {
        serverResponse.writeHead(response.status ?? 500, { ...response.headers, 'content-type': 'application/json' });
        serverResponse.end(JSON.stringify(response.body));
      });
    });
  });
  const lastRequest = record(server, 'connection');
  const issuer = await listenOnLoopback(server);
  return { issuer, tokenUrl: `${issuer}/oauth/token`, lastRequest, [Symbol.asyncDispose]: () => closeServer(server) };
}
