/** Settings of client authentication and of the token request. */
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { renderConfig } from '../../src/commands/render-config.ts';
import { loadConfig } from '../../src/config/load/load.ts';
import { DEFAULT_CLIENT_SETTINGS } from '../../src/config/default-client-settings.ts';
import {
  hasKeyMaterial,
  readClientCredential,
  type ClientAuthOptions,
} from '../../src/token/client/client-authentication.ts';
import { makeCertificates } from '../support/certificates.ts';
import type { Certificates, IssuedFiles } from '../support/certificates.ts';
import { BASE_ENV, configOf, problemsOf, scratchFile } from './base-env.ts';

let certificates: Certificates;
let client: IssuedFiles;
beforeAll(() => {
  certificates = makeCertificates();
  client = certificates.issue('legacy-app');
});
afterAll(() => certificates[Symbol.dispose]());

const PEM = { format: 'pem', type: 'pkcs8' } as const;
const rsaKey = (bits = 2048): string => generateKeyPairSync('rsa', { modulusLength: bits }).privateKey.export(PEM);
const ecKey = (namedCurve = 'P-256'): string => generateKeyPairSync('ec', { namedCurve }).privateKey.export(PEM);

const sourceOf = (value: string) => ({ kind: 'value', value });

const NO_SECRET = { SIDECAR_CLIENT_SECRET: '' };

function assertionEnv(key: string, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return {
    ...NO_SECRET,
    SIDECAR_AUTH_METHOD: 'private_key_jwt',
    SIDECAR_AUTH_PRIVATE_KEY_FILE: scratchFile(key),
    ...more,
  };
}

/** The file is not read when the configuration is: it may appear and change later. */
function fileAssertionEnv(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return {
    ...NO_SECRET,
    SIDECAR_AUTH_METHOD: 'client_assertion',
    SIDECAR_AUTH_ASSERTION_FILE: '/var/run/secrets/tokens/token',
    SIDECAR_AUTH_ASSERTION_FILE_AUDIENCE: 'api://AzureADTokenExchange',
    ...more,
  };
}

describe('methods', () => {
  test('default: client_secret_basic, raw', () => {
    const secret = { kind: 'value', value: BASE_ENV.SIDECAR_CLIENT_SECRET };
    expect(configOf().auth.method).toEqual({ name: 'client_secret_basic', secret, encoding: 'raw' });
    expect(configOf({ SIDECAR_AUTH_BASIC_ENCODING: 'form' }).auth.method).toMatchObject({ encoding: 'form' });
    expect(configOf({ SIDECAR_AUTH_METHOD: 'client_secret_post' }).auth.method).toEqual({
      name: 'client_secret_post',
      secret,
    });
  });

  test('private_key_jwt needs a key and no secret', () => {
    const env = assertionEnv(ecKey());
    expect(configOf(env).auth.method).toEqual({
      name: 'private_key_jwt',
      keyFile: env.SIDECAR_AUTH_PRIVATE_KEY_FILE,
      keyId: undefined,
      algorithm: undefined,
      certificateFile: undefined,
      audience: 'token_endpoint',
    });
    const { auth } = configOf({
      ...env,
      SIDECAR_AUTH_URL: '',
      SIDECAR_AUTH_ISSUER: 'https://login.example.com',
      SIDECAR_AUTH_KEY_ID: 'k1',
      SIDECAR_AUTH_SIGNING_ALGORITHM: 'ES256',
      SIDECAR_AUTH_ASSERTION_AUDIENCE: 'issuer',
    });
    expect(auth.method).toMatchObject({ keyId: 'k1', algorithm: 'ES256', audience: 'issuer' });
  });

  test('client_assertion needs a file, its audience and no secret', () => {
    const file = { path: '/var/run/secrets/tokens/token', audience: 'api://AzureADTokenExchange' };
    expect(configOf(fileAssertionEnv()).auth.method).toEqual({ name: 'client_assertion', file });
    const { auth } = configOf({
      ...fileAssertionEnv(),
      SIDECAR_AUTH_URL: '',
      SIDECAR_AUTH_ISSUER: 'https://login.example.com',
    });
    expect(auth).toMatchObject({ endpoint: { kind: 'issuer' }, method: { name: 'client_assertion', file } });
  });

  test('a credential with client_assertion inherits no secret, and none with a secret inherits the file', () => {
    const named = `
credentials:
  - { name: mine, method: client_assertion, clientId: a, assertionFile: /a, assertionFileAudience: b }
  - { name: other, clientId: c, clientSecret: sesame-1 }
routes:
  - { name: one, pathPrefix: /one, credential: mine }
  - { name: two, pathPrefix: /two, credential: other }
`;
    for (const env of [{}, fileAssertionEnv()]) {
      const loaded = loadConfig({ env: { ...BASE_ENV, ...env }, file: scratchFile(named) });
      if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
      const methods = loaded.config.credentials.map(({ auth }) => auth.method);
      expect(methods.slice(1)).toEqual([
        { name: 'client_assertion', file: { path: '/a', audience: 'b' } },
        { name: 'client_secret_basic', secret: { kind: 'value', value: 'sesame-1' }, encoding: 'raw' },
      ]);
    }
  });

  test('tls_client_auth needs a certificate and no secret', () => {
    const env = {
      ...NO_SECRET,
      SIDECAR_AUTH_METHOD: 'tls_client_auth',
      SIDECAR_AUTH_TLS_CERTIFICATE_FILE: client.certificateFile,
      SIDECAR_AUTH_TLS_KEY_FILE: client.keyFile,
    };
    expect(configOf(env).auth).toMatchObject({ method: { name: 'tls_client_auth' }, clientCertificate: client });
  });

  test('a certificate is possible with every method, and used for the upstream by default', () => {
    const env = {
      SIDECAR_AUTH_TLS_CERTIFICATE_FILE: client.certificateFile,
      SIDECAR_AUTH_TLS_KEY_FILE: client.keyFile,
    };
    const { auth, upstream } = configOf(env);
    expect([auth.clientCertificate, upstream.clientCertificate]).toEqual([client, client]);
    const other = certificates.issue('other');
    const apart = configOf({
      ...env,
      SIDECAR_UPSTREAM_TLS_CERTIFICATE_FILE: other.certificateFile,
      SIDECAR_UPSTREAM_TLS_KEY_FILE: other.keyFile,
    });
    expect([apart.auth.clientCertificate, apart.upstream.clientCertificate]).toEqual([client, other]);
    expect(configOf().upstream.clientCertificate).toBeUndefined();
  });

  test('a colon in the client id is allowed for methods that do not join it to the secret', () => {
    const id = { SIDECAR_CLIENT_ID: 'https://client.example' };
    const idOf = { kind: 'value', value: 'https://client.example' };
    expect(problemsOf(id)).toEqual([expect.stringMatching(/^auth\.clientId .*must not hold a colon$/)]);
    expect(configOf({ ...id, SIDECAR_AUTH_METHOD: 'client_secret_post' }).auth.clientId).toEqual(idOf);
    expect(configOf({ ...id, SIDECAR_AUTH_BASIC_ENCODING: 'form' }).auth.clientId).toEqual(idOf);
    expect(configOf({ ...id, ...assertionEnv(ecKey()) }).auth.clientId).toEqual(idOf);
  });
});

describe('one problem that names both, for', () => {
  const method = (name: string): Record<string, string> => ({ SIDECAR_AUTH_METHOD: name });
  test.each<[string, Record<string, string>, RegExp]>([
    ['no secret', NO_SECRET, /^auth\.clientSecret .*required; the client secret for client_secret_basic, or .*File/],
    [
      'no secret in the form',
      { ...NO_SECRET, ...method('client_secret_post') },
      /^auth\.clientSecret .*for client_secret_post/,
    ],
    ['no key', { ...NO_SECRET, ...method('private_key_jwt') }, /^auth\.privateKeyFile .*required by auth\.method/],
    [
      'no certificate',
      { ...NO_SECRET, ...method('tls_client_auth') },
      /^auth\.tlsCertificateFile .*required by auth\.method .*tls_client_auth, with auth\.tlsKeyFile/,
    ],
    [
      'an encoding of Basic',
      { ...method('client_secret_post'), SIDECAR_AUTH_BASIC_ENCODING: 'form' },
      /^auth\.basicEncoding .*auth\.method .*client_secret_post does not use it; it belongs to client_secret_basic$/,
    ],
    [
      'a key id',
      { SIDECAR_AUTH_KEY_ID: 'k1' },
      /^auth\.keyId .*client_secret_basic does not use it; it belongs to private_key_jwt, and to /,
    ],
    ['an algorithm', { SIDECAR_AUTH_SIGNING_ALGORITHM: 'ES256' }, /^auth\.signingAlgorithm .*does not use it/],
    [
      'the issuer in an assertion',
      { SIDECAR_AUTH_ASSERTION_AUDIENCE: 'issuer' },
      /^auth\.assertionAudience .*does not use it/,
    ],
    ['url and issuer', { SIDECAR_AUTH_ISSUER: 'https://a.test' }, /^auth\.url .*set together with auth\.issuer/],
    [
      'neither url nor issuer',
      { SIDECAR_AUTH_URL: '' },
      /^auth\.url .*required; the authorization server's base URL.*auth\.issuer/,
    ],
    [
      'a token path beside an issuer',
      { SIDECAR_AUTH_URL: '', SIDECAR_AUTH_ISSUER: 'https://a.test', SIDECAR_AUTH_TOKEN_PATH: '/t' },
      /^auth\.tokenPath .*auth\.issuer/,
    ],
    [
      'an issuer without TLS',
      { SIDECAR_AUTH_URL: '', SIDECAR_AUTH_ISSUER: 'http://a.test' },
      /^auth\.issuer .*loopback hosts only/,
    ],
    ['an unknown method', method('client_secret_jwt'), /^auth\.method .*expected one of client_secret_basic, /],
  ])('%s', (_, env, problem) => {
    expect(problemsOf(env)).toEqual([expect.stringMatching(problem)]);
  });

  test.each<[string, Record<string, string>, RegExp]>([
    [
      'no file',
      { SIDECAR_AUTH_ASSERTION_FILE: '' },
      /^auth\.assertionFile \(SIDECAR_AUTH_ASSERTION_FILE\): required by auth\.method .*client_assertion; the file of/,
    ],
    [
      'no audience',
      { SIDECAR_AUTH_ASSERTION_FILE_AUDIENCE: '' },
      /^auth\.assertionFileAudience \(SIDECAR_AUTH_ASSERTION_FILE_AUDIENCE\): required by auth\.method .*; the audience/,
    ],
    ['no client id', { SIDECAR_CLIENT_ID: '' }, /^auth\.clientId .*required/],
    ['a secret', { SIDECAR_CLIENT_SECRET: 'sesame' }, /^auth\.clientSecret .*client_assertion sends no secret/],
    [
      'a key',
      { SIDECAR_AUTH_PRIVATE_KEY_FILE: '/etc/hostname' },
      /^auth\.privateKeyFile .*belongs to private_key_jwt, and to /,
    ],
    ['a key id', { SIDECAR_AUTH_KEY_ID: 'k1' }, /^auth\.keyId .*client_assertion does not use it/],
    ['an algorithm', { SIDECAR_AUTH_SIGNING_ALGORITHM: 'ES256' }, /^auth\.signingAlgorithm .*does not use it/],
    ['the issuer', { SIDECAR_AUTH_ASSERTION_AUDIENCE: 'issuer' }, /^auth\.assertionAudience .*does not use it/],
    ['an encoding of Basic', { SIDECAR_AUTH_BASIC_ENCODING: 'form' }, /^auth\.basicEncoding .*does not use it/],
    ['a cache', { SIDECAR_AUTH_CACHE_FILE: '/tmp/token' }, /^auth\.cacheFile .*neither a secret nor a key to encrypt/],
  ])('client_assertion with %s', (_, env, problem) => {
    expect(problemsOf(fileAssertionEnv(env))).toEqual([expect.stringMatching(problem)]);
  });

  test('a file of an assertion that the method does not send', () => {
    expect(problemsOf({ SIDECAR_AUTH_ASSERTION_FILE: '/a', SIDECAR_AUTH_ASSERTION_FILE_AUDIENCE: 'b' })).toEqual([
      expect.stringMatching(
        /^auth\.assertionFile .*client_secret_basic does not use it; it belongs to client_assertion$/,
      ),
      expect.stringMatching(/^auth\.assertionFileAudience .*does not use it; it belongs to client_assertion$/),
    ]);
  });

  test('a secret that the method does not send', () => {
    expect(problemsOf({ ...assertionEnv(ecKey()), SIDECAR_CLIENT_SECRET: 'sesame' })).toEqual([
      'auth.clientSecret (SIDECAR_CLIENT_SECRET): set, but auth.method (SIDECAR_AUTH_METHOD) private_key_jwt sends no secret; leave it out',
    ]);
  });

  test('a key that the method does not use', () => {
    expect(problemsOf({ SIDECAR_AUTH_PRIVATE_KEY_FILE: scratchFile('no key at all') })).toEqual([
      expect.stringMatching(/^auth\.privateKeyFile .*it belongs to private_key_jwt, and to /),
    ]);
  });

  test('the issuer as the audience of an assertion, without one', () => {
    const env = assertionEnv(ecKey(), { SIDECAR_AUTH_ASSERTION_AUDIENCE: 'issuer' });
    expect(problemsOf(env)).toEqual([
      'auth.assertionAudience (SIDECAR_AUTH_ASSERTION_AUDIENCE): found issuer, which needs auth.issuer (SIDECAR_AUTH_ISSUER)',
    ]);
  });

  test('a certificate without its key, and a key without its certificate', () => {
    for (const [variable, prefix] of [
      ['SIDECAR_AUTH_TLS', 'auth'],
      ['SIDECAR_UPSTREAM_TLS', 'upstream'],
    ] as const) {
      expect(problemsOf({ [`${variable}_CERTIFICATE_FILE`]: client.certificateFile })).toEqual([
        expect.stringContaining(`${prefix}.tlsCertificateFile (${variable}_CERTIFICATE_FILE): set without its key`),
      ]);
      expect(problemsOf({ [`${variable}_KEY_FILE`]: client.keyFile })).toEqual([
        expect.stringContaining(`${prefix}.tlsCertificateFile (${variable}_CERTIFICATE_FILE): required with`),
      ]);
    }
  });

  test('tls_client_auth without TLS', () => {
    const env = {
      ...NO_SECRET,
      SIDECAR_AUTH_METHOD: 'tls_client_auth',
      SIDECAR_AUTH_URL: 'http://localhost:1',
      SIDECAR_AUTH_TLS_CERTIFICATE_FILE: client.certificateFile,
      SIDECAR_AUTH_TLS_KEY_FILE: client.keyFile,
    };
    expect(problemsOf(env)).toEqual([expect.stringMatching(/^auth\.method .*needs an https: URL in auth\.url/)]);
  });
});

async function readCredential(options: ClientAuthOptions) {
  const credential = await readClientCredential(options);
  if (credential.kind === 'unreadable') throw new Error(credential.detail);
  return credential;
}

test('a cache is refused exactly for clients that have neither a secret nor a key', async () => {
  const methods = {
    client_secret_basic: {},
    client_secret_post: {},
    private_key_jwt: { ...NO_SECRET, SIDECAR_AUTH_PRIVATE_KEY_FILE: scratchFile(ecKey()) },
    client_assertion: fileAssertionEnv(),
    none: NO_SECRET,
  };
  const keyPair = {
    SIDECAR_AUTH_TLS_CERTIFICATE_FILE: client.certificateFile,
    SIDECAR_AUTH_TLS_KEY_FILE: client.keyFile,
  };
  const grant = {
    SIDECAR_AUTH_GRANT_TYPE: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
    SIDECAR_AUTH_PRIVATE_KEY_FILE: scratchFile(ecKey()),
  };
  for (const [name, env] of Object.entries(methods))
    for (const more of [{}, keyPair, grant, { ...keyPair, ...grant }]) {
      const all = { ...env, SIDECAR_AUTH_METHOD: name, ...more };
      const cached = loadConfig({ env: { ...BASE_ENV, ...all, SIDECAR_AUTH_CACHE_FILE: '/tmp/token' } });
      expect([name, Object.keys(more), cached.ok]).toEqual([
        name,
        Object.keys(more),
        (await readCredential(configOf(all).auth)).keyMaterial !== undefined,
      ]);
      expect(hasKeyMaterial(configOf(all).auth)).toBe(cached.ok);
    }
});

describe('files', () => {
  test.each<[string, () => string, string, RegExp]>([
    ['no key', () => 'sesame', '', /holds no private key in PEM or JWK$/],
    ['a key that is too short', () => rsaKey(1024), '', /RSA key of 1024 bits; expected 2048 or more$/],
    ['a key that cannot do it', () => ecKey(), 'RS256', /holds a key for ES256, which cannot sign RS256$/],
  ])('of the private key, with %s, are refused', (_, key, algorithm, fault) => {
    const [line, ...others] = problemsOf(assertionEnv(key(), { SIDECAR_AUTH_SIGNING_ALGORITHM: algorithm }));
    expect(line).toMatch(/^auth\.privateKeyFile \(SIDECAR_AUTH_PRIVATE_KEY_FILE\): the file "/);
    expect(line).toMatch(fault);
    expect(others).toEqual([]);
  });

  test('of the certificate of an assertion are refused unless they hold the one of the private key', () => {
    const key = readFileSync(client.keyFile, 'utf8');
    const env = (file: string) => assertionEnv(key, { SIDECAR_AUTH_CERTIFICATE_FILE: file });
    const withCertificate = (file: string) => problemsOf(env(file));
    const { method } = configOf(env(client.certificateFile)).auth;
    expect(method).toMatchObject({ name: 'private_key_jwt', certificateFile: client.certificateFile });
    expect(withCertificate(certificates.issue('other').certificateFile)).toEqual([
      expect.stringMatching(
        /^auth\.certificateFile \(.*holds the certificate of another key; expected that of the key in/,
      ),
    ]);
    expect(withCertificate(client.keyFile)).toEqual([
      expect.stringMatching(/^auth\.certificateFile \(.*holds no PEM certificate/),
    ]);
  });

  test('of a certificate and the key of another one are refused', () => {
    const other = certificates.issue('other');
    for (const variable of ['SIDECAR_AUTH_TLS', 'SIDECAR_UPSTREAM_TLS']) {
      const env = {
        [`${variable}_CERTIFICATE_FILE`]: client.certificateFile,
        [`${variable}_KEY_FILE`]: other.keyFile,
      };
      expect(problemsOf(env)).toEqual([
        expect.stringMatching(/tlsKeyFile .*the key does not belong to the certificate/),
      ]);
    }
  });

  test('with an invalid certificate make one problem', () => {
    const env = {
      SIDECAR_AUTH_TLS_CERTIFICATE_FILE: scratchFile('nothing'),
      SIDECAR_AUTH_TLS_KEY_FILE: client.keyFile,
    };
    expect(problemsOf(env)).toEqual([expect.stringMatching(/^auth\.tlsCertificateFile .*holds no PEM certificate/)]);
  });
});

describe('audiences and resources', () => {
  test.each([
    ['https://a.test/x,y', ['https://a.test/x,y']],
    ['["https://a.test","urn:b"]', ['https://a.test', 'urn:b']],
  ])('%s', (text, list) => {
    const { auth } = configOf({ SIDECAR_AUDIENCE: text, SIDECAR_AUTH_RESOURCE: text });
    expect([auth.audience, auth.resource]).toEqual([list, list]);
  });
  test('in a file, as one text or as a list', () => {
    const file = scratchFile('auth: { audience: [a, b], resource: "urn:r" }');
    const { auth } = configOf({ SIDECAR_AUDIENCE: '' }, { file });
    expect([auth.audience, auth.resource]).toEqual([['a', 'b'], ['urn:r']]);
  });
  test('a resource alone is sufficient', () => {
    expect(configOf({ SIDECAR_AUDIENCE: '', SIDECAR_AUTH_RESOURCE: 'urn:r' }).auth.audience).toEqual([]);
  });
  test.each([
    ['SIDECAR_AUDIENCE', '[]', /expected at least one/],
    ['SIDECAR_AUDIENCE', '["a","a"]', /each entry once/],
    ['SIDECAR_AUDIENCE', '["a",""]', /entry "": expected an audience/],
    ['SIDECAR_AUDIENCE', '["a",1]', /write it in quotes/],
    ['SIDECAR_AUTH_RESOURCE', 'no uri', /expected an absolute URI/],
    ['SIDECAR_AUTH_RESOURCE', 'https://a.test/#f', /expected an absolute URI/],
    ['SIDECAR_AUTH_RESOURCE', '["https://user:sesame@a b"]', /entry "https:\/\/\*{8}@a b": expected/],
  ])('%s=%s is refused', (variable, text, problem) => {
    const lines = problemsOf({ [variable]: text });
    expect(lines).toEqual([expect.stringMatching(problem)]);
    expect(lines[0]).not.toContain('sesame');
  });
});

describe('extra fields of the token request', () => {
  const VARIABLES = ['SIDECAR_AUTH_EXTRA_PARAMETERS', 'SIDECAR_AUTH_EXTRA_HEADERS'] as const;

  test('are an object in a variable, a section in a file', () => {
    const path = scratchFile('a secret');
    const file = scratchFile(
      `auth: { extraParameters: { tenant: "12", b.c: { file: "${path}" } }, extraHeaders: { X-Key: y } }`,
    );
    expect(configOf({}, { file }).auth).toMatchObject({
      extraParameters: { tenant: sourceOf('12'), 'b.c': { kind: 'file', path } },
      extraHeaders: { 'X-Key': sourceOf('y') },
    });
    const env = { [VARIABLES[0]]: '{"tenant":"ü ="}', [VARIABLES[1]]: '{"x-key":"z"}' };
    expect(configOf(env, { file }).auth).toMatchObject({
      extraParameters: { tenant: sourceOf('ü =') },
      extraHeaders: { 'x-key': sourceOf('z') },
    });
    expect(configOf().auth).toMatchObject({ extraParameters: {}, extraHeaders: {} });
  });

  test.each([
    ['grant_type', /is set by auth\.grantType$/],
    ['scope', /is set by auth\.scope$/],
    ['audience', /is set by auth\.audience$/],
    ['client_secret', /is set by auth\.clientSecret$/],
    ['client_assertion', /is set by auth\.method$/],
    ['a b', /expected a name of letters, digits, "-", "\." and "_"$/],
    ['__proto__', /expected a name of letters/],
    ['', /expected a name of letters/],
  ])('the parameter %j is refused', (name, reason) => {
    const [line, ...others] = problemsOf({ [VARIABLES[0]]: `{${JSON.stringify(name)}:"sesame"}` });
    expect(line?.startsWith(`auth.extraParameters (${VARIABLES[0]}): ${JSON.stringify(name)}: `)).toBe(true);
    expect(line).toMatch(reason);
    expect(others).toEqual([]);
  });

  test.each([
    'Authorization',
    'content-length',
    'Content-Type',
    'HOST',
    'Transfer-Encoding',
    'Accept',
    'Proxy-X',
    'cöd',
  ])('the header field %j is refused', (name) => {
    const lines = problemsOf({ [VARIABLES[1]]: JSON.stringify({ [name]: 'sesame' }) });
    const problem = /^auth\.extraHeaders .*(?:sidecar itself|expected a field name|is set by auth\.method)/;
    expect(lines).toEqual([expect.stringMatching(problem)]);
  });

  test.each([
    ['sesame', 'expected names with texts'],
    ['["sesame"]', 'expected names with texts'],
    ['{"a":1}', '"a": must be a text in quotes'],
    ['{"a":"sesame\\n"}', '"a": must not hold control characters'],
    ['{"a":""}', '"a": must not be empty'],
    ['{"a":"********"}', '"a": is the mask'],
  ])('%s is refused, and no value is shown', (text, reason) => {
    for (const variable of VARIABLES) {
      const lines = problemsOf({ [variable]: text });
      expect(lines).toEqual([expect.stringContaining(reason)]);
      expect(lines[0]).not.toContain('sesame');
    }
  });

  test('are printed with their names, without their values', () => {
    const env = { ...BASE_ENV, [VARIABLES[0]]: '{"tenant":"sesame-1"}', [VARIABLES[1]]: '{"X-Key":"sesame-2"}' };
    const { stdout } = renderConfig({ env });
    expect(stdout).toContain('  extraParameters: { tenant: "********" } # environment SIDECAR_AUTH_EXTRA_PARAMETERS\n');
    expect(stdout).toContain('  extraHeaders: { X-Key: "********" } #');
    expect(stdout).not.toContain('sesame');
  });
});

test('DEFAULT_CLIENT_SETTINGS resets every setting that only fits the partner', () => {
  const env = {
    SIDECAR_AUTH_ISSUER: 'https://login.example.com',
    ...assertionEnv('no key at all', { SIDECAR_AUTH_KEY_ID: 'k', SIDECAR_AUTH_ASSERTION_AUDIENCE: 'issuer' }),
    SIDECAR_AUTH_BASIC_ENCODING: 'form',
    SIDECAR_AUTH_ASSERTION_FILE: '/nowhere',
    SIDECAR_AUTH_ASSERTION_FILE_AUDIENCE: 'a',
    SIDECAR_AUTH_TLS_CERTIFICATE_FILE: '/nowhere',
    SIDECAR_UPSTREAM_TLS_KEY_FILE: '/nowhere',
    SIDECAR_AUTH_EXTRA_HEADERS: 'nonsense',
    SIDECAR_AUTH_RESOURCE: 'nonsense',
    SIDECAR_CA_FILE: '/nowhere',
    HTTPS_PROXY: 'socks5://p:1',
    HTTP_PROXY: 'nonsense of a proxy',
    NO_PROXY: '*',
  };
  const values = {
    ...DEFAULT_CLIENT_SETTINGS,
    'upstream.baseUrl': 'http://localhost:1',
    'auth.url': 'http://localhost:2',
    'auth.clientId': 'other',
    'auth.clientSecret': 'of the other',
  };
  const { auth, upstream, egress } = configOf(env, { preset: { name: 'other', values } });
  expect(auth).toMatchObject({
    endpoint: { kind: 'url' },
    method: { name: 'client_secret_basic', encoding: 'raw' },
    clientCertificate: undefined,
    resource: [],
    extraHeaders: {},
  });
  expect([upstream.clientCertificate, egress.proxy, egress.httpProxy, egress.noProxy]).toEqual([
    undefined,
    undefined,
    undefined,
    [],
  ]);
});

describe('partners with a request of their own', () => {
  const NO_CLIENT = { ...NO_SECRET, SIDECAR_CLIENT_ID: '', SIDECAR_AUDIENCE: '' };
  const none = (more: Readonly<Record<string, string>> = {}) => ({
    ...NO_CLIENT,
    SIDECAR_AUTH_METHOD: 'none',
    ...more,
  });
  const asStatic = (more: Readonly<Record<string, string>> = {}) => ({
    ...NO_CLIENT,
    SIDECAR_AUTH_URL: '',
    SIDECAR_AUTH_METHOD: 'static',
    SIDECAR_AUTH_TOKEN_FILE: '/run/token',
    ...more,
  });
  const grant = (more: Readonly<Record<string, string>> = {}) => ({
    SIDECAR_AUTH_GRANT_TYPE: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
    SIDECAR_AUTH_PRIVATE_KEY_FILE: scratchFile(ecKey()),
    ...more,
  });

  test('none sends the parameters that are given, those of the client among them', () => {
    const path = scratchFile('sesame');
    const parameters = JSON.stringify({ client_id: 'a', client_secret: { file: path } });
    expect(configOf(none({ SIDECAR_AUTH_EXTRA_PARAMETERS: parameters })).auth).toMatchObject({
      clientId: undefined,
      method: { name: 'none' },
      extraParameters: { client_id: sourceOf('a'), client_secret: { kind: 'file', path } },
    });
  });

  test('static needs neither server nor client, and does not mind them', () => {
    const endpoint = { kind: 'file', path: '/run/token' };
    expect(configOf(asStatic()).auth).toMatchObject({ endpoint, clientId: undefined });
    const more = { SIDECAR_AUTH_URL: 'https://login.example.com', SIDECAR_CLIENT_ID: 'a' };
    expect(configOf(asStatic(more)).auth).toMatchObject({ endpoint });
  });

  test('static needs no token file where each of its routes has the key in a file of its query', () => {
    const file = (routes: string): string =>
      scratchFile(`routes: [${routes}]\ncredentials: { partner: { method: static } }`);
    const route = (name: string, query: string): string =>
      `{ name: ${name}, pathPrefix: /${name}, baseUrl: 'https://${name}.example.com', credential: partner, query: ${query} }`;
    const path = scratchFile('sesame');
    const [keyed, other] = [route('a', `{ v: b, key: { file: ${path} } }`), route('b', '{ key: of-a-text }')];
    const loaded = loadConfig({ env: BASE_ENV, file: file(keyed) });
    expect(loaded).toMatchObject({
      ok: true,
      config: {
        routes: [{ upstream: { hasTokenField: true } }, { upstream: { hasTokenField: false } }],
        credentials: [{ name: 'default' }, { auth: { endpoint: { kind: 'file', path }, tokenPrefixes: [] } }],
      },
    });
    expect(problemsOf({}, { file: file(`${keyed}, ${other}`) })).toEqual([
      expect.stringMatching(/^credentials\.partner\.tokenFile: required by credentials\.partner\.method static; /),
    ]);
  });

  test('the grant of an assertion has claims, beside any method', () => {
    const env = grant({ SIDECAR_AUTH_ASSERTION_CLAIMS: '{"sub":"u","box_sub_type":"enterprise","list":[1]}' });
    const claims = { sub: 'u', box_sub_type: 'enterprise', list: [1] };
    for (const more of [{}, { ...NO_SECRET, SIDECAR_AUTH_METHOD: 'none' }])
      expect(configOf({ ...env, ...more }).auth.assertionGrant).toMatchObject({ claims, audience: 'token_endpoint' });
    const file = scratchFile('auth: { assertionClaims: { sub: u, list: [{ a: 1 }] } }');
    expect(configOf(grant(), { file }).auth.assertionGrant?.claims).toEqual({ sub: 'u', list: [{ a: 1 }] });
  });

  test('the empty grant type is possible in a file', () => {
    expect(configOf({}, { file: scratchFile('auth: { grantType: "" }') }).auth.grantType).toBe('');
  });

  test.each<[string, () => Record<string, string>, RegExp]>([
    [
      'static without a file',
      () => asStatic({ SIDECAR_AUTH_TOKEN_FILE: '' }),
      /^auth\.tokenFile .*required by auth\.method .*static; the file of/,
    ],
    [
      'a token file of another method',
      () => ({ SIDECAR_AUTH_TOKEN_FILE: '/run/token' }),
      /^auth\.tokenFile .*it belongs to static$/,
    ],
    [
      'static with a cache',
      () => asStatic({ SIDECAR_AUTH_CACHE_FILE: '/tmp/token' }),
      /^auth\.cacheFile .*neither a secret nor a key/,
    ],
    [
      'none with a cache',
      () => none({ SIDECAR_AUTH_CACHE_FILE: '/tmp/token' }),
      /^auth\.cacheFile .*neither a secret nor a key/,
    ],
    [
      'none with a secret',
      () => none({ SIDECAR_CLIENT_SECRET: 'sesame' }),
      /^auth\.clientSecret .*none sends no secret/,
    ],
    [
      'an assertion without a key',
      () => grant({ SIDECAR_AUTH_PRIVATE_KEY_FILE: '' }),
      /^auth\.privateKeyFile .*required by auth\.grantType urn:ietf:params:oauth:grant-type:jwt-bearer/,
    ],
    ['an assertion without an issuer', () => ({ ...none(), ...grant() }), /^auth\.clientId .*required; the client id/],
    [
      'claims without the grant',
      () => ({ SIDECAR_AUTH_ASSERTION_CLAIMS: '{"sub":"u"}' }),
      /^auth\.assertionClaims .*belongs to auth\.grantType urn:ietf:params:oauth:grant-type:jwt-bearer$/,
    ],
    [
      'a claim of the sidecar',
      () => grant({ SIDECAR_AUTH_ASSERTION_CLAIMS: '{"exp":1}' }),
      /"exp": is set by the sidecar itself$/,
    ],
    [
      'an assertion beside the grant',
      () => grant({ SIDECAR_AUTH_EXTRA_PARAMETERS: '{"assertion":"a"}' }),
      /"assertion": is set by auth\.grantType$/,
    ],
    [
      'a file without a path',
      () => ({ SIDECAR_AUTH_EXTRA_HEADERS: '{"x-key":{"file":""}}' }),
      /"x-key": must be a text in quotes, or \{ file: PATH \}$/,
    ],
    [
      'a file and more',
      () => ({ SIDECAR_AUTH_EXTRA_HEADERS: '{"x-key":{"file":"/a","b":"c"}}' }),
      /"x-key": must be a text/,
    ],
  ])('%s', (_, env, problem) => {
    expect(problemsOf(env())).toEqual([expect.stringMatching(problem)]);
  });
});

describe('header fields of a call', () => {
  test('are as given', () => {
    const path = scratchFile('sesame');
    const headers = `{ X-Api-Key: { file: ${path} }, Accept: a/b }`;
    const file = scratchFile(`upstream: { tokenHeader: X-Token, tokenPrefix: "", headers: ${headers} }`);
    expect(configOf({}, { file }).routes[0].upstream).toMatchObject({
      tokenHeader: 'X-Token',
      tokenPrefix: '',
      headers: { 'X-Api-Key': { kind: 'file', path }, Accept: sourceOf('a/b') },
    });
    expect(configOf().routes[0].upstream).toMatchObject({
      tokenHeader: 'Authorization',
      tokenPrefix: 'Bearer ',
      headers: {},
    });
  });

  test.each([
    ...['Host', 'host', 'Content-Length', 'Transfer_Encoding', 'connection', 'TE', 'Trailer', 'Upgrade', 'Expect'],
    ...[
      'Proxy-Authorization',
      'proxy_connection',
      'X-Sidecar-Priority',
      'x_sidecar_caller',
      'Keep-Alive',
      'HTTP2-Settings',
    ],
    ...['a b', '', '__proto__'],
  ])('%j is refused', (name) => {
    const [fault] = problemsOf({ SIDECAR_UPSTREAM_HEADERS: `{${JSON.stringify(name)}:"sesame"}` });
    expect(fault).toMatch(/^upstream\.headers .*expected a field/);
    expect(fault).not.toContain('sesame');
    if (name !== '' && name !== '__proto__')
      expect(problemsOf({ SIDECAR_UPSTREAM_TOKEN_HEADER: name })).toEqual([
        expect.stringMatching(/^upstream\.tokenHeader /),
      ]);
  });

  test.each([
    ['{"AUTHORIZATION":"a"}', /is the field of upstream\.tokenHeader/],
    ['{"X-Key":"a","x_key":"b"}', /is there twice/],
    ['{"X-Key":"a\\nb"}', /must not hold control characters/],
    ['{"X-Key":"ä"}', /must be printable ASCII/],
  ])('%s is refused', (headers, problem) => {
    expect(problemsOf({ SIDECAR_UPSTREAM_HEADERS: headers })).toEqual([expect.stringMatching(problem)]);
  });

  test('Authorization may be fixed where another field carries the token', () => {
    const env = {
      SIDECAR_UPSTREAM_TOKEN_HEADER: 'X-Token',
      SIDECAR_UPSTREAM_HEADERS: '{"Authorization":"Basic YTpi"}',
    };
    expect(configOf(env).routes[0].upstream.headers).toEqual({ Authorization: sourceOf('Basic YTpi') });
  });
});
