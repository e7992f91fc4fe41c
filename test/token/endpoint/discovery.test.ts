/** Discovery of the token endpoint: which documents are requested, how long they are cached, and outages. */
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import type { TokenEndpoint, TokenEndpointOptions } from '../../../src/token/endpoint/token-endpoint.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { closeServer, listenOnLoopback } from '../../support/loopback.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { askOnce, buildEndpoint, valuesOf } from './endpoint.ts';

const OAUTH = '/.well-known/oauth-authorization-server/tenant';
const OPENID = '/tenant/.well-known/openid-configuration';
const HOUR_MS = 3_600_000;

type Document = { readonly status?: number; readonly body?: unknown; readonly coding?: string } | 'hang' | 'cut';

/** The response of each path; the token endpoint returns tokens by default. */
let documents: Map<string, Document>;
let requested: string[];
let base: string;
const respond: RequestListener = (request, response) => {
  request.resume().on('end', () => {
    const path = request.url ?? '';
    requested.push(path);
    const document = documents.get(path) ?? { status: 404 };
    if (document === 'cut') request.socket.destroy();
    if (typeof document === 'string') return;
    const { status = 200, body = '', coding } = document;
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    if (coding !== undefined) response.setHeader('content-encoding', coding);
    response.writeHead(status).end(coding === 'gzip' ? gzipSync(text) : text);
  });
};

let server: Server;
beforeEach(async () => {
  server = createServer(respond);
  base = await listenOnLoopback(server);
  requested = [];
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
    observe: (event) => {
      // Each response has one.
      if (event.kind !== 'clock-compared') events.push(event);
    },
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
    expect(requested).toEqual([OAUTH, '/token']);
  });

  test('by a compressed document', async () => {
    documents.set(OAUTH, { ...(metadata() as object), coding: 'gzip' });
    expect(await start().ask()).toMatchObject({ kind: 'ok', value: 't0ken' });
  });

  test.each<[string, Document]>([
    ['is not there', { status: 404 }],
    ['is HTML', { body: '<html>' }],
    ['names another issuer', { body: { issuer: 'https://evil.test', token_endpoint: 'https://evil.test/t' } }],
    ['is forbidden', { status: 403 }],
    ['is elsewhere', { status: 302 }],
  ])('by OpenID metadata if the OAuth document %s', async (_, document) => {
    documents.set(OAUTH, document).set(OPENID, metadata());
    expect(await start().ask()).toMatchObject({ kind: 'ok' });
    expect(requested).toEqual([OAUTH, OPENID, '/token']);
  });
});

describe('the endpoint is not found', () => {
  test('without metadata: the rejection names the setting', async () => {
    expect(await start().ask()).toEqual({
      kind: 'rejected',
      detail: `${base}${OAUTH} answered the request for the issuer's metadata with 404: check auth.issuer`,
    });
    expect(requested).toEqual([OAUTH, OPENID]);
  });

  test('in a document that names another issuer, and no credential is sent', async () => {
    documents.set(OAUTH, { body: { issuer: `${issuer()}/`, token_endpoint: `${base}/token` } });
    expect(await start().ask()).toEqual({
      kind: 'malformed',
      detail: `the metadata of ${base}${OAUTH} names "${issuer()}/" as the issuer: set auth.issuer to exactly that`,
    });
    expect(requested).toEqual([OAUTH, OPENID]);
  });

  test.each<[string, Document, string]>([
    ['is too long', { body: ' '.repeat(200_000) }, 'more than 128 KiB'],
    ['is too long when decompressed', { body: ' '.repeat(200_000), coding: 'gzip' }, 'more than 128 KiB'],
    [
      'has an unknown coding',
      { body: 'x', coding: 'zstd' },
      'a body whose Content-Encoding is neither gzip nor deflate',
    ],
    ['is damaged', { body: 'x', coding: 'deflate' }, 'a compressed body that is damaged'],
  ])('in a document that %s', async (_, document, fault) => {
    documents.set(OAUTH, document);
    documents.set(OPENID, { status: 503 });
    expect(await start().ask()).toMatchObject({
      kind: 'malformed',
      detail: `${base}${OAUTH} answered the request for the issuer's metadata with 200 and ${fault}`,
    });
  });

  test('when the issuer does not respond', async () => {
    documents.set(OAUTH, 'cut');
    expect(await start().ask()).toMatchObject({
      kind: 'unavailable',
      detail: expect.stringContaining(`${new URL(base).host} `) as unknown,
    });
    expect(requested).toEqual([OAUTH]);
  });

  test('within the time of a token request', async () => {
    documents.set(OAUTH, 'hang');
    const { ask, clock } = start({ timeoutMs: 700 });
    const result = ask();
    await until(() => requested.length === 1);
    await clock.advance(700);
    const { host } = new URL(base);
    const late = 'sent no complete response within 700 ms: auth.timeoutMs (SIDECAR_AUTH_TIMEOUT_MS)';
    expect(await result).toEqual({ kind: 'unavailable', detail: `${host} ${late}` });
  });
});

describe('a document', () => {
  test('is cached for an hour, and then refreshed while the old one is used', async () => {
    documents.set(OAUTH, metadata());
    const { ask, clock } = start();
    await ask();
    await clock.advance(HOUR_MS - 1);
    await ask();
    expect(requested).toEqual([OAUTH, '/token', '/token']);
    documents.set(OAUTH, metadata({ token_endpoint: `${base}/token2` }));
    documents.set('/token2', documents.get('/token') ?? 'cut');
    await clock.advance(1);
    await ask();
    await until(() => requested.length === 5 && clock.pendingTimers === 0);
    expect(requested.slice(3).toSorted()).toEqual([OAUTH, '/token']);
    await ask();
    expect(requested.slice(5)).toEqual(['/token2']);
  });

  test('stays in use during an outage of its issuer, with one warning', async () => {
    documents.set(OAUTH, metadata());
    const { ask, clock, events } = start();
    await ask();
    documents.set(OAUTH, 'cut');
    for (const pauseMs of [HOUR_MS, HOUR_MS, 1, 60_000]) {
      await clock.advance(pauseMs);
      const before = requested.length;
      expect(await ask()).toMatchObject({ kind: 'ok' });
      // A refresh in progress has a timer.
      await until(() => requested.length === before + (pauseMs === 1 ? 1 : 2) && clock.pendingTimers === 0);
    }
    const message = `${issuer()} cannot be reached; the cached copy stays in use`;
    expect(events).toEqual([{ kind: 'warning', message }]);
  });

  test('whose endpoint responds with 404 is refreshed at once', async () => {
    documents.set(OAUTH, metadata());
    const { ask, clock } = start();
    await ask();
    documents.set(OAUTH, metadata({ token_endpoint: `${base}/moved` }));
    documents.set('/moved', documents.get('/token') ?? 'cut').delete('/token');
    expect(await ask()).toMatchObject({ kind: 'rejected', detail: expect.stringContaining('auth.issuer') as unknown });
    await ask();
    await until(() => requested.includes(OAUTH, 1) && clock.pendingTimers === 0);
    expect(await ask()).toMatchObject({ kind: 'ok' });
  });
});

test('a client with a certificate uses the endpoint for certificates (RFC 8705 §5)', async () => {
  using certificates = makeCertificates();
  const clientCertificate = certificates.issue('client-1');
  documents.set(OAUTH, metadata({ mtls_endpoint_aliases: { token_endpoint: `${base}/mtls` } }));
  documents.set('/mtls', documents.get('/token') ?? 'cut');
  await start().ask();
  await start({ clientCertificate }).ask();
  documents.set(OAUTH, metadata());
  await start({ clientCertificate }).ask();
  expect(requested.filter((path) => path !== OAUTH)).toEqual(['/token', '/mtls', '/token']);
});

test('a method that the server does not list causes one warning, and is used', async () => {
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

test('a token is bound to the issuer, not to the endpoint found by it', async () => {
  const endpoint = buildEndpoint('https://login.test/tenant', { extraHeaders: valuesOf({ 'X-Key': 'v' }), scope: 's' });
  const credential = await endpoint.readCredential();
  expect(credential.kind === 'ready' && endpoint.identify(credential)?.binding).toMatchObject({
    tokenUrl: 'https://login.test/tenant',
    clientId: 'client-1',
    method: 'client_secret_basic',
    requestedParameters: [
      ['grant_type', 'client_credentials'],
      ['audience', 'https://api.test/'],
      ['scope', 's'],
      ['x-key:', 'v'],
    ],
  });
});
