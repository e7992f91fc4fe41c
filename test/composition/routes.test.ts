/** Several routes and credentials in one process: tokens, isolation of routes, events and metrics of each. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { configOf, scratchDirectory, scratchFile } from '../config/base-env.ts';
import { echo, startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RespondTo, RecordedRequest } from '../support/recording-upstream.ts';
import { identifyClient } from '../../src/config/config.ts';
import { startInProcess, until } from './in-process.ts';
import type { InProcess } from './in-process.ts';
import { send, sendAndLeave } from './send.ts';

interface Shown {
  readonly tokens: readonly { readonly credential: string; readonly status: string }[];
  readonly throttles: readonly {
    readonly route: string;
    readonly queued: number;
    readonly learned: { readonly limit: number | null } | null;
  }[];
}

/** A token that says which scope it was asked for. */
const tokenForScope: RespondTo = (request, response, index) => {
  const token = { access_token: `${scopeOf(request)}-token-${String(index)}`, token_type: 'Bearer', expires_in: 3600 };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(token));
};

function scopeOf({ body }: RecordedRequest): string {
  return new URLSearchParams(body.toString()).get('scope') ?? 'none';
}

/** No route and no credential at the top level but for what they have in common. */
const ONLY_ROUTES = { SIDECAR_BASE_URL: '', SIDECAR_AUDIENCE: '' };

function start(yaml: string, more: Parameters<typeof startInProcess>[0] = {}): Promise<InProcess> {
  const env = { ...ONLY_ROUTES, SIDECAR_CONFIG: scratchFile(yaml), ...more.env };
  return startInProcess({ respondToTokenRequest: tokenForScope, ...more, env });
}

async function statusOf({ sidecar }: InProcess): Promise<Shown> {
  return (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as Shown;
}

/** The learned limit of a route; null: none yet. */
async function limitOf(sidecar: InProcess, name: string): Promise<number | null> {
  return (await statusOf(sidecar)).throttles.find(({ route }) => route === name)?.learned?.limit ?? null;
}

const CREDENTIALS = 'credentials: { quotes: { scope: quotes }, policies: { scope: policies } }';

function twoRoutes(quotes: string, policies: string, more = ''): string {
  return `${CREDENTIALS}
routes:
  - { name: quotes, pathPrefix: /quotes, baseUrl: "${quotes}", credential: quotes ${more} }
  - { name: policies, pathPrefix: /policies, baseUrl: "${policies}", credential: policies ${more} }`;
}

describe('two routes', () => {
  it('send their own tokens to their own upstreams, and are named in events', async () => {
    await using quotes = await startRecordingUpstream();
    await using policies = await startRecordingUpstream();
    const sidecar = await start(twoRoutes(`${quotes.url}/v1`, policies.url));
    expect((await send(`${sidecar.url}/quotes/1?a=b`, { method: 'POST', body: 'x' })).text).toBe('x');
    expect((await send(`${sidecar.url}/policies`)).status).toBe(200);
    expect(quotes.requests.map(({ path }) => path)).toEqual(['/v1/quotes/1?a=b']);
    expect(policies.requests.map(({ path }) => path)).toEqual(['/policies']);
    expect(quotes.requests[0]?.headers.authorization).toMatch(/^Bearer quotes-token/);
    expect(policies.requests[0]?.headers.authorization).toMatch(/^Bearer policies-token/);
    expect(sidecar.tokens.requests.map(scopeOf).toSorted()).toEqual(['policies', 'quotes']);
    expect((await sidecar.requestRecords(2)).map(({ route }) => route)).toEqual(['quotes', 'policies']);
    expect(await sidecar.metric('bearer_sidecar_permits_total{route="policies"}')).toBe(1);
  });

  it('refuse a path of no route with an explanation, and count it as default', async () => {
    const sidecar = await start(twoRoutes('http://127.0.0.1:1', 'http://127.0.0.1:2'));
    const reply = await send(`${sidecar.url}/other`);
    expect(reply).toMatchObject({ status: 403, code: 'REQUEST_NOT_ALLOWED' });
    expect(reply.text).toContain('no route has this path; the routes are /quotes, /policies');
    expect(await send(`${sidecar.url}/quotes%2f1`)).toMatchObject({ status: 400, code: 'BAD_REQUEST' });
    expect((await sidecar.requestRecords(2)).map(({ route }) => route)).toEqual(['default', 'default']);
  });

  it('refuse other methods with Allow', async () => {
    await using api = await startRecordingUpstream();
    const sidecar = await start(twoRoutes(api.url, api.url, ', methods: [GET, POST]'));
    const reply = await send(`${sidecar.url}/quotes/1`, { method: 'DELETE' });
    expect(reply).toMatchObject({ status: 405, code: 'METHOD_NOT_ALLOWED', fields: { allow: 'GET, POST' } });
    expect((await send(`${sidecar.url}/quotes/1`)).status).toBe(200);
    expect((await sidecar.requestRecords(2)).map(({ route, code }) => [route, code])).toEqual([
      ['quotes', 405],
      ['quotes', 200],
    ]);
    expect(api.requests).toHaveLength(1);
  });

  it('divide a prefix by their methods, and refuse a method of none with Allow', async () => {
    await using quotes = await startRecordingUpstream();
    await using policies = await startRecordingUpstream();
    const route = (name: string, url: string, methods: string): string =>
      `  - { name: ${name}, pathPrefix: /sales, baseUrl: "${url}", credential: ${name}, methods: [${methods}] }`;
    const read = route('quotes', quotes.url, 'GET, HEAD');
    const sidecar = await start(`${CREDENTIALS}\nroutes:\n${read}\n${route('policies', policies.url, 'POST')}`);
    expect((await send(`${sidecar.url}/sales/1`)).status).toBe(200);
    expect((await send(`${sidecar.url}/sales/1`, { method: 'POST', body: 'x' })).status).toBe(200);
    const reply = await send(`${sidecar.url}/sales/1`, { method: 'DELETE' });
    expect(reply).toMatchObject({ status: 405, code: 'METHOD_NOT_ALLOWED', fields: { allow: 'GET, HEAD, POST' } });
    expect(quotes.requests.map(({ method }) => method)).toEqual(['GET']);
    expect(policies.requests.map(({ method }) => method)).toEqual(['POST']);
    expect(policies.requests[0]?.headers.authorization).toMatch(/^Bearer policies-token/);
  });

  it('of which one has no methods give it the rest', async () => {
    await using quotes = await startRecordingUpstream();
    await using policies = await startRecordingUpstream();
    const sidecar = await start(`${CREDENTIALS}
routes:
  - { name: quotes, pathPrefix: /sales, baseUrl: "${quotes.url}", credential: quotes }
  - { name: policies, pathPrefix: /sales, baseUrl: "${policies.url}", credential: policies, methods: POST }`);
    for (const method of ['GET', 'POST', 'DELETE']) await send(`${sidecar.url}/sales`, { method });
    expect(quotes.requests.map(({ method }) => method)).toEqual(['GET', 'DELETE']);
    expect(policies.requests.map(({ method }) => method)).toEqual(['POST']);
  });

  it('keep to a limit of one operation by the path that the client sent', async () => {
    await using api = await startRecordingUpstream();
    const limits = 'limits: [{ name: posts, calls: 2, per: 1h, match: { methods: [post], path: /quotes/new } }]';
    const sidecar = await start(
      `throttle: { ${limits} }\n${twoRoutes(`${api.url}/v1`, api.url, ', stripPrefix: true')}`,
    );
    const post = (path: string) => send(`${sidecar.url}${path}`, { method: 'POST', body: 'x' });
    for (const path of ['/quotes/new', '/quotes/n%65w/2', '/quotes/old']) expect((await post(path)).status).toBe(200);
    expect(await post('/quotes/new?again')).toMatchObject({ status: 503, code: 'QUOTA_EXHAUSTED' });
    expect((await post('/quotes/x%2f..%2fnew')).status).toBe(400);
    expect((await send(`${sidecar.url}/quotes/new`)).status).toBe(200);
    const status: unknown = await (await fetch(`${sidecar.sidecar.adminUrl}/status`)).json();
    const { throttles } = status as { readonly throttles: readonly { readonly route: string }[] };
    expect(throttles.find(({ route }) => route === 'quotes')).toMatchObject({
      limits: [{ name: 'posts', used: 2, match: 'POST /quotes/new' }],
    });
  });

  it('retry after a 401 with a newer token of the same credential, without effect on the other', async () => {
    await using quotes = await startRecordingUpstream((request, response, index) =>
      index === 0 ? void response.writeHead(401).end() : echo(request, response, index),
    );
    const sidecar = await start(twoRoutes(quotes.url, quotes.url));
    expect((await send(`${sidecar.url}/quotes`)).status).toBe(200);
    const sent = quotes.requests.map(({ headers }) => headers.authorization?.replace(/-\d+$/, ''));
    expect(sent).toEqual(['Bearer quotes-token', 'Bearer quotes-token']);
    expect(sidecar.eventsOf('token-invalidated').map(({ credential }) => credential)).toEqual(['quotes']);
    expect(sidecar.tokens.requests.map(scopeOf).filter((scope) => scope === 'policies')).toHaveLength(1);
  });
});

describe('a route that is paused', () => {
  const slowDown: RespondTo = (_request, response) => {
    response.writeHead(429, { 'retry-after': '25' }).end();
  };

  it('does not slow another route', async () => {
    await using quotes = await startRecordingUpstream(slowDown);
    await using policies = await startRecordingUpstream();
    const sidecar = await start(twoRoutes(quotes.url, policies.url));
    const waiting = sendAndLeave(`${sidecar.url}/quotes`);
    await until(() => sidecar.eventsOf('rate-limited').length === 1, 'a pause');
    for (let count = 0; count < 20; count++) expect((await send(`${sidecar.url}/policies`)).status).toBe(200);
    expect((await statusOf(sidecar)).throttles).toMatchObject([
      { route: 'quotes', queued: 1 },
      { route: 'policies', queued: 0 },
    ]);
    expect(quotes.requests).toHaveLength(1);
    expect(sidecar.eventsOf('rate-limited').map(({ route }) => route)).toEqual(['quotes']);
    waiting.leave();
  });

  it('pauses the routes of its group', async () => {
    await using quotes = await startRecordingUpstream(slowDown);
    await using policies = await startRecordingUpstream();
    const sidecar = await start(twoRoutes(quotes.url, policies.url, ', throttle: { group: partner }'));
    const waiting = [sendAndLeave(`${sidecar.url}/quotes`)];
    await until(() => sidecar.eventsOf('rate-limited').length === 1, 'a pause');
    waiting.push(sendAndLeave(`${sidecar.url}/policies`));
    await until(() => sidecar.eventsOf('rate-limited').length === 1, 'no further signal');
    for (let queued = 0; queued < 2;) queued = (await statusOf(sidecar)).throttles[0]?.queued ?? 0;
    expect((await statusOf(sidecar)).throttles).toMatchObject([{ route: 'partner', queued: 2 }]);
    expect(policies.requests).toHaveLength(0);
    for (const { leave } of waiting) leave();
  });
});

describe('a redirect', () => {
  it.each([
    ['/v1/quotes/2', '/quotes/2', 'to the same route'],
    ['http://SELF/v1/policies/2', '/policies/2', 'to another route of the same base'],
    ['http://SELF/v2/x', 'http://SELF/v2/x', 'beside the base'],
    ['/v1/strange/x', 'http://SELF/v1/strange/x', 'to what no route takes'],
    ['/v1/elsewhere/x', 'http://SELF/v1/elsewhere/x', 'to what a route with another base takes'],
  ])('to %s becomes %s: %s', async (location, expected) => {
    await using api = await startRecordingUpstream((_request, response) => {
      response.writeHead(302, { location: location.replace('SELF', new URL(api.url).host) }).end();
    });
    const more = '\n  - { name: elsewhere, pathPrefix: /elsewhere, baseUrl: "http://127.0.0.1:1", credential: quotes }';
    const sidecar = await start(twoRoutes(`${api.url}/v1`, `${api.url}/v1/`) + more);
    const reply = await send(`${sidecar.url}/quotes/1`);
    expect(reply.fields.location).toBe(expected.replace('SELF', new URL(api.url).host));
  });

  it('gets a stripped prefix back', async () => {
    await using api = await startRecordingUpstream((request, response) => {
      response.writeHead(302, { location: request.path === '/v1' ? '/v1' : '2?x' }).end();
    });
    const sidecar = await start(twoRoutes(`${api.url}/v1`, api.url, ', stripPrefix: true'));
    expect((await send(`${sidecar.url}/quotes/1`)).fields.location).toBe('/quotes/2?x');
    expect((await send(`${sidecar.url}/quotes`)).fields.location).toBe('/quotes');
    expect(api.requests.map(({ path }) => path)).toEqual(['/v1/1', '/v1']);
  });
});

describe('readiness', () => {
  it('needs a token for every credential, names missing ones, and other routes are served', async () => {
    await using api = await startRecordingUpstream();
    const sidecar = await start(twoRoutes(api.url, api.url), {
      respondToTokenRequest: (request, response, index) => {
        if (scopeOf(request) === 'quotes') return tokenForScope(request, response, index);
        response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_scope"}');
      },
    });
    await until(() => sidecar.eventsOf('token-requested').length === 2, 'both token requests');
    const probe = await send(`${sidecar.sidecar.adminUrl}/readyz`);
    expect(probe.status).toBe(503);
    expect(JSON.parse(probe.text)).toEqual({
      ready: false,
      reasons: [
        expect.stringMatching(/^credential quotes: token valid for \d+ s$/),
        'credential policies: no usable token',
        'credential policies: token endpoint failed once (rejected)',
      ],
    });
    expect((await send(`${sidecar.sidecar.adminUrl}/startupz`)).status).toBe(503);
    expect((await send(`${sidecar.url}/quotes`)).status).toBe(200);
    expect(await send(`${sidecar.url}/policies`)).toMatchObject({ status: 502, code: 'TOKEN_REJECTED' });
    expect(api.requests).toHaveLength(1);
  });
});

describe('two hundred routes', () => {
  const names = Array.from({ length: 200 }, (_, at) => `r${String(at)}`);

  it('need one token request per credential, and have their metric series from the start', async () => {
    await using api = await startRecordingUpstream();
    const credentials = names.map((name) => `  ${name}: { scope: ${name} }`).join('\n');
    const routes = names
      .map((name) => `  - { name: ${name}, pathPrefix: /api/${name}, baseUrl: "${api.url}", credential: ${name} }`)
      .join('\n');
    const sidecar = await start(`credentials:\n${credentials}\nroutes:\n${routes}`);
    await until(() => sidecar.eventsOf('token-requested').length === 200, 'all tokens');
    expect((await send(`${sidecar.sidecar.adminUrl}/readyz`)).status).toBe(200);
    expect(sidecar.tokens.requests.map(scopeOf).toSorted()).toEqual(names.toSorted());
    await Promise.all(names.map((name) => send(`${sidecar.url}/api/${name}/x`)));
    for (const { path, headers } of api.requests)
      expect(headers.authorization).toMatch(new RegExp(`^Bearer ${path.split('/')[2] ?? ''}-token-`));
    expect(api.requests).toHaveLength(200);
    expect(sidecar.tokens.requests).toHaveLength(200);
    expect(await sidecar.metric('bearer_sidecar_queue_rejected_total{route="r199",reason="full"}')).toBe(0);
    expect(await sidecar.metric('bearer_sidecar_token_requests_total{credential="r7",outcome="ok"}')).toBe(1);
  });
});

describe('a stop', () => {
  it('writes what every route has learned to one file', async () => {
    const limited: RespondTo = (_request, response, index) => {
      response.writeHead(index % 3 === 2 ? 429 : 200, { 'retry-after': '0' }).end();
    };
    await using quotes = await startRecordingUpstream(limited);
    await using policies = await startRecordingUpstream(limited);
    const path = join(scratchDirectory(), 'learned.json');
    const sidecar = await start(twoRoutes(quotes.url, policies.url), {
      env: { SIDECAR_RATE: 'auto', SIDECAR_BURST: '1', SIDECAR_THROTTLE_STATE_FILE: path },
    });
    for (const route of ['quotes', 'policies'])
      for (let limit: number | null = null; limit === null; limit = await limitOf(sidecar, route))
        await send(`${sidecar.url}/${route}`);
    expect(await sidecar.sidecar.drain()).toBe(0);
    const { limits } = JSON.parse(readFileSync(path, 'utf8')) as { limits: [string, { upstream: string }][] };
    expect(limits.map(([name, { upstream }]) => [name, upstream])).toEqual([
      ['quotes', quotes.url],
      ['policies', policies.url],
    ]);
    expect(sidecar.eventsOf('warning')).toEqual([]);
  });
});

it('a credential without a client id is known by its name, so that the limits of two keys are not one', () => {
  const env = { SIDECAR_BASE_URL: 'https://api.example.com', SIDECAR_AUTH_METHOD: 'static' };
  const identify = (name: string, clientId?: string) => {
    const auth = configOf({
      ...{ SIDECAR_AUTH_URL: '', SIDECAR_CLIENT_SECRET: '', SIDECAR_AUDIENCE: '' },
      ...{ ...env, SIDECAR_AUTH_TOKEN_FILE: '/run/token', SIDECAR_CLIENT_ID: clientId },
    }).auth;
    return identifyClient({ name, auth });
  };
  expect(identify('a', '')).toEqual(identify('a', ''));
  expect(identify('a', '')).not.toEqual(identify('b', ''));
  expect(identify('a', 'app-1')).toEqual({ kind: 'value', value: 'app-1' });
});
