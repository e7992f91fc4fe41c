/** What a sidecar does with the responses of token endpoints as they really are: the upstream's and the client's side. */
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, it, onTestFinished, test } from 'vitest';
import { readProgramVersion } from '../../../src/platform/asset.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startInProcess } from '../../composition/in-process.ts';
import type { InProcess, InProcessOptions } from '../../composition/in-process.ts';
import { anyCodePoint } from '../../support/code-points.ts';

interface TokenReply {
  readonly status?: number;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

const GRANT = { access_token: 'a-token-of-the-tests', token_type: 'Bearer', expires_in: 3600 };

function startWith(next: (index: number) => TokenReply, options: InProcessOptions = {}): Promise<InProcess> {
  return startInProcess({
    respondToTokenRequest: (_request, response, index) => {
      const { status = 200, fields, headers } = next(index);
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(fields));
    },
    ...options,
  });
}

test.each<[string, TokenReply]>([
  ['Auth0', { fields: { ...GRANT, scope: 'read:x', expires_in: 86_400 } }],
  ['Cognito', { fields: GRANT }],
  [
    'Entra v1',
    {
      fields: {
        ...GRANT,
        expires_in: '3599',
        ext_expires_in: '3599',
        expires_on: '1799999999',
        not_before: '1',
        resource: 'r',
      },
    },
  ],
  ['Entra v2', { fields: { ...GRANT, expires_in: 3599, ext_expires_in: 3599 } }],
  ['Okta', { fields: { ...GRANT, scope: 'a' } }],
  [
    'Keycloak',
    { fields: { ...GRANT, expires_in: 300, refresh_expires_in: 0, 'not-before-policy': 0, scope: 'email profile' } },
  ],
  [
    'Salesforce',
    {
      fields: {
        access_token: '00D5g000004Abc!AQ8AQ.x_y',
        token_type: 'Bearer',
        signature: 's=',
        issued_at: '1',
        instance_url: 'u',
      },
    },
  ],
  [
    'Apigee',
    {
      fields: {
        ...GRANT,
        token_type: 'BearerToken',
        expires_in: '1799',
        scope: '',
        status: 'approved',
        issued_at: '1',
      },
    },
  ],
  [
    'PayPal',
    {
      fields: {
        ...GRANT,
        access_token: 'A21AAF-x_y',
        scope: 'https://u/ openid',
        app_id: 'A',
        nonce: 'n',
        expires_in: 32_400,
      },
    },
  ],
  ['a server that creates tokens', { status: 201, fields: GRANT }],
  ['a server without a token type', { fields: { access_token: 'x', expires_in: 60 } }],
])('the token of %s is sent as a bearer token', async (_name, reply) => {
  const { url, api } = await startWith(() => reply);
  expect((await fetch(url)).status).toBe(200);
  expect(api.requests[0]?.headers.authorization).toBe(`Bearer ${String(reply.fields.access_token)}`);
});

it('sends a generated token byte for byte, or nothing at all', async () => {
  const anyToken = fc.oneof(
    fc.stringMatching(/^[\x21-\x2b\x2d-\x7e]{1,60}$/),
    fc.stringMatching(/^[\x20-\x7f]{1,60}$/),
    fc.string({ unit: anyCodePoint, minLength: 1, maxLength: 30 }),
    fc.constantFrom('a\r\nX-Evil: 1', 'a,Bearer b', 'a\tb', ' a', 'a ', '\u00a0', 'a\u0000', 'a\u2028'),
  );
  // Each sidecar of a test adds a listener.
  process.setMaxListeners(100);
  onTestFinished(() => void process.setMaxListeners(10));
  let token = '';
  await fc.assert(
    // Each token is searched for in all that the tests print: it must not be an ordinary word.
    fc.asyncProperty(anyToken, async (start) => {
      const value = `${start}-9fQ2xK7`;
      token = value;
      const { url, api, sidecar } = await startWith(() => ({ fields: { ...GRANT, access_token: token } }));
      const response = await fetch(url);
      await response.arrayBuffer();
      const isSafe = /^[\x21-\x2b\x2d-\x7e]+$/.test(value);
      expect(response.status).toBe(isSafe ? 200 : 503);
      expect(api.requests.map(({ headers }) => headers.authorization)).toEqual(isSafe ? [`Bearer ${value}`] : []);
      await sidecar.drain();
    }),
    { numRuns: 25 },
  );
});

test('token and lifetime come from the configured members of a compressed response', async () => {
  const env = {
    SIDECAR_AUTH_TOKEN_FIELD: 'data.jwt',
    SIDECAR_AUTH_EXPIRES_IN_FIELD: 'data.ttl',
    SIDECAR_AUTH_EXPIRES_IN_UNIT: 'milliseconds',
  };
  const body = JSON.stringify({ data: { jwt: 'a-token-of-the-tests', ttl: 90_000 }, token_type: 'jwt', scope: ['a'] });
  const { url, api, eventsOf } = await startInProcess({
    respondToTokenRequest: (_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(body));
    },
    env,
  });
  expect((await fetch(url)).status).toBe(200);
  expect(api.requests[0]?.headers.authorization).toBe('Bearer a-token-of-the-tests');
  expect(eventsOf('token-requested')).toMatchObject([{ outcome: 'ok', lifetimeMs: 90_000 }]);
});

test('a lifetime that is not stated is a warning once, and the setting decides it', async () => {
  const clock = new ManualClock();
  const env = { SIDECAR_AUTH_DEFAULT_LIFETIME_MS: '10000' };
  const lifetimes = [undefined, null, 0, -1, 60, '', undefined];
  const { eventsOf } = await startWith(
    (index) => ({ fields: { ...GRANT, access_token: `a-token-${String(index)}`, expires_in: lifetimes[index] } }),
    { clock, env },
  );
  const obtained = () => eventsOf('token-requested').map(({ lifetimeMs }) => lifetimeMs);
  for (let count = 1; count <= lifetimes.length; count++) {
    await expect.poll(() => obtained().length).toBe(count);
    await clock.advance(count === 5 ? 39_500 : 6_600);
  }
  expect(obtained().slice(0, 7)).toEqual([10_000, 10_000, 10_000, 10_000, 60_000, 10_000, 10_000]);
  const faults = eventsOf('warning').map(({ message }) => message);
  const setting = 'its lifetime is taken to be 10000 ms: auth.defaultLifetimeMs (SIDECAR_AUTH_DEFAULT_LIFETIME_MS)';
  expect(faults.slice(0, 3)).toEqual([
    `the token of the credential default has no expires_in; ${setting}`,
    `the token of the credential default has expires_in below 1 s; ${setting}`,
    `the token of the credential default has no expires_in; ${setting}`,
  ]);
});

test('slow_down with Retry-After: 3 delays the next token request by about 3 s', async () => {
  const clock = new ManualClock();
  const busy: TokenReply = { status: 400, fields: { error: 'slow_down' }, headers: { 'retry-after': '3' } };
  const { url, tokens, eventsOf, sidecar } = await startWith((index) => (index === 0 ? busy : { fields: GRANT }), {
    clock,
  });
  await expect.poll(() => eventsOf('token-requested').length).toBe(1);
  const refused = await fetch(url);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '3']);
  expect(await refused.json()).toMatchObject({
    code: 'TOKEN_UNAVAILABLE',
    detail: expect.stringContaining('"slow_down"') as string,
  });
  await clock.advance(2900);
  expect(tokens.requests).toHaveLength(1);
  await clock.advance(200);
  await expect.poll(() => eventsOf('token-requested').length).toBe(2);
  const accepted = await fetch(url);
  await accepted.arrayBuffer();
  expect(accepted.status).toBe(200);
  const drained = sidecar.drain();
  await clock.advance(60_000);
  await drained;
});

test('a 401 without a reason: 1 request, a second after 10 s, then one a minute, while callers wait', async () => {
  const clock = new ManualClock();
  const refusal = { status: 401, fields: { fault: { faultstring: 'Invalid client identifier' } } };
  const { url, tokens, sidecar } = await startWith(() => refusal, { clock });
  const counts: number[] = [];
  for (let second = 0; second < 600; second += 2) {
    const refused = await fetch(url);
    expect(refused.status).toBe(502);
    const { code, detail } = (await refused.json()) as { readonly code: string; readonly detail: string };
    expect([code, detail]).toEqual(['TOKEN_REJECTED', expect.stringContaining('Invalid client identifier')]);
    counts.push(tokens.requests.length);
    await clock.advance(2000);
  }
  // By the clock when each call came: the first one with a count waited for that request.
  const seconds = Array.from({ length: counts.at(-1) ?? 0 }, (_, index) => 2 * counts.findIndex((n) => n > index));
  expect(seconds).toEqual([0, 10, 70, 130, 190, 250, 310, 370, 430, 490, 550]);
  const drained = sidecar.drain();
  await clock.advance(60_000);
  await drained;
});

test('the words of the server stand in the reply, the event and the status, without the client id', async () => {
  const fields = { error: 'invalid_client', error_description: 'No application for this id: ', trace_id: 't-1' };
  let clientId = '';
  const { url, tokens, eventsOf, sidecar } = await startInProcess({
    respondToTokenRequest: (request, response) => {
      const [, basic = ''] = (request.headers.authorization ?? '').split(' ');
      [clientId = ''] = Buffer.from(basic, 'base64').toString().split(':');
      const text = JSON.stringify({ ...fields, error_description: fields.error_description + clientId });
      response.writeHead(401, { 'content-type': 'application/json' }).end(text);
    },
  });
  const response = await fetch(url);
  expect(response.status).toBe(502);
  const reply = await response.text();
  const status = await (await fetch(`${sidecar.adminUrl}/status`)).text();
  const page = await (await fetch(`${sidecar.adminUrl}/`)).text();
  const words = 'No application for this id: ******** (trace_id t-1)';
  for (const text of [reply, status, page, JSON.stringify(eventsOf('token-requested'))]) {
    expect(text).toContain(words);
    expect(text).not.toContain(clientId);
  }
  expect(tokens.requests.length).toBeGreaterThan(0);
});

test.each([
  [undefined, `bearer-sidecar/${readProgramVersion()}`],
  ['billing/7 (ops@example.com)', 'billing/7 (ops@example.com)'],
])('User-Agent %s is %s at the token endpoint only', async (userAgent, expected) => {
  const env = userAgent === undefined ? {} : { SIDECAR_AUTH_USER_AGENT: userAgent };
  const { url, api, tokens } = await startWith(() => ({ fields: GRANT }), { env });
  await (await fetch(url, { headers: { 'user-agent': 'legacy/1' } })).arrayBuffer();
  expect(tokens.requests.map(({ headers }) => headers['user-agent'])).toEqual([expected]);
  expect(api.requests.map(({ headers }) => headers['user-agent'])).toEqual(['legacy/1']);
});
