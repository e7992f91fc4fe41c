/** An independent OAuth library accepts the response of the simulated server, and its token with the published key. */
import * as oauth from 'oauth4webapi';
import { afterEach, expect, test } from 'vitest';
import { KNOWN_SCOPES } from '../../src/sandbox/scenario.ts';
import { ISSUER } from '../../src/sandbox/token-issuer.ts';
import { fetch } from './https-client.ts';
import { AUDIENCE, basic, closeStarted, start } from './token-client.ts';

afterEach(closeStarted);

test('an independent OAuth library accepts the response and the token', async () => {
  const server = await start();
  const as = {
    issuer: ISSUER,
    token_endpoint: new URL('/oauth/token', ISSUER).href,
    jwks_uri: new URL('/.well-known/jwks.json', ISSUER).href,
  };
  const client: oauth.Client = { client_id: 'client' };
  const rawBasic: oauth.ClientAuth = (_as, _client, _body, headers) => {
    headers.set('authorization', basic('client:secret'));
  };
  // The library insists on https and adds a charset: both are undone on the way to the loopback server.
  const toLoopback = async (url: string, options: oauth.CustomFetchOptions<string, unknown>): Promise<Response> => {
    const target = new URL(new URL(url).pathname, server.url);
    if (!(options.body instanceof URLSearchParams)) return fetch(target, { headers: options.headers });
    const headers = { ...options.headers, 'content-type': 'application/x-www-form-urlencoded' };
    return fetch(target, { method: 'POST', headers, body: options.body.toString() });
  };

  const response = await oauth.clientCredentialsGrantRequest(
    as,
    client,
    rawBasic,
    { audience: AUDIENCE },
    { [oauth.customFetch]: toLoopback },
  );
  const tokens = await oauth.processClientCredentialsResponse(as, client, response);
  expect(tokens).toMatchObject({ token_type: 'bearer', expires_in: 3600 });

  const call = new Request('http://127.0.0.1/', { headers: { authorization: `Bearer ${tokens.access_token}` } });
  const claims = await oauth.validateJwtAccessToken(as, call, AUDIENCE, { [oauth.customFetch]: toLoopback });
  expect(claims).toMatchObject({ client_id: 'client', aud: AUDIENCE, scope: KNOWN_SCOPES.join(' ') });
});
