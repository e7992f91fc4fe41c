/** An assertion in a file, as the authorization server receives it; what is refused never reaches the server. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import { ASSERTION_AUDIENCE, createAssertionIssuer } from '../../support/assertion-issuer.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startRecordingUpstream } from '../../support/recording-upstream.ts';
import type { RecordingUpstream, RespondTo } from '../../support/recording-upstream.ts';
import { askOnce, buildEndpoint } from './endpoint.ts';

const clock = new ManualClock();
const issuer = createAssertionIssuer('https://oidc.cluster.example', () => clock.wallNow());
const folder = mkdtempSync(join(tmpdir(), 'file-assertion-'));
afterAll(() => rmSync(folder, { recursive: true }));
const path = join(folder, 'token');

const GRANT = '{"access_token":"t0ken","token_type":"Bearer","expires_in":3600}';

async function serve(respond: RespondTo): Promise<RecordingUpstream> {
  const server = await startRecordingUpstream(respond);
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

const serveGrants = (): Promise<RecordingUpstream> =>
  serve((_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(GRANT));

function endpointOf(address: URL | string) {
  const file = { path, audience: ASSERTION_AUDIENCE, clusterTokenFolder: join(folder, 'cluster') };
  return buildEndpoint(address, { method: { name: 'client_assertion', file }, scope: 'urn:a', clock });
}

/** With this text in the file. */
async function ask({ url }: RecordingUpstream, text: string): Promise<TokenRequestResult> {
  writeFileSync(path, text);
  return askOnce(endpointOf(new URL(`${url}/oauth/token`)));
}

const formOf = (server: RecordingUpstream, index = 0) =>
  Object.fromEntries(new URLSearchParams(server.requests[index]?.body.toString()));

describe('a request', () => {
  it('has the assertion in the form, beside the client id, and no Authorization', async () => {
    const server = await serveGrants();
    const assertion = issuer.issue();
    expect(await ask(server, `${assertion}\n`)).toMatchObject({ kind: 'ok', value: 't0ken' });
    expect(formOf(server)).toEqual({
      grant_type: 'client_credentials',
      audience: 'https://api.test/',
      scope: 'urn:a',
      client_id: 'client-1',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: assertion,
    });
    expect(server.requests[0]?.headers.authorization).toBeUndefined();
  });

  it('has the assertion that the file holds at that moment, with a credential that was read before', async () => {
    const server = await serveGrants();
    const endpoint = endpointOf(new URL(server.url));
    writeFileSync(path, issuer.issue());
    const credential = await endpoint.readCredential();
    if (credential.kind === 'unreadable') throw new Error(credential.detail);
    const assertions = [issuer.issue(), issuer.issue()];
    for (const assertion of assertions) {
      writeFileSync(path, assertion);
      await endpoint.request(credential, new AbortController().signal);
    }
    expect(assertions.map((_, index) => formOf(server, index).client_assertion)).toEqual(assertions);
    const again = await endpoint.readCredential();
    expect(again).toMatchObject({ version: credential.version });
    expect(again).not.toMatchObject({ proofVersion: credential.proofVersion });
  });

  it('goes to the endpoint that the issuer names', async () => {
    const server = await serve((request, response) => {
      const base = `http://${request.headers.host ?? ''}`;
      const metadata = JSON.stringify({ issuer: base, token_endpoint: `${base}/token` });
      response.writeHead(200).end(request.method === 'GET' ? metadata : GRANT);
    });
    writeFileSync(path, issuer.issue());
    expect(await askOnce(endpointOf(server.url))).toMatchObject({ kind: 'ok' });
    expect(server.requests.map(({ method, path: target }) => `${method} ${target}`)).toEqual([
      'GET /.well-known/oauth-authorization-server',
      'POST /token',
    ]);
  });
});

describe('nothing is sent, not even a request for metadata, with', () => {
  it.each<[string, () => string, RegExp]>([
    ['an expired assertion', () => issuer.issue({ exp: clock.wallNow() / 1000 }), /expired at 2026-11-01T00:00:00Z/],
    [
      'another audience',
      () => issuer.issue({ aud: 'b' }),
      /for the audience "b"; expected auth\.assertionFileAudience/,
    ],
    ['two audiences', () => issuer.issue({ aud: [ASSERTION_AUDIENCE, 'b'] }), /the audiences/],
    ['its issuer as audience', () => issuer.issue({ aud: issuer.issuer }), /must not leave the cluster/],
    ['an assertion of the future', () => issuer.issue({ nbf: clock.wallNow() / 1000 + 60 }), /is valid from/],
    ['alg none', () => issuer.issue({}, { alg: 'none' }), /without a signature/],
    ['a secret in its place', () => 'sesame-sesame', /holds no signed JWT/],
  ])('%s', async (_, make, fault) => {
    const server = await serveGrants();
    for (const address of [new URL(server.url), server.url]) {
      writeFileSync(path, make());
      const result = await askOnce(endpointOf(address));
      expect(result).toMatchObject({ kind: 'unavailable', detail: expect.stringMatching(fault) as unknown });
      expect(result).toMatchObject({ detail: expect.stringMatching(/^auth\.assertionFile: the file /) as unknown });
    }
    expect(server.requests).toEqual([]);
  });

  it('no file', async () => {
    const server = await serveGrants();
    rmSync(path, { force: true });
    expect(await askOnce(endpointOf(server.url))).toMatchObject({
      kind: 'unavailable',
      detail: `auth.assertionFile: the file ${path} does not exist`,
    });
    expect(server.requests).toEqual([]);
  });

  it('an assertion that expires while the metadata is read: the token request is not sent', async () => {
    const server = await serve(async (request, response) => {
      const base = `http://${request.headers.host ?? ''}`;
      await clock.advance(2_000);
      response.writeHead(200).end(JSON.stringify({ issuer: base, token_endpoint: `${base}/token` }));
    });
    writeFileSync(path, issuer.issue({ exp: clock.wallNow() / 1000 + 1 }));
    expect(await askOnce(endpointOf(server.url))).toMatchObject({ kind: 'unavailable' });
    expect(server.requests.map(({ method }) => method)).toEqual(['GET']);
  });
});

describe('a server that echoes the assertion', () => {
  const encodings: Readonly<Record<string, (text: string) => string>> = {
    unchanged: (text) => text,
    'in base64': (text) => Buffer.from(text).toString('base64'),
    'in base64url': (text) => Buffer.from(text).toString('base64url'),
    'in base64 of more': (text) => Buffer.from(`it is ${text}!`).toString('base64'),
    'percent-encoded': (text) => text.replaceAll('.', '%2E'),
  };
  const fields = ['access_token', 'token_type', 'scope', 'error', 'error_description'];

  it.each(Object.entries(encodings))('%s: it is in no result', async (name, encode) => {
    // An access token may be a text that only a decoder could tell from the assertion.
    for (const field of name === 'in base64 of more' ? fields.slice(1) : fields)
      for (const status of [200, 400, 401, 500]) {
        const assertion = issuer.issue();
        const body = { access_token: 't0ken-t0ken', token_type: 'Bearer', error: 'e', [field]: encode(assertion) };
        const server = await serve((_request, response) => void response.writeHead(status).end(JSON.stringify(body)));
        const shown = JSON.stringify(await ask(server, assertion));
        expect(shown).not.toContain(assertion);
        expect(shown).not.toContain(encode(assertion).slice(0, 80));
      }
  });
});
