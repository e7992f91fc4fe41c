/** The simulated token endpoint over HTTP: valid requests and errors. */
import { afterEach, describe, expect, test } from 'vitest';
import type { AuthorizationServer } from '../../src/sandbox/authorization-server.ts';
import { KNOWN_SCOPES, POLICIES_SCOPE, QUOTES_SCOPE } from '../../src/sandbox/scenario.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { sendRaw } from './raw-request.ts';
import { fetch } from './https-client.ts';
import { AUDIENCE, FORM, ask, closeStarted, fetchToken, start } from './token-client.ts';
import type { TokenRequest } from './token-client.ts';

const GRANT = 'grant_type=client_credentials';

afterEach(closeStarted);

function audienceOf(server: AuthorizationServer, token: unknown): unknown {
  const claims = server.issuer.verify(String(token));
  return typeof claims === 'string' ? claims : claims.aud;
}

describe('granting', () => {
  test.each([
    ['audience only', `audience=${encodeURIComponent(AUDIENCE)}`, AUDIENCE, KNOWN_SCOPES.join(' ')],
    ['scope only', `scope=${encodeURIComponent(QUOTES_SCOPE)}`, AUDIENCE, QUOTES_SCOPE],
    ['two scopes', `scope=${QUOTES_SCOPE}+${POLICIES_SCOPE}`, AUDIENCE, `${QUOTES_SCOPE} ${POLICIES_SCOPE}`],
    ['both', `audience=${encodeURIComponent(AUDIENCE)}&scope=${POLICIES_SCOPE}`, AUDIENCE, POLICIES_SCOPE],
    ['audience and an empty scope', `audience=${AUDIENCE}&scope=`, AUDIENCE, KNOWN_SCOPES.join(' ')],
  ])('%s', async (_name, parameters, audience, scope) => {
    const server = await start();
    const { status, field, body } = await ask(server.tokenUrl, { body: `${GRANT}&${parameters}` });
    expect(status).toBe(200);
    expect(body).toMatchObject({ token_type: 'Bearer', expires_in: 3600, scope });
    expect(field('content-type')).toBe('application/json');
    expect(field('cache-control')).toBe('no-store');
    expect(audienceOf(server, body.access_token)).toBe(audience);
  });

  test('expires_in is the lifetime of the token', async () => {
    const clock = new ManualClock();
    const server = await start(clock);
    const { body } = await ask(server.tokenUrl, { body: FORM });
    expect(body.expires_in).toBe(3600);
    const token = String(body.access_token);
    await clock.advance(3_599_999);
    expect(server.issuer.verify(token)).toMatchObject({ aud: AUDIENCE });
    await clock.advance(1);
    expect(server.issuer.verify(token)).toContain('expired');
  });

  test('refuses a changed token and one of another server', async () => {
    const [server, other] = [await start(), await start()];
    const token = await fetchToken(server);
    const [header = '', payload = '', signature = ''] = token.split('.');
    const richer = Buffer.from(JSON.stringify({ aud: AUDIENCE, scope: 'all', exp: 9e9 })).toString('base64url');
    const unsigned = Buffer.from(JSON.stringify({ alg: 'none', typ: 'at+jwt' })).toString('base64url');
    expect(server.issuer.verify(`${header}.${richer}.${signature}`)).toContain('signature');
    expect(server.issuer.verify(`${header}.${payload}.`)).toContain('signature');
    expect(server.issuer.verify(`${unsigned}.${payload}.`)).toContain('malformed');
    expect(server.issuer.verify(`${token}.x`)).toContain('malformed');
    expect(other.issuer.verify(token)).toContain('signature');
  });
});

describe('refusing', () => {
  test.each<[string, TokenRequest, number, string]>([
    ['GET', { method: 'GET' }, 405, 'invalid_request'],
    ['a JSON body', { headers: { 'content-type': 'application/json' }, body: '{}' }, 400, 'invalid_request'],
    [
      'a charset on the type',
      { headers: { 'content-type': 'application/x-www-form-urlencoded;charset=UTF-8' }, body: FORM },
      400,
      'invalid_request',
    ],
    ['no body', {}, 400, 'invalid_request'],
    ['no grant type', { body: `audience=${AUDIENCE}` }, 400, 'invalid_request'],
    ['another grant type', { body: 'grant_type=password&audience=x' }, 400, 'unsupported_grant_type'],
    ['neither audience nor scope', { body: GRANT }, 400, 'invalid_request'],
    ['an unknown audience', { body: `${GRANT}&audience=https://elsewhere.example/` }, 400, 'invalid_target'],
    ['an unknown scope', { body: `${GRANT}&scope=${QUOTES_SCOPE}+urn:other` }, 400, 'invalid_scope'],
    ['a repeated parameter', { body: `${FORM}&grant_type=client_credentials` }, 400, 'invalid_request'],
    ['a secret in field and form', { body: `${FORM}&client_secret=secret` }, 400, 'invalid_request'],
    ['too large a form', { body: `${FORM}&pad=${'x'.repeat(17 * 1024)}` }, 413, 'invalid_request'],
    ['a form far too large', { body: `${FORM}&pad=${'x'.repeat(1024 * 1024)}` }, 413, 'invalid_request'],
  ])('%s', async (_name, requested, status, error) => {
    const server = await start();
    const response = await ask(server.tokenUrl, requested);
    expect(response.status).toBe(status);
    expect(response.body.error).toBe(error);
    // RFC 6749 §5.2 bounds the characters of a description.
    expect(response.body.error_description).toMatch(/^[\x20-\x21\x23-\x5B\x5D-\x7E]+$/);
  });

  test('another path', async () => {
    const server = await start();
    expect((await ask(new URL('/token', server.url), { body: FORM })).status).toBe(404);
  });
});

describe('closing', () => {
  test('concurrent closes end together, with an incomplete request', async () => {
    const server = await start();
    const half = sendRaw(server.url, 'POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc');
    await Promise.all([server.close(), server.close(), server.close()]);
    expect(await half).toBe('');
    await expect(fetch(server.tokenUrl)).rejects.toThrow();
  });
});
