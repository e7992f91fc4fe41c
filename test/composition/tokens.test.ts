/** The parts of one credential, joined: what its files hold is noticed, tried and redacted in the log. */
import { createHash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { createProxySelector } from '../../src/platform/egress/proxy-selector.ts';
import { loadConfig } from '../../src/config/load/load.ts';
import { simple } from '../config/base-env.ts';
import { createTokens } from '../../src/composition/tokens.ts';
import type { TokensOptions } from '../../src/composition/tokens.ts';
import type { SidecarEvent } from '../../src/telemetry/events.ts';
import { ASSERTION_AUDIENCE, createAssertionIssuer } from '../support/assertion-issuer.ts';
import { Secrets } from '../../src/platform/secrets.ts';
import { makeCertificates } from '../support/certificates.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { mountSecret } from '../support/mounted-secret.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential, registerSecret } from '../support/secrets.ts';
import { MemoryTokenStore } from '../token/store/memory-token-store.ts';
import { giveToken, sendToken, until } from './in-process.ts';

it('a new secret is masked and used within 2 s after its symbolic link has changed, as in Kubernetes', async () => {
  const { id, secret } = newCredential();
  const [before, after] = [secret, `${secret}-after`];
  registerSecret('a client secret', after);
  await using mounted = await mountSecret({ secret: before });
  await using server = await startRecordingUpstream(giveToken);
  const clock = new ManualClock();
  const events: SidecarEvent[] = [];
  const secrets = new Secrets(clock);
  const tokens = startTokens(
    server.url,
    { SIDECAR_CLIENT_ID: id, SIDECAR_CLIENT_SECRET_FILE: mounted.path('secret'), SIDECAR_SCOPE: 'a' },
    {
      clock,
      secrets,
      random: () => 0,
      observe: (event) => events.push(event),
    },
  );
  await until(() => tokens.current()?.token !== undefined, 'the first token');
  expect([before, after].map(secrets.mask)).toEqual(['********', '********-after']);

  await mounted.replace({ secret: after });
  await clock.advance(2_000);
  await until(() => tokens.current()?.token.serial === 2, 'a token of the new secret');
  expect([before, after].map(secrets.mask)).toEqual(['********', '********']);
  const basic = (value: string): string => `Basic ${Buffer.from(`${id}:${value}`).toString('base64')}`;
  expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([basic(before), basic(after)]);
  expect(events).toContainEqual({ kind: 'token-invalidated', credential: 'default', reason: 'rotated' });
});

it('an assertion in a file is masked with the one that it replaces, causes no request when renewed, and is not shared', async () => {
  const clock = new ManualClock();
  const issuer = createAssertionIssuer('https://oidc.cluster.example', () => clock.wallNow());
  const first = issuer.issue();
  await using mounted = await mountSecret({ token: first });
  await using server = await startRecordingUpstream(giveToken);
  const events: SidecarEvent[] = [];
  const secrets = new Secrets(clock);
  const unused = (): never => {
    throw new Error('a token of this client must not be shared');
  };
  const tokens = startTokens(server.url, assertionSettings(mounted.path('token')), {
    clock,
    tokenStore: {
      whenReady: unused,
      claim: unused,
      publish: unused,
      publishFailure: unused,
      releaseLease: unused,
    },
    secrets,
    random: () => 0,
    observe: (event) => events.push(event),
  });
  await until(() => tokens.current()?.token !== undefined, 'the first token');
  expect(secrets.mask(first)).toBe('********');

  const second = issuer.issue();
  await mounted.replace({ token: second });
  await clock.advance(60_000);
  expect(server.requests).toHaveLength(1);
  // Due after 75 % of the lifetime.
  for (let minutes = 1; minutes < 45; minutes++) await clock.advance(60_000);
  await until(() => tokens.current()?.token.serial === 2, 'the refresh');
  expect(server.requests.map(({ body }) => new URLSearchParams(body.toString()).get('client_assertion'))).toEqual([
    first,
    second,
  ]);
  expect([first, second].map(secrets.mask)).toEqual(['********', '********']);
  expect(events.filter(({ kind }) => kind === 'token-invalidated' || kind === 'credential-rotation')).toEqual([]);
});

it.each<[string, number, string]>([
  ['could not be used', 0, 'no JWT at all'],
  ['was refused by the server', 1, ''],
])(
  'an assertion that %s is tried again within 2 s after it was replaced, and once',
  async (_, requestsBefore, text) => {
    const clock = new ManualClock();
    const issuer = createAssertionIssuer('https://oidc.cluster.example', () => clock.wallNow());
    const good = issuer.issue();
    await using mounted = await mountSecret({ token: text === '' ? issuer.issue() : text });
    await using server = await startRecordingUpstream((request, response, index) => {
      if (new URLSearchParams(request.body.toString()).get('client_assertion') === good)
        sendToken(response, index, 3600);
      else response.writeHead(401).end('{"error":"invalid_client"}');
    });
    const tokens = startTokens(server.url, assertionSettings(mounted.path('token')), { clock });
    await until(() => tokens.state().lastFailure !== undefined, 'the failure');
    expect(server.requests).toHaveLength(requestsBefore);
    await mounted.replace({ token: good });
    await clock.advance(2_000);
    await until(() => tokens.current()?.token !== undefined, 'the token');
    expect(server.requests).toHaveLength(requestsBefore + 1);
    for (let polls = 0; polls < 5; polls++) await clock.advance(2_000);
    expect(server.requests).toHaveLength(requestsBefore + 1);
  },
);

it('an extra parameter in a file is masked, and a changed one used within 2 s, as a client secret is', async () => {
  registerSecret('an extra parameter', 'first-extra-value');
  registerSecret('an extra parameter', 'second-extra-value');
  await using mounted = await mountSecret({ key: 'first-extra-value\n', header: 'short' });
  await using server = await startRecordingUpstream(giveToken);
  const clock = new ManualClock();
  const secrets = new Secrets(clock);
  const tokens = startTokens(
    server.url,
    {
      SIDECAR_AUTH_METHOD: 'none',
      SIDECAR_AUTH_BODY_FORMAT: 'json',
      SIDECAR_AUTH_EXTRA_PARAMETERS: JSON.stringify({ client_secret: { file: mounted.path('key') }, kind: 'true' }),
      SIDECAR_AUTH_EXTRA_HEADERS: JSON.stringify({ 'X-Key': { file: mounted.path('header') } }),
    },
    { clock, secrets },
  );
  await until(() => tokens.current()?.token !== undefined, 'the first token');
  await mounted.replace({ key: 'second-extra-value', header: 'short' });
  await clock.advance(2_000);
  await until(() => tokens.current()?.token.serial === 2, 'a token of the new value');
  expect(secrets.mask('first-extra-value, short, second-extra-value')).toBe('********, short, ********');
  expect(server.requests.map(({ body }) => JSON.parse(body.toString()) as unknown)).toEqual([
    { grant_type: 'client_credentials', client_secret: 'first-extra-value', kind: 'true' },
    { grant_type: 'client_credentials', client_secret: 'second-extra-value', kind: 'true' },
  ]);
  expect(server.requests.map(({ headers }) => headers['x-key'])).toEqual(['short', 'short']);
});

it('a key and its certificate that are written one after the other: the former pair signs until both are there', async () => {
  using certificates = makeCertificates();
  const [first, next] = [certificates.issue('a'), certificates.issue('b')].map(({ certificateFile, keyFile }) => ({
    certificate: readFileSync(certificateFile, 'utf8'),
    key: readFileSync(keyFile, 'utf8'),
  }));
  if (first === undefined || next === undefined) throw new Error('not issued');
  await using mounted = await mountSecret(first);
  await using server = await startRecordingUpstream(giveToken);
  const clock = new ManualClock();
  const events: SidecarEvent[] = [];
  const tokens = startTokens(
    server.url,
    {
      SIDECAR_CLIENT_ID: 'legacy-app',
      SIDECAR_AUTH_METHOD: 'private_key_jwt',
      SIDECAR_AUTH_PRIVATE_KEY_FILE: mounted.path('key'),
      SIDECAR_AUTH_CERTIFICATE_FILE: mounted.path('certificate'),
    },
    { clock, random: () => 0, observe: (event) => events.push(event) },
  );
  await until(() => tokens.current()?.token !== undefined, 'the first token');
  await mounted.replace({ ...first, key: next.key });
  // Due after 75 % of the lifetime of an hour.
  for (let minutes = 0; minutes < 45; minutes++) await clock.advance(60_000);
  await until(() => tokens.current()?.token.serial === 2, 'a token of the former pair');
  await mounted.replace(next);
  await until(async () => {
    // In small steps, so that the request does not time out on this clock.
    if (server.requests.length < 3) await clock.advance(500);
    return tokens.current()?.token.serial === 3;
  }, 'a token of the new pair');
  const thumbprints = server.requests.map(({ body }) => {
    const [head = ''] = (new URLSearchParams(body.toString()).get('client_assertion') ?? '').split('.');
    return (JSON.parse(Buffer.from(head, 'base64url').toString()) as { x5t: string }).x5t;
  });
  expect(thumbprints).toEqual(
    [first, first, next].map(({ certificate }) =>
      createHash('sha1').update(new X509Certificate(certificate).raw).digest('base64url'),
    ),
  );
  const rotations = events.flatMap((event) => (event.kind === 'credential-rotation' ? [event.outcome] : []));
  expect(rotations).toEqual(['unreadable', 'taken']);
});

it('only a credential with a part in a file is read again while its token is good', async () => {
  const { id, secret } = newCredential();
  await using mounted = await mountSecret({ secret });
  await using server = await startRecordingUpstream(giveToken);
  const timersOf = async (env: Readonly<Record<string, string>>): Promise<number> => {
    const clock = new ManualClock();
    const tokens = startTokens(server.url, { SIDECAR_CLIENT_ID: id, SIDECAR_SCOPE: 'a', ...env }, { clock });
    await until(() => tokens.current()?.token !== undefined, 'the first token');
    return clock.pendingTimers;
  };
  // The refresh.
  expect(await timersOf({ SIDECAR_CLIENT_SECRET: secret })).toBe(1);
  expect(await timersOf({ SIDECAR_CLIENT_SECRET_FILE: mounted.path('secret') })).toBe(2);
});

it('a client with neither a secret nor a key does not share its token, and one warning says so', async () => {
  await using server = await startRecordingUpstream(giveToken);
  const clock = new ManualClock();
  const events: SidecarEvent[] = [];
  const store = new MemoryTokenStore(clock);
  const env = { SIDECAR_AUTH_METHOD: 'none', SIDECAR_AUTH_EXTRA_PARAMETERS: '{"apiKey":"key-of-the-partner"}' };
  const tokens = startTokens(server.url, env, { clock, tokenStore: store, observe: (event) => events.push(event) });
  const warning = {
    kind: 'warning',
    message:
      'default: replicas do not share the token, since auth.method none has neither a secret nor a key to encrypt it with',
  };
  expect(events, 'at the start').toEqual([warning]);
  await until(() => tokens.current()?.token !== undefined, 'the first token');
  expect(store.dump()).toBe('[]');
  expect(events.filter(({ kind }) => kind === 'warning')).toEqual([warning]);
});

/** A client with an assertion in this file. */
function assertionSettings(file: string): Readonly<Record<string, string>> {
  return {
    SIDECAR_AUTH_METHOD: 'client_assertion',
    SIDECAR_AUTH_ASSERTION_FILE: file,
    SIDECAR_AUTH_ASSERTION_FILE_AUDIENCE: ASSERTION_AUDIENCE,
    SIDECAR_CLIENT_ID: 'legacy-app',
    SIDECAR_SCOPE: 'a',
  };
}

/** They stop when the test ends. */
function startTokens(
  serverUrl: string,
  env: Readonly<Record<string, string>>,
  options: Partial<TokensOptions> & Pick<TokensOptions, 'clock'>,
): ReturnType<typeof createTokens> {
  const loaded = loadConfig({ env: { SIDECAR_BASE_URL: serverUrl, SIDECAR_AUTH_URL: serverUrl, ...env } });
  if (!loaded.ok) throw new Error('refused');
  const tokens = createTokens({
    credential: 'default',
    auth: simple(loaded.config).auth,
    tokenHeaders: [],
    egress: createProxySelector(loaded.config.egress),
    tokenStore: undefined,
    secrets: new Secrets(options.clock),
    random: () => 0.99,
    observe: () => undefined,
    ...options,
  });
  onTestFinished(() => tokens.stop());
  tokens.start();
  return tokens;
}
