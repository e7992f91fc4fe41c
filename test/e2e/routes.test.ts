/**
 * Two routes with a scope each, tokens of an authorization server that we did not write (oidc-provider), and upstreams that audit every
 * request: no token at the wrong origin, none with the wrong scope, for all responses of the upstreams.
 */
import { once } from 'node:events';
import { decodeJwt } from 'jose';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { scratchFile } from '../config/base-env.ts';
import { startEchoServer } from '../listener/websocket/upgrades.ts';
import { startAuthorizationServer } from '../support/authorization-server.ts';
import { call, post, callConcurrently } from '../support/calls.ts';
import { echo, startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RespondTo, RecordingUpstream } from '../support/recording-upstream.ts';
import { startSidecar, waitUntilReady } from '../support/sidecar-process.ts';

const QUOTES = 'urn:example.partners.sales.individual.travel.quotesrequests.write';
const POLICIES = 'urn:example.partners.sales.individual.travel.policies.write';

/** What a troubled partner does, in turns; `elsewhere` is the other route's API. */
function trouble(elsewhere: () => string): RespondTo {
  return (request, response, index) => {
    const turn = index % 11;
    if (turn === 3) response.writeHead(401).end();
    else if (turn === 5) response.writeHead(429, { 'retry-after': '0' }).end();
    else if (turn === 7) response.writeHead(302, { location: `${elsewhere()}/stolen` }).end();
    else if (turn === 8) response.writeHead(503).end();
    else if (turn === 9) response.destroy();
    else void echo(request, response, index);
  };
}

/** Scope of the token in a field, and whether it is one at all. */
function scopeOf(authorization: string | undefined): unknown {
  return decodeJwt(authorization?.replace(/^Bearer /, '') ?? '').scope;
}

function audit(upstream: RecordingUpstream, prefix: string, scope: string): string[] {
  for (const { path, headers } of upstream.requests) {
    expect([scopeOf(headers.authorization), path]).toEqual([scope, path]);
    expect(path.startsWith(prefix)).toBe(true);
  }
  return upstream.requests.map(({ headers }) => headers.authorization ?? '');
}

it('each token goes to its own origin with its own scope, under 401s, 429s, redirects, resets, retries and upgrades', async () => {
  await using authorization = await startAuthorizationServer('jwt', `${QUOTES} ${POLICIES}`);
  await using quotes: RecordingUpstream = await startRecordingUpstream(trouble(() => policies.url));
  await using policies: RecordingUpstream = await startRecordingUpstream(trouble(() => quotes.url));
  await using liveQuotes = await startEchoServer();
  await using livePolicies = await startEchoServer();
  const { id, secret } = authorization.credential;
  const config = scratchFile(
    JSON.stringify({
      auth: { url: authorization.url, clientId: id, clientSecret: secret, invalidationCooldownMs: 1 },
      throttle: { rate: 10_000, burst: 1000 },
      credentials: {
        quotes: { audience: authorization.audience, scope: QUOTES },
        policies: { audience: authorization.audience, scope: POLICIES },
      },
      routes: [
        { name: 'quotes', pathPrefix: '/quotes', baseUrl: `${quotes.url}/v1`, credential: 'quotes' },
        { name: 'policies', pathPrefix: '/policies', baseUrl: `${policies.url}/v2`, credential: 'policies' },
        {
          name: 'quotes-live',
          pathPrefix: '/quotes/live',
          baseUrl: liveQuotes.url,
          credential: 'quotes',
          websocket: true,
        },
        {
          name: 'policies-live',
          pathPrefix: '/policies/live',
          baseUrl: livePolicies.url,
          credential: 'policies',
          websocket: true,
        },
      ],
    }),
  );
  await using sidecar = await startSidecar({ name: 'routes', env: { SIDECAR_CONFIG: config } });
  await waitUntilReady(sidecar);
  expect(authorization.tokenRequests()).toBe(2);

  const statuses = await callConcurrently(150, async (index) => {
    const path = `${index % 2 === 0 ? '/quotes' : '/policies'}/${String(index)}`;
    const url = sidecar.proxyUrl + path;
    const response = index % 3 === 0 ? await call(url) : await post(url, { index }, { authorization: 'Bearer mine' });
    return response.status;
  });
  expect(new Set(statuses)).toContain(200);
  for (const route of ['quotes', 'policies']) {
    const socket = new WebSocket(`${sidecar.proxyUrl.replace('http', 'ws')}/${route}/live/feed`);
    await once(socket, 'open');
    socket.close();
    await once(socket, 'close');
  }

  const seen = [audit(quotes, '/v1/quotes/', QUOTES), audit(policies, '/v2/policies/', POLICIES)];
  expect(liveQuotes.seen.map(({ headers }) => scopeOf(headers.authorization))).toEqual([QUOTES]);
  expect(livePolicies.seen.map(({ headers }) => scopeOf(headers.authorization))).toEqual([POLICIES]);
  for (const tokens of seen) expect(tokens.length).toBeGreaterThan(75);
  // The 401s have brought new tokens, and each side has only ever seen its own.
  expect(authorization.tokenRequests()).toBeGreaterThan(2);
  expect(seen[0]?.filter((token) => seen[1]?.includes(token))).toEqual([]);
});
