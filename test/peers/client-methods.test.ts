/**
 * Every method of client authentication against authorization servers that we did not write, from the settings to the token, with
 * the request as the server received it. Prints the whole as a table.
 */
import { generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { loadConfig } from '../../src/config/load/load.ts';
import { formatProblems } from '../../src/config/load/problems.ts';
import { createProxySelector } from '../../src/platform/egress/proxy-selector.ts';
import { simple } from '../config/base-env.ts';
import { TokenEndpoint } from '../../src/token/endpoint/token-endpoint.ts';
import { makeCertificates } from '../support/certificates.ts';
import type { Certificates, IssuedFiles } from '../support/certificates.ts';
import { registerSecret } from '../support/secrets.ts';
import {
  AUDIENCE,
  publicJwks,
  SCOPE,
  startMockServer,
  startNodeOAuth,
  startOidcProvider,
} from './authorization-servers.ts';
import type { PeerServer, WireRequest } from './authorization-servers.ts';

type Env = Readonly<Record<string, string>>;
type ServerName = 'oidc-provider' | 'oauth2-mock-server' | '@node-oauth/oauth2-server';

const folder = mkdtempSync(join(tmpdir(), 'client-methods-'));
const running = new AsyncDisposableStack();
const servers = new Map<ServerName, PeerServer>();
const rows: string[][] = [
  ['authorization server', 'client', 'found by', 'token', 'Authorization', 'form', 'certificate'],
];

const random = (): string => randomBytes(12).toString('hex');
/** What form-encoding leaves alone, and what it changes. */
const PLAIN = `plain${random()}`;
const ODD = `s3cr%2B+/=:${random()}`;
for (const secret of [PLAIN, ODD]) registerSecret('a client secret', secret);

const keys = {
  rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  p256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ed25519: generateKeyPairSync('ed25519'),
};
let certificates: Certificates;
let certificate: IssuedFiles;

function write(name: string, contents: string): string {
  const path = join(folder, name);
  writeFileSync(path, contents);
  return path;
}

const pem = (key: KeyObject): string => key.export({ format: 'pem', type: 'pkcs8' });

function registeredKey(id: string, key: KeyObject, alg: string) {
  return {
    client_id: id,
    token_endpoint_auth_method: 'private_key_jwt',
    token_endpoint_auth_signing_alg: alg as 'RS256',
    jwks: publicJwks({ ...key.export({ format: 'jwk' }), alg, kid: id }),
  } as const;
}

beforeAll(async () => {
  certificates = running.use(makeCertificates());
  certificate = certificates.issue('legacy-app');
  const leaf = new X509Certificate(readFileSync(certificate.certificateFile));
  const bound = { tls_client_certificate_bound_access_tokens: true };
  const oidc = await startOidcProvider(certificates, [
    { client_id: 'plain', client_secret: PLAIN, token_endpoint_auth_method: 'client_secret_basic' },
    { client_id: 'odd', client_secret: ODD, token_endpoint_auth_method: 'client_secret_basic' },
    { client_id: 'post', client_secret: ODD, token_endpoint_auth_method: 'client_secret_post' },
    { client_id: 'bound', client_secret: PLAIN, token_endpoint_auth_method: 'client_secret_basic', ...bound },
    registeredKey('rs256', keys.rsa.publicKey, 'RS256'),
    registeredKey('ps256', keys.rsa.publicKey, 'PS256'),
    registeredKey('es256', keys.p256.publicKey, 'ES256'),
    registeredKey('eddsa', keys.ed25519.publicKey, 'EdDSA'),
    {
      client_id: 'tls',
      token_endpoint_auth_method: 'tls_client_auth',
      tls_client_auth_subject_dn: 'CN=legacy-app',
      ...bound,
    },
    {
      client_id: 'self-signed',
      token_endpoint_auth_method: 'self_signed_tls_client_auth',
      jwks: publicJwks({ ...leaf.publicKey.export({ format: 'jwk' }), x5c: [leaf.raw.toString('base64')] }),
    },
  ]);
  servers.set('oidc-provider', running.use(oidc));
  servers.set('oauth2-mock-server', running.use(await startMockServer()));
  servers.set('@node-oauth/oauth2-server', running.use(await startNodeOAuth({ id: 'odd', secret: ODD })));
});

afterAll(async () => {
  await running.disposeAsync();
  rmSync(folder, { recursive: true });
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  process.stdout.write(`\n${lines.join('\n')}\n`);
});

interface Outcome {
  /** The token, or the words of the refusal. */
  readonly token: string;
  readonly isObtained: boolean;
  readonly wire: WireRequest | undefined;
  readonly warnings: readonly string[];
}

/** One request as `bearer-sidecar` would send it for these settings. */
async function obtain(name: ServerName, by: 'url' | 'issuer', env: Env): Promise<Outcome> {
  const server = servers.get(name);
  if (server === undefined) throw new Error('no such server');
  const { origin, pathname } = new URL(server.tokenUrl);
  const where: Env =
    by === 'url'
      ? { SIDECAR_AUTH_URL: origin, SIDECAR_AUTH_TOKEN_PATH: pathname }
      : { SIDECAR_AUTH_ISSUER: server.issuer };
  const loaded = loadConfig({
    env: {
      SIDECAR_BASE_URL: 'https://api.partner.example',
      SIDECAR_CA_FILE: certificates.caFile,
      SIDECAR_AUDIENCE: AUDIENCE,
      SIDECAR_SCOPE: SCOPE,
      ...where,
      ...env,
    },
  });
  if (!loaded.ok) throw new Error(formatProblems(loaded.problems));
  const warnings: string[] = [];
  const { auth } = simple(loaded.config);
  const { endpoint: address } = auth;
  if (address.kind === 'file') throw new Error('expected a token endpoint');
  const endpoint = new TokenEndpoint({
    ...auth,
    endpoint: address,
    egress: createProxySelector(loaded.config.egress),
    clock: systemClock,
    observe: (event) => {
      if (event.kind === 'warning') warnings.push(event.message);
    },
  });
  const credential = await endpoint.readCredential();
  if (credential.kind === 'unreadable') throw new Error(credential.detail);
  const response = await endpoint.request(credential, new AbortController().signal);
  const isObtained = response.kind === 'ok';
  return { token: isObtained ? response.value : response.detail, isObtained, wire: server.lastRequest(), warnings };
}

function note(name: ServerName, client: string, by: string, { isObtained, token, wire }: Outcome): void {
  const scheme = /\r\nauthorization: (\S+)/i.exec(wire?.head ?? '')?.[1] ?? '-';
  const error = /the error "([^"]+)"/.exec(token)?.[1];
  const fields = [...(wire?.form.keys() ?? [])].join(' ');
  rows.push([
    name,
    client,
    by,
    isObtained ? 'obtained' : `refused: ${error ?? token}`,
    scheme,
    fields,
    wire?.certificate ?? '-',
  ]);
}

const key =
  (name: keyof typeof keys, more: Env = {}) =>
  (): Env => ({
    SIDECAR_AUTH_METHOD: 'private_key_jwt',
    SIDECAR_AUTH_PRIVATE_KEY_FILE: write(`${name}.pem`, pem(keys[name].privateKey)),
    ...more,
  });
const withCertificate = (more: Env) => (): Env => ({
  SIDECAR_AUTH_TLS_CERTIFICATE_FILE: certificate.certificateFile,
  SIDECAR_AUTH_TLS_KEY_FILE: certificate.keyFile,
  ...more,
});
const jwk = (more: Env) => (): Env => {
  const text = JSON.stringify({ ...keys.p256.privateKey.export({ format: 'jwk' }), kid: 'es256' });
  return { SIDECAR_AUTH_METHOD: 'private_key_jwt', SIDECAR_AUTH_PRIVATE_KEY_FILE: write('es256.jwk', text), ...more };
};

const BASIC = ['audience', 'grant_type', 'scope'];
const POST = [...BASIC, 'client_id', 'client_secret'].toSorted();
const ASSERTION = [...BASIC, 'client_assertion', 'client_assertion_type', 'client_id'].toSorted();
const TLS = [...BASIC, 'client_id'].toSorted();

const OBTAINED: readonly (readonly [ServerName, string, () => Env, readonly string[]])[] = [
  [
    'oidc-provider',
    'client_secret_basic raw',
    () => ({ SIDECAR_CLIENT_ID: 'plain', SIDECAR_CLIENT_SECRET: PLAIN }),
    BASIC,
  ],
  [
    'oidc-provider',
    'client_secret_basic form, odd secret',
    () => ({ SIDECAR_CLIENT_ID: 'odd', SIDECAR_CLIENT_SECRET: ODD, SIDECAR_AUTH_BASIC_ENCODING: 'form' }),
    BASIC,
  ],
  [
    'oidc-provider',
    'client_secret_post, odd secret',
    () => ({ SIDECAR_CLIENT_ID: 'post', SIDECAR_CLIENT_SECRET: ODD, SIDECAR_AUTH_METHOD: 'client_secret_post' }),
    POST,
  ],
  ['oidc-provider', 'private_key_jwt RS256', key('rsa', { SIDECAR_CLIENT_ID: 'rs256' }), ASSERTION],
  [
    'oidc-provider',
    'private_key_jwt PS256',
    key('rsa', { SIDECAR_CLIENT_ID: 'ps256', SIDECAR_AUTH_SIGNING_ALGORITHM: 'PS256' }),
    ASSERTION,
  ],
  ['oidc-provider', 'private_key_jwt ES256, JWK', jwk({ SIDECAR_CLIENT_ID: 'es256' }), ASSERTION],
  ['oidc-provider', 'private_key_jwt EdDSA', key('ed25519', { SIDECAR_CLIENT_ID: 'eddsa' }), ASSERTION],
  [
    'oidc-provider',
    'tls_client_auth',
    withCertificate({ SIDECAR_CLIENT_ID: 'tls', SIDECAR_AUTH_METHOD: 'tls_client_auth' }),
    TLS,
  ],
  [
    'oidc-provider',
    'tls_client_auth, registered as self-signed',
    withCertificate({ SIDECAR_CLIENT_ID: 'self-signed', SIDECAR_AUTH_METHOD: 'tls_client_auth' }),
    TLS,
  ],
  [
    'oidc-provider',
    'client_secret_basic and a certificate',
    withCertificate({ SIDECAR_CLIENT_ID: 'bound', SIDECAR_CLIENT_SECRET: PLAIN }),
    BASIC,
  ],
  [
    'oauth2-mock-server',
    'client_secret_basic raw',
    () => ({ SIDECAR_CLIENT_ID: 'a', SIDECAR_CLIENT_SECRET: ODD }),
    BASIC,
  ],
  [
    'oauth2-mock-server',
    'client_secret_post',
    () => ({ SIDECAR_CLIENT_ID: 'a', SIDECAR_CLIENT_SECRET: ODD, SIDECAR_AUTH_METHOD: 'client_secret_post' }),
    POST,
  ],
  ['oauth2-mock-server', 'private_key_jwt ES256', key('p256', { SIDECAR_CLIENT_ID: 'a' }), ASSERTION],
];

test.each(OBTAINED)('%s gives a token to %s, found by URL and by issuer', async (name, client, env, fields) => {
  for (const by of ['url', 'issuer'] as const) {
    const outcome = await obtain(name, by, env());
    note(name, client, by, outcome);
    expect([by, outcome.isObtained || outcome.token]).toEqual([by, true]);
    expect(outcome.wire?.head).toMatch(/^POST \S+ HTTP\/1\.1\r\n/);
    expect([...(outcome.wire?.form.keys() ?? [])].toSorted()).toEqual(fields);
    expect(/\r\nauthorization: Basic /i.test(outcome.wire?.head ?? '')).toBe(client.startsWith('client_secret_basic'));
    expect(outcome.wire?.certificate).toBe(/certificate|tls/.test(client) ? 'CN=legacy-app' : undefined);
  }
});

test('oidc-provider takes an assertion that is for the issuer', async () => {
  const env = key('p256', { SIDECAR_CLIENT_ID: 'es256', SIDECAR_AUTH_ASSERTION_AUDIENCE: 'issuer' })();
  const outcome = await obtain('oidc-provider', 'issuer', env);
  note('oidc-provider', 'private_key_jwt ES256, for the issuer', 'issuer', outcome);
  expect(outcome.isObtained || outcome.token).toBe(true);
});

test('a token is bound to the certificate that came with the request (RFC 8705 §3)', async () => {
  const env = withCertificate({ SIDECAR_CLIENT_ID: 'tls', SIDECAR_AUTH_METHOD: 'tls_client_auth' })();
  const { token } = await obtain('oidc-provider', 'url', env);
  const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { cnf?: object };
  const leaf = new X509Certificate(readFileSync(certificate.certificateFile));
  const thumbprint = Buffer.from(leaf.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url');
  expect(claims.cnf).toEqual({ 'x5t#S256': thumbprint });
});

test('@node-oauth/oauth2-server takes an odd secret as it is, in Basic and in the form', async () => {
  const odd = { SIDECAR_CLIENT_ID: 'odd', SIDECAR_CLIENT_SECRET: ODD };
  for (const [client, env] of [
    ['client_secret_basic raw, odd secret', odd],
    ['client_secret_post, odd secret', { ...odd, SIDECAR_AUTH_METHOD: 'client_secret_post' }],
  ] as const) {
    const outcome = await obtain('@node-oauth/oauth2-server', 'url', env);
    note('@node-oauth/oauth2-server', client, 'url', outcome);
    expect([client, outcome.isObtained || outcome.token]).toEqual([client, true]);
  }
});

const REFUSED: readonly (readonly [ServerName, string, () => Env, string])[] = [
  [
    'oidc-provider',
    'client_secret_basic raw, odd secret',
    () => ({ SIDECAR_CLIENT_ID: 'odd', SIDECAR_CLIENT_SECRET: ODD }),
    'invalid_client',
  ],
  [
    '@node-oauth/oauth2-server',
    'client_secret_basic form, odd secret',
    () => ({ SIDECAR_CLIENT_ID: 'odd', SIDECAR_CLIENT_SECRET: ODD, SIDECAR_AUTH_BASIC_ENCODING: 'form' }),
    'invalid_client',
  ],
  ['oidc-provider', 'private_key_jwt, of another key', key('p256', { SIDECAR_CLIENT_ID: 'rs256' }), 'invalid_client'],
  ['@node-oauth/oauth2-server', 'private_key_jwt ES256', key('p256', { SIDECAR_CLIENT_ID: 'odd' }), 'invalid_client'],
  [
    'oidc-provider',
    'tls_client_auth, of another client',
    () => {
      const other = certificates.issue('another-client');
      return {
        SIDECAR_CLIENT_ID: 'tls',
        SIDECAR_AUTH_METHOD: 'tls_client_auth',
        SIDECAR_AUTH_TLS_CERTIFICATE_FILE: other.certificateFile,
        SIDECAR_AUTH_TLS_KEY_FILE: other.keyFile,
      };
    },
    'invalid_client',
  ],
];

test.each(REFUSED)('%s refuses %s, and says why', async (name, client, env, error) => {
  const outcome = await obtain(name, 'url', env());
  note(name, client, 'url', outcome);
  expect(outcome.isObtained).toBe(false);
  expect(outcome.token).toContain(`the error "${error}"`);
});

test('a method that the metadata does not list is named', async () => {
  const { warnings, isObtained } = await obtain('oauth2-mock-server', 'issuer', {
    SIDECAR_CLIENT_ID: 'a',
    SIDECAR_CLIENT_SECRET: ODD,
  });
  expect(isObtained).toBe(true);
  expect(warnings).toEqual(['auth.method is client_secret_basic, and the authorization server lists none']);
});
