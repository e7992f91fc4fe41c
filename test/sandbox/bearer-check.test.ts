/** Which tokens the simulated API accepts, and how it refuses the others. */
import { afterEach, describe, expect, test } from 'vitest';
import { POLICIES_SCOPE, QUOTES_SCOPE } from '../../src/sandbox/scenario.ts';
import { TokenIssuer } from '../../src/sandbox/token-issuer.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { fetch } from './https-client.ts';
import { AUDIENCE, Partner, closeStarted } from './partner.ts';
import { sendRaw } from './raw-request.ts';

afterEach(closeStarted);

describe('the bearer', () => {
  test.each([
    ['none', ''],
    ['another scheme', 'Basic YTpi'],
  ])('%s: 401 with the scheme and no error', async (_name, authorization) => {
    const partner = await Partner.start();
    const response = await partner.get('/events', authorization);
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe('Bearer realm="sandbox"');
    expect(response.headers.get('content-type')).toBe('application/problem+json');
    expect(await response.json()).toMatchObject({ status: 401, simulated: true });
  });

  test.each<[string, (partner: Partner) => string | Promise<string>]>([
    ['malformed', () => 'abc'],
    [
      'signature',
      () => new TokenIssuer(new ManualClock()).issue({ clientId: 'c', audience: AUDIENCE, scope: '', role: 'seller' }),
    ],
    ['audience', (partner) => partner.token(POLICIES_SCOPE, 'https://other.example/')],
    [
      'expired',
      async (partner) => {
        const token = partner.token();
        await partner.clock.advance(3_600_000);
        return token;
      },
    ],
  ])('%s: 401 invalid_token with the reason', async (reason, tokenOf) => {
    const partner = await Partner.start();
    const token = await tokenOf(partner);
    const response = await partner.get('/events', `Bearer ${token}`);
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"');
    expect(response.headers.get('www-authenticate')).toContain(reason);
    expect(await response.text()).not.toContain(token);
  });

  test('is checked before the path', async () => {
    const partner = await Partner.start();
    expect((await partner.get('/nothing', 'Bearer abc')).status).toBe(401);
    expect((await partner.get('/nothing')).status).toBe(404);
  });

  test('twice: 400 invalid_request', async () => {
    const partner = await Partner.start();
    const field = `Authorization: Bearer ${partner.token()}\r\n`;
    const head = `GET /v1/events HTTP/1.1\r\nHost: x\r\nConnection: close\r\n`;
    const response = await sendRaw(partner.api.url, `${head}${field}${field}\r\n`);
    expect(response).toMatch(/^HTTP\/1\.1 400 /);
    expect(response).toContain('error="invalid_request"');
  });

  test.each([
    ['POST', '/policies', QUOTES_SCOPE, POLICIES_SCOPE],
    ['POST', '/quotes-requests', POLICIES_SCOPE, QUOTES_SCOPE],
    ['GET', '/policies/1', QUOTES_SCOPE, POLICIES_SCOPE],
  ])('%s %s without its scope: 403 that names it', async (method, path, granted, needed) => {
    const partner = await Partner.start();
    const headers = { authorization: `Bearer ${partner.token(granted)}`, 'content-type': 'application/json' };
    const response = await fetch(partner.api.baseUrl.href + path, { method, headers });
    expect(response.status).toBe(403);
    const challenge = response.headers.get('www-authenticate');
    expect(challenge).toContain('error="insufficient_scope"');
    expect(challenge).toContain(`scope="${needed}"`);
  });
});
