/**
 * A real authorization server, oidc-provider, in a process of its own, whose one client has the secret that its parent
 * last sent. The one before is refused from that moment on. Access tokens are JWTs of a few seconds.
 */
import { createServer } from 'node:http';
import Provider from 'oidc-provider';
import type { Adapter } from 'oidc-provider';
import { listenOnLoopback } from './loopback.ts';
import { AUDIENCE, CLIENT_ID, SCOPE } from './rotating-client.ts';
import type { SecretMessage, ServerMessage } from './rotating-client.ts';

const LIFETIME_S = 6;

let secret = '';
const report = (message: ServerMessage): void => void process.send?.(message);

/** Knows the one client, and keeps nothing. */
const adapter: Adapter = {
  find: (id: string) =>
    Promise.resolve(
      id === CLIENT_ID
        ? {
            client_id: CLIENT_ID,
            client_secret: secret,
            grant_types: ['client_credentials'],
            redirect_uris: [],
            response_types: [],
            scope: SCOPE,
          }
        : undefined,
    ),
  upsert: () => Promise.resolve(),
  consume: () => Promise.resolve(),
  destroy: () => Promise.resolve(),
  revokeByGrantId: () => Promise.resolve(),
  findByUid: () => Promise.resolve(undefined),
  findByUserCode: () => Promise.resolve(undefined),
};

async function serve(): Promise<void> {
  const server = createServer();
  const url = await listenOnLoopback(server);
  const provider = new Provider(url, {
    adapter: () => adapter,
    scopes: [SCOPE],
    routes: { token: '/oauth/token' },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => AUDIENCE,
        getResourceServerInfo: () => ({
          scope: SCOPE,
          audience: AUDIENCE,
          accessTokenTTL: LIFETIME_S,
          accessTokenFormat: 'jwt',
        }),
      },
    },
  });
  provider.on('grant.success', (ctx) => {
    report({ kind: 'granted', token: (ctx.body as { access_token: string }).access_token });
  });
  provider.on('grant.error', (_ctx, error) => {
    report({ kind: 'refused', error: error.message });
  });
  const handle = provider.callback();
  server.on('request', (request, response) => void handle(request, response));
  report({ kind: 'listening', url });
}

process.on('message', (message: SecretMessage) => {
  const isFirst = secret === '';
  secret = message.secret;
  if (isFirst) void serve();
  else report({ kind: 'rotated' });
});
process.on('disconnect', () => process.exit(0));
