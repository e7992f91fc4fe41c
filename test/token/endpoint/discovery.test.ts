/** The token endpoint found by its issuer: which documents are asked for, for how long one counts, what an outage changes. */
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import type { TokenEndpoint, TokenEndpointOptions } from '../../../src/token/endpoint/token-endpoint.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { closeServer, listenOnLoopback } from '../../support/loopback.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { askOnce, buildEndpoint } from './endpoint.ts';

const OAUTH = '/.well-known/oauth-authorization-server/tenant';
const OPENID = '/tenant/.well-known/openid-configuration';
const HOUR_MS = 3_600_000;

type Document = { readonly status?: number; readonly body?: unknown } | 'hang' | 'cut';

/** What each path says; the token endpoint gives tokens unless told otherwise. */
let documents: Map<string, Document>;
let asked: string[];
let base: string;
const respond: RequestListener = (request, response) => {
  request.resume().on('end', () => {
    const path = request.url ?? '';
    asked.push(path);
    const document = documents.get(path) ?? { status: 404 };
    if (document === 'cut') request.socket.destroy();
    if (typeof document === 'string') return;
    const { status = 200, body = '' } = document;
    response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
};

let server: Server;
beforeEach(async () => {
  server = createServer(respond);
  base = await listenOnLoopback(server);
  asked = [];
  documents = new Map([['/token', { body: { access_token: 't0ken', token_type: 'Bearer', expires_in: 3600 } }]]);
});
afterEach(() => closeServer(server));

const issuer = (): string => `${base}/tenant`;
const metadata = (more: object = {}): Document => ({
  body: { issuer: issuer(), token_endpoint: `${base}/token`, ...more },
});

interface Asking {
  readonly clock: ManualClock;
  readonly events: SidecarEvent[];
  readonly ask: () => ReturnType<typeof askOnce>;
}

function start(options: Partial<TokenEndpointOptions> = {}): Asking {
  const clock = new ManualClock();
  const events: SidecarEvent[] = [];
  const endpoint: TokenEndpoint = buildEndpoint(issuer(), {
    clock,
    observe: (event) => events.push(event),
    ...options,
  });
  return { clock, events, ask: () => askOnce(endpoint) };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}

describe('the endpoint is found', () => {
  test('by OAuth metadata', async () => {
    documents.set(OAUTH, metadata());
    expect(await start().ask()).toMatchObject({ kind: 'ok', value: 't0ken' });
    expect(asked).toEqual([OAUTH, '/token']);
  });

  test.each<[string, Document]>([
    ['is not there', { status: 404 }],
    ['is HTML', { body: '<html>' }],
    ['names another issuer', { body: { issuer: 'https://evil.test', token_endpoint: 'https://evil.test/t' } }],
    ['is forbidden', { status: 403 }],
    ['is elsewhere', { status: 302 }],
  ])('by OpenID metadata where the former %s', async (_, document) => {
    documents.set(OAUTH, document).set(OPENID, metadata());
    expect(await start().ask()).toMatchObject({ kind: 'ok' });
    expect(asked).toEqual([OAUTH, OPENID, '/token']);
  });
});

describe('the endpoint is not found', () => {
  test('where nothing is published: refused, naming the setting', async () => {
    expect(await start().ask()).toEqual({
      kind: 'rejected',
      detail: `${base}${OAUTH} answered the request for the issuer's metadata with 404: check auth.issuer`,
    });
    expect(asked).toEqual([OAUTH, OPENID]);
  });

  test('where another issuer speaks, and no credential is sent anywhere', async () => {
    documents.set(OAUTH, { body: { issuer: `${issuer()}/`, token_endpoint: `${base}/token` } });
    expect(await start().ask()).toEqual({
      kind: 'malformed',
      detail: `the metadata of ${base}${OAUTH} names "${issuer()}/" as the issuer: set auth.issuer to exactly that`,
    });
    expect(asked).toEqual([OAUTH, OPENID]);
  });

  test('in a document without end', async () => {
    documents.set(OAUTH, { body: ' '.repeat(200_000) });
    documents.set(OPENID, { status: 503 });
    expect(await start().ask()).toMatchObject({
      kind: 'unavailable',
      detail: `${base}${OAUTH} answered the request for the issuer's metadata with 200 and too long a body`,
    });
  });

  test('where nobody answers', async () => {
    documents.set(OAUTH, 'cut');
    expect(await start().ask()).toMatchObject({
      kind: 'unavailable',
      detail: expect.stringContaining(`${new URL(base).host} `) as unknown,
    });
    expect(asked).toEqual([OAUTH]);
  });

  test('within the time of a token request', async () => {
    documents.set(OAUTH, 'hang');
    const { ask, clock } = start({ timeoutMs: 700 });
    const asking = ask();
    await until(() => asked.length === 1);
    await clock.advance(700);
    const { host } = new URL(base);
    expect(await asking).toEqual({ kind: 'unavailable', detail: `${host} sent no complete response within 700 ms` });
  });
});

describe('a document', () => {
  test('counts for an hour, and is then renewed while the old one is used', async () => {
    documents.set(OAUTH, metadata());
    const { ask, clock } = start();
    await ask();
    await clock.advance(HOUR_MS - 1);
    await ask();
    expect(asked).toEqual([OAUTH, '/token', '/token']);
    documents.set(OAUTH, metadata({ token_endpoint: `${base}/token2` }));
    documents.set('/token2', documents.get('/token') ?? 'cut');
    await clock.advance(1);
    await ask();
    await until(() => asked.length === 5 && clock.pendingTimers === 0);
    expect(asked.slice(3).toSorted()).toEqual([OAUTH, '/token']);
    await ask();
    expect(asked.slice(5)).toEqual(['/token2']);
  });

  test('stays in use in an outage of its issuer, which is told of once', async () => {
    documents.set(OAUTH, metadata());
    const { ask, clock, events } = start();
    await ask();
    documents.set(OAUTH, 'cut');
    for (const pauseMs of [HOUR_MS, HOUR_MS, 1, 60_000]) {
      await clock.advance(pauseMs);
      const before = asked.length;
      expect(await ask()).toMatchObject({ kind: 'ok' });
      // A renewal under way has a timer.
      await until(() => asked.length === before + (pauseMs === 1 ? 1 : 2) && clock.pendingTimers === 0);
    }
    const message = `${issuer()} cannot be reached; the cached copy stays in use`;
    expect(events).toEqual([{ kind: 'warning', message }]);
  });

  test('that leads nowhere is renewed at once', async () => {
    documents.set(OAUTH, metadata());
    const { ask, clock } = start();
    await ask();
    documents.set(OAUTH, metadata({ token_endpoint: `${base}/moved` }));
    documents.set('/moved', documents.get('/token') ?? 'cut').delete('/token');
    expect(await ask()).toMatchObject({ kind: 'rejected', detail: expect.stringContaining('auth.issuer') as unknown });
    await ask();
    await until(() => asked.includes(OAUTH, 1) && clock.pendingTimers === 0);
    expect(await ask()).toMatchObject({ kind: 'ok' });
  });
});

test('a client with a certificate goes where the server wants those (RFC 8705 §5)', async () => {
  using certificates = makeCertificates();
  const clientCertificate = certificates.issue('client-1');
  documents.set(OAUTH, metadata({ mtls_endpoint_aliases: { token_endpoint: `${base}/mtls` } }));
  documents.set('/mtls', documents.get('/token') ?? 'cut');
  await start().ask();
  await start({ clientCertificate }).ask();
  documents.set(OAUTH, metadata());
  await start({ clientCertificate }).ask();
  expect(asked.filter((path) => path !== OAUTH)).toEqual(['/token', '/mtls', '/token']);
});

test('a method that the server does not list is named once, and used', async () => {
  documents.set(OAUTH, metadata({ token_endpoint_auth_methods_supported: ['private_key_jwt'] }));
  const { ask, events } = start();
  expect([(await ask()).kind, (await ask()).kind]).toEqual(['ok', 'ok']);
  expect(events).toEqual([
    {
      kind: 'warning',
      message: 'auth.method is client_secret_basic, and the authorization server lists private_key_jwt',
    },
  ]);
});

test('the issuer, not the endpoint found by it, is what a token is bound to', async () => {
  const endpoint = buildEndpoint('https://login.test/tenant', { extraHeaders: { 'X-Key': 'v' }, scope: 's' });
  const credential = await endpoint.readCredential();
  expect(credential.kind === 'ready' && endpoint.identify(credential).binding).toEqual({
    tokenUrl: 'https://login.test/tenant',
    clientId: 'client-1',
    method: 'client_secret_basic',
    requestedParameters: [
      ['audience', 'https://api.test/'],
      ['scope', 's'],
      ['x-key:', 'v'],
    ],
  });
});
