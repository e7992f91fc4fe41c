/**
 * A real authorization server, oidc-provider, with the client credentials grant alone. It form-decodes the Basic value
 * as RFC 6749 §2.3.1 has it, so its client's secret holds nothing that decoding would change.
 */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import Provider from 'oidc-provider';
import { closeServer, listenOnLoopback } from './loopback.ts';
import { registerSecret } from './secrets.ts';
import type { Credential } from './secrets.ts';

/** A scope that the server knows and the client may not have. */
export const FOREIGN_SCOPE = 'urn:example.partners.sales.individual.travel.quotesrequests.write';

export interface AuthorizationServer extends AsyncDisposable {
  /** The issuer; its token route is `/oauth/token`. */
  readonly url: string;
  readonly credential: Credential;
  readonly audience: string;
  readonly scope: string;
  /** Responses of the token route, with a token or without. */
  readonly tokenRequests: () => number;
}

/**
 * @param format of the access tokens; `jwt` ones are signed with a key made at start
 * @param scope what the client may have
 */
export async function startAuthorizationServer(
  format: 'jwt' | 'opaque',
  scope = 'urn:example.partners.sales.individual.travel.policies.write',
): Promise<AuthorizationServer> {
  const audience = 'https://api.partner.example/';
  const credential = { id: 'legacy-app', secret: randomBytes(18).toString('hex') };
  registerSecret('a client secret', credential.secret);
  registerSecret('a client id and secret, joined for Basic', `${credential.id}:${credential.secret}`);

  const server = createServer();
  const url = await listenOnLoopback(server);
  const provider = new Provider(url, {
    clients: [
      {
        client_id: credential.id,
        client_secret: credential.secret,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
        scope,
      },
    ],
    scopes: [...new Set([...scope.split(' '), FOREIGN_SCOPE])],
    routes: { token: '/oauth/token' },
    ttl: { ClientCredentials: 3600 },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        // The partner's `audience` field is RFC 8707's `resource` under an older name.
        defaultResource: (ctx) => {
          const requestedAudience = ctx.oidc.body?.audience;
          return typeof requestedAudience === 'string' ? requestedAudience : [];
        },
        getResourceServerInfo: () => ({ scope, audience, accessTokenTTL: 3600, accessTokenFormat: format }),
      },
    },
  });
  let tokenRequests = 0;
  provider.on('grant.success', (ctx) => {
    tokenRequests++;
    registerSecret('an access token', (ctx.body as { access_token: string }).access_token);
  });
  provider.on('grant.error', () => tokenRequests++);
  const handle = provider.callback();
  server.on('request', (request, response) => void handle(request, response));
  return {
    url,
    credential,
    audience,
    scope,
    tokenRequests: () => tokenRequests,
    [Symbol.asyncDispose]: () => closeServer(server),
  };
}
