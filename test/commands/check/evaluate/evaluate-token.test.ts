/** Findings for responses to token requests. */
import { describe, expect, test } from 'vitest';
import {
  evaluateTokenFailure,
  evaluateLifetime,
  evaluateScope,
} from '../../../../src/commands/check/evaluate/evaluate-token.ts';
import type { ClientAuthMethod } from '../../../../src/token/client/client-authentication.ts';
import type { TokenRequestFailure } from '../../../../src/token/endpoint/token-response.ts';
import type { TokenCheckContext, TokenResponseHead } from '../../../../src/commands/check/evaluate/evaluate-token.ts';

const context: TokenCheckContext = {
  url: 'https://login.example/oauth/token',
  nameSetting: (key) => `<${key}>`,
  auth: {
    method: { name: 'client_secret_basic', secret: { kind: 'value', value: 'sesame' }, encoding: 'raw' },
    assertionGrant: undefined,
    grantType: 'client_credentials',
    audience: ['https://api.example/'],
    scope: undefined,
    resource: [],
  },
  isDiscovered: false,
  head: { status: 401, contentType: 'application/json', challenge: '' },
};

describe('a refusal', () => {
  test.each([
    ['invalid_client', ['<auth.clientId>', '<auth.clientSecret>', '<auth.method>', '<auth.basicEncoding> form']],
    ['invalid_scope', ['<auth.scope>', 'partner']],
    ['invalid_target', ['<auth.resource>', '<auth.audience>']],
    ['access_denied', ['<auth.audience>', 'partner']],
    ['unauthorized_client', ['client_credentials', 'partner']],
    ['unsupported_grant_type', ['<auth.url>', '<auth.tokenPath>']],
    ['invalid_request', ['<auth.audience>', '<auth.extraParameters>', '<auth.basicEncoding> form']],
    ['something_else', ['ask the partner']],
  ])('%s names the settings to check', (error, words) => {
    const detail = `login.example answered the token request with 401 and the error "${error}"`;
    const finding = evaluateTokenFailure({ kind: 'rejected', error, detail }, context);
    expect(finding).toMatchObject({ outcome: 'fail', detail });
    for (const word of words) expect(finding.advice).toContain(word);
  });

  test.each([
    ['private_key_jwt', '<auth.privateKeyFile>'],
    ['tls_client_auth', '<auth.tlsCertificateFile>'],
    ['client_secret_post', '<auth.clientSecret>'],
    ['none', '<auth.extraParameters>'],
  ])('of a client with %s names its credential', (name, setting) => {
    const failure = { kind: 'rejected', error: 'invalid_client', detail: '' } as const;
    const { advice } = evaluateTokenFailure(failure, {
      ...context,
      auth: { ...context.auth, method: { ...context.auth.method, name } as ClientAuthMethod },
    });
    expect(advice).toContain(setting);
    expect(advice).not.toContain('basicEncoding');
  });
});

test.each([
  ['invalid_request', 'Missing parameter: client_id'],
  ['invalid_request', 'client_id missing'],
  ['invalid_client', "The 'client_secret' parameter is required."],
])('%s: %s, of a client in HTTP Basic, names client_secret_post', (error, words) => {
  const detail = `login.example answered the token request with 400 and the error "${error}": ${words}`;
  const { advice } = evaluateTokenFailure({ kind: 'rejected', error, detail }, context);
  expect(advice).toMatch(/set <auth\.method> to client_secret_post/);
});

test.each([
  [401, 'Access denied due to missing subscription key'],
  [403, 'Forbidden'],
])('%i of a gateway: %s, names the header fields', (status, words) => {
  const head = { status, contentType: 'application/json', challenge: '' };
  const failure = { kind: 'unavailable', detail: `login.example answered with ${String(status)}: ${words}` } as const;
  expect(evaluateTokenFailure(failure, { ...context, head }).advice).toContain('set <auth.extraHeaders>');
});

describe('a refusal of a signed assertion', () => {
  const signing = { keyFile: '/k', algorithm: undefined, audience: 'token_endpoint' };
  const unnamed = { name: 'private_key_jwt', ...signing, keyId: undefined, certificateFile: undefined } as const;
  const unknownKey =
    'login.example answered with 401 and the error "invalid_client": AADSTS700027: The certificate with';

  test.each([
    ['does not name its key', unnamed],
    ['register the certificate in <auth.certificateFile>', { ...unnamed, certificateFile: '/c' }],
    ['register the certificate in <auth.certificateFile>', { ...unnamed, keyId: 'k' }],
  ])('by AADSTS700027: %s', (words, method) => {
    const failure = { kind: 'rejected', error: 'invalid_client', detail: unknownKey } as const;
    const { advice } = evaluateTokenFailure(failure, { ...context, auth: { ...context.auth, method } });
    expect(advice).toContain(words);
    expect(advice).toContain('<auth.certificateFile>');
  });

  test('that is the grant names the settings of its claims', () => {
    const assertionGrant = { ...signing, keyId: undefined, certificateFile: undefined, claims: {} };
    const failure = { kind: 'rejected', error: 'invalid_grant', detail: '' } as const;
    const { advice } = evaluateTokenFailure(failure, { ...context, auth: { ...context.auth, assertionGrant } });
    for (const key of ['clientId', 'assertionClaims', 'assertionAudience', 'privateKeyFile'])
      expect(advice).toContain(`<auth.${key}>`);
  });
});

test.each(['invalid_scope', 'invalid_request', 'invalid_target', 'access_denied'])(
  'a refusal with %s of a request for nothing names the three settings',
  (error) => {
    const failure = { kind: 'rejected', error, detail: '' } as const;
    const { advice } = evaluateTokenFailure(failure, { ...context, auth: { ...context.auth, audience: [] } });
    expect(advice).toContain('set <auth.audience>, <auth.scope> or <auth.resource>');
  },
);

describe('a server that asks for DPoP', () => {
  const head = { status: 400, contentType: 'application/json', challenge: '' };
  test.each<[string, TokenRequestFailure, Partial<TokenResponseHead>]>([
    ['use_dpop_nonce', { kind: 'rejected', error: 'use_dpop_nonce', detail: 'the error "use_dpop_nonce"' }, {}],
    ['invalid_dpop_proof', { kind: 'rejected', error: 'x', detail: 'the error "invalid_dpop_proof"' }, {}],
    ['its words', { kind: 'rejected', error: 'invalid_request', detail: 'The DPoP proof JWT header is missing' }, {}],
    ['a challenge', { kind: 'unavailable', detail: 'with 401' }, { challenge: 'Basic realm="a", DPoP algs="ES256"' }],
    ['the type of the token', { kind: 'malformed', detail: '200 with a token_type other than Bearer: "DPoP"' }, {}],
  ])('by %s is said not to be supported', (_, failure, more) => {
    const finding = evaluateTokenFailure(failure, { ...context, head: { ...head, ...more } });
    expect(finding).toMatchObject({ outcome: 'fail', advice: expect.stringContaining('DPoP (RFC 9449)') as unknown });
  });
});

describe('a response that is not from a token endpoint', () => {
  const unavailable = { kind: 'unavailable', detail: 'the words of the endpoint' } as const;
  test.each([
    [404, 'application/json', /POST https:\/\/login\.example\/oauth\/token returned 404/, /<auth\.tokenPath>/],
    [200, 'text/html; charset=utf-8', /a web page \(HTML\)/, /login page.*<auth\.url>/],
    [503, 'text/html', /503 and a web page/, /maintenance page/],
    [503, '', /the words of the endpoint/, /has a fault/],
    [302, '', /the words of the endpoint/, /redirects are not followed/],
    [429, '', /the words of the endpoint/, /limits token requests/],
    [200, 'application/json', /the words of the endpoint/, /<auth\.tokenField>.*not from a token endpoint/],
    [400, 'application/json', /the words of the endpoint/, /<auth\.bodyFormat>, <auth\.grantType>/],
    [415, 'application/json', /the words of the endpoint/, /<auth\.bodyFormat>, <auth\.grantType>/],
    [403, '', /the words of the endpoint/, /something in front of it/],
    [401, 'text/html', /a web page \(HTML\)/, /login page.*<auth\.url>/],
    [401, 'application/json', /the words of the endpoint/, /<auth\.clientId> and <auth\.clientSecret>/],
  ])('%i %s', (status, contentType, detail, advice) => {
    const finding = evaluateTokenFailure(unavailable, { ...context, head: { status, contentType, challenge: '' } });
    expect(finding.outcome).toBe('fail');
    expect(finding.detail).toMatch(detail);
    expect(finding.advice).toMatch(advice);
  });

  test.each([
    ['slow_down', /limits token requests/],
    ['server_error', /has a fault/],
  ])('with the error %s advises to wait', (error, advice) => {
    const head = { status: 400, contentType: 'application/json', challenge: '' };
    expect(evaluateTokenFailure({ ...unavailable, error }, { ...context, head }).advice).toMatch(advice);
  });

  test('by 404 with words shows them', () => {
    const detail = 'login.example answered the token request with 404 and the error "Realm does not exist"';
    const head = { status: 404, contentType: 'application/json', challenge: '' };
    expect(evaluateTokenFailure({ kind: 'rejected', detail }, { ...context, head }).detail).toContain(detail);
  });

  test('names the issuer when the endpoint was found through it', () => {
    const finding = evaluateTokenFailure(unavailable, {
      ...context,
      isDiscovered: true,
      head: { status: 404, contentType: '', challenge: '' },
    });
    expect(finding.advice).toContain('<auth.issuer>');
  });

  test('points to the earlier steps when there was no response', () => {
    expect(evaluateTokenFailure(unavailable, { ...context, head: undefined }).advice).toContain(
      'the steps before this one',
    );
  });
});

const granted = { kind: 'ok', value: 'the-token-itself', lifetimeMs: 3_600_000, scope: 'a b' } as const;

test.each([
  ['a b', 'a b', 'ok', 'granted: a b'],
  [undefined, 'a b', 'ok', 'granted: a b'],
  ['a b', undefined, 'ok', 'unknown'],
  ['a c d', 'a b', 'fail', 'not granted: c d; granted: a b'],
])('requested %s, granted %s: %s', (requested, scope, outcome, words) => {
  const finding = evaluateScope(requested, { ...granted, scope }, context.nameSetting);
  expect(finding.outcome).toBe(outcome);
  expect(finding.detail).toContain(words);
  expect(finding.advice?.includes('<auth.scope>')).toBe(outcome === 'fail' ? true : undefined);
});

test.each([
  [59, 'warn', 'renewed after 38 s to 44 s'],
  [60, 'ok', 'renewed after 39 s to 45 s'],
  [3600, 'ok', 'valid for 3600 s (until 2027-01-01T01:00:00Z), renewed after 2700 s to 3060 s'],
  [86_400, 'ok', 'valid for 86400 s'],
  [86_401, 'warn', 'valid for 86401 s'],
])('a life of %i s: %s', (seconds, outcome, words) => {
  const finding = evaluateLifetime(
    { ...granted, lifetimeMs: seconds * 1000 },
    Date.UTC(2027, 0, 1),
    context.nameSetting,
  );
  expect(finding.outcome).toBe(outcome);
  expect(finding.detail).toContain(words);
  expect(finding.advice === undefined).toBe(outcome === 'ok');
});

test('a life that the server does not state is a warning that names the setting', () => {
  const token = { ...granted, lifetimeMs: 300_000, lifetimeFault: 'no expires_in' } as const;
  expect(evaluateLifetime(token, Date.UTC(2027, 0, 1), context.nameSetting)).toMatchObject({
    outcome: 'warn',
    detail: expect.stringMatching(/^the response has no expires_in, so taken to be valid for 300 s/) as string,
    advice: expect.stringMatching(/<auth\.expiresInField>.*<auth\.defaultLifetimeMs>/) as string,
  });
});

describe('a 404', () => {
  const detail =
    'login.example answered the token request with 404 and the error "x": check auth.url and auth.tokenPath, there is no token endpoint at /t';
  const missing = { ...context, head: { status: 404, contentType: '', challenge: '' } };
  const meantUrl = new URL('https://login.example/oauth2/token');

  test('shows the words of the server once, without the advice of the sidecar', () => {
    const finding = evaluateTokenFailure({ kind: 'rejected', detail }, missing);
    expect(finding.detail).toMatch(
      /returned 404 \(login\.example answered the token request with 404 and the error "x"\)$/,
    );
    expect(finding.advice).toBe('there is no token endpoint at this path: check <auth.url> and <auth.tokenPath>');
  });

  test('names both settings for a path that is there twice', () => {
    expect(evaluateTokenFailure({ kind: 'rejected', detail }, { ...missing, meantUrl }).advice).toContain(
      'twice; set <auth.url> to https://login.example and <auth.tokenPath> to /oauth2/token',
    );
  });

  test.each([
    ['https://login.example/issue', /set <auth\.url> to https:\/\/login\.example and <auth\.tokenPath> to \/issue$/],
    [
      'https://other.example/issue',
      /if the partner confirms it, set <auth\.issuer> to https:\/\/login\.example instead/,
    ],
  ])('names the published endpoint %s', (tokenUrl, advice) => {
    const metadataUrl = new URL('https://login.example/.well-known/openid-configuration');
    const published = { metadataUrl, issuer: 'https://login.example', tokenUrl: new URL(tokenUrl) };
    expect(evaluateTokenFailure({ kind: 'rejected', detail }, { ...missing, published }).advice).toMatch(advice);
  });
});
