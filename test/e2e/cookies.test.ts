/** Logins through the sidecar, as applications with a cookie jar (tough-cookie, RFC 6265) and references to follow make them. */
import { CookieJar } from 'tough-cookie';
import { expect, it } from 'vitest';
import { scratchFile } from '../config/base-env.ts';
import { call } from '../support/calls.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RecordingUpstream, RespondTo } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';

/** Starts a session below its base path, with the cookie of a server that knows only HTTPS, and links to the session. */
function startPartner(name: string, base: string, more = ''): Promise<RecordingUpstream> {
  const respond: RespondTo = ({ path, headers }, response) => {
    if (!path.endsWith('/login')) {
      response.end(headers.cookie ?? 'no cookie');
      return;
    }
    const authority = headers.host ?? '';
    response.setHeader('Set-Cookie', [
      `sid=${name}; Path=${base}; Secure; HttpOnly; Domain=127.0.0.1; SameSite=None${more}`,
      `other=1; Domain=other.example; Path=/; Secure`,
    ]);
    response.setHeader('Location', `https://${authority}${base}/session`);
    response.setHeader('Link', `<${base}/session?page=2>; rel="next", <http://other.example/x>; rel="up"`);
    response.setHeader('Content-Location', 'session');
    response.setHeader('Refresh', `5; url=http://${authority}${base}/session`);
    response.writeHead(303).end();
  };
  return startRecordingUpstream(respond);
}

/** An application that keeps cookies, and sends `Secure` ones over HTTPS only. */
class Application {
  readonly jar = new CookieJar(undefined, { allowSecureOnLocal: false });

  async get(url: string) {
    const cookie = await this.jar.getCookieString(url);
    const response = await call(url, { headers: cookie === '' ? {} : { cookie } });
    for (const received of [response.headers['set-cookie'] ?? []].flat())
      await this.jar.setCookie(received, url, { ignoreError: true });
    return response;
  }
}

it('a session of the upstream is kept, and what its login refers to is found', async () => {
  await using authorization = await startTokenServer();
  await using partner = await startPartner('one', '/sales/v1', '; Max-Age=60');
  const env = baseSettings(`${partner.url}/sales/v1`, authorization.url, newCredential());
  await using sidecar = await startSidecar({ name: 'cookies', env });
  await waitUntilReady(sidecar);
  const application = new Application();
  const { headers } = await application.get(`${sidecar.proxyUrl}/login`);
  expect(headers['set-cookie']).toEqual([
    'sid=one; Path=/; HttpOnly; Max-Age=60',
    'other=1; Domain=other.example; Path=/; Secure',
  ]);
  const { location, link, 'content-location': contentLocation, refresh } = headers;
  expect({ location, link, contentLocation, refresh }).toEqual({
    location: '/session',
    link: '</session?page=2>; rel="next", <http://other.example/x>; rel="up"',
    contentLocation: '/session',
    refresh: '5; url=/session',
  });
  expect((await application.get(`${sidecar.proxyUrl}${String(location)}`)).text).toBe('sid=one');
  expect(partner.requests.map(({ path }) => path)).toEqual(['/sales/v1/login', '/sales/v1/session']);
});

it('the sessions of two routes are kept apart by path', async () => {
  await using authorization = await startTokenServer();
  await using quotes = await startPartner('quotes', '/v1');
  await using policies = await startPartner('policies', '/');
  const config = scratchFile(
    JSON.stringify({
      routes: [
        { name: 'quotes', pathPrefix: '/quotes', baseUrl: `${quotes.url}/v1`, stripPrefix: true },
        { name: 'policies', pathPrefix: '/policies', baseUrl: policies.url, credential: 'default' },
      ],
    }),
  );
  const env = baseSettings('', authorization.url, newCredential());
  await using sidecar = await startSidecar({ name: 'cookies', env: { ...env, SIDECAR_CONFIG: config } });
  await waitUntilReady(sidecar);
  const application = new Application();
  for (const route of ['quotes', 'policies']) await application.get(`${sidecar.proxyUrl}/${route}/login`);
  for (const route of ['quotes', 'policies']) {
    expect((await application.get(`${sidecar.proxyUrl}/${route}/x`)).text).toBe(`sid=${route}`);
    expect((await application.get(`${sidecar.proxyUrl}/${route}`)).text).toBe(`sid=${route}`);
  }
});

it('cookies pass unchanged where that is configured', async () => {
  await using authorization = await startTokenServer();
  await using partner = await startPartner('one', '/sales/v1');
  const env = baseSettings(`${partner.url}/sales/v1`, authorization.url, newCredential());
  await using sidecar = await startSidecar({ name: 'cookies', env: { ...env, SIDECAR_RESPONSE_COOKIES: 'pass' } });
  await waitUntilReady(sidecar);
  const { headers } = await call(`${sidecar.proxyUrl}/login`);
  expect(headers['set-cookie']).toEqual([
    'sid=one; Path=/sales/v1; Secure; HttpOnly; Domain=127.0.0.1; SameSite=None',
    'other=1; Domain=other.example; Path=/; Secure',
  ]);
  expect(headers.location).toBe('/session');
});
