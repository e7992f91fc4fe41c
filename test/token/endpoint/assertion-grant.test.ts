/**
 * The grant of RFC 7523 §2.1 against stubs that check what Google, Salesforce, Box and DocuSign publish about their token requests; jose
 * verifies the signatures.
 */
import { createHash, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compactVerify, jwtVerify } from 'jose';
import type { JWTHeaderParameters, JWTPayload } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ClientAuthMethod } from '../../../src/token/client/client-authentication.ts';
import type { TokenEndpointOptions } from '../../../src/token/endpoint/token-endpoint.ts';
import { makeCertificates } from '../../support/certificates.ts';
import type { Certificates, IssuedFiles } from '../../support/certificates.ts';
import { startRecordingUpstream } from '../../support/recording-upstream.ts';
import type { RecordingUpstream } from '../../support/recording-upstream.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { askOnce, buildEndpoint } from './endpoint.ts';

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const folder = mkdtempSync(join(tmpdir(), 'assertion-grant-'));
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const keyFile = join(folder, 'key.pem');
writeFileSync(keyFile, rsa.privateKey.export({ format: 'pem', type: 'pkcs8' }));
const secret: ClientAuthMethod = { name: 'client_secret_post', secret: { kind: 'value', value: 'sesame-of-box' } };

interface Assertion {
  readonly header: JWTHeaderParameters;
  readonly payload: JWTPayload;
  readonly parameters: Readonly<Record<string, unknown>>;
}

let server: RecordingUpstream;
let certificates: Certificates;
let issued: IssuedFiles;
const seen: Assertion[] = [];
/** Throws when a product would refuse the request. */
let check: (request: Assertion) => void = () => undefined;
const clock = new ManualClock();

beforeAll(async () => {
  certificates = makeCertificates();
  issued = certificates.issue('legacy-app');
  server = await startRecordingUpstream(async (request, response) => {
    try {
      const parameters = Object.fromEntries(new URLSearchParams(request.body.toString()));
      const { payload, protectedHeader: header } = await jwtVerify(parameters.assertion ?? '', rsa.publicKey, {
        currentDate: new Date(clock.wallNow()),
        algorithms: ['RS256'],
        requiredClaims: ['iss', 'sub', 'aud', 'exp', 'iat', 'jti'],
      });
      expect(parameters.grant_type).toBe(JWT_BEARER);
      check({ header, payload, parameters });
      seen.push({ header, payload, parameters });
      response.writeHead(200).end('{"access_token":"t0ken","expires_in":3600}');
    } catch (error) {
      response.writeHead(400).end(JSON.stringify({ error: 'invalid_grant', error_description: String(error) }));
    }
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  certificates[Symbol.dispose]();
  rmSync(folder, { recursive: true });
});

function ask(
  grant: Partial<NonNullable<TokenEndpointOptions['assertionGrant']>>,
  options: Partial<TokenEndpointOptions> = {},
) {
  return askOnce(
    buildEndpoint(new URL('/token', server.url), {
      ...{ grantType: JWT_BEARER, audience: [], method: { name: 'none' }, clock },
      assertionGrant: {
        ...{ keyFile, keyId: undefined, algorithm: undefined, certificateFile: undefined },
        ...{ audience: 'token_endpoint', claims: {}, ...grant },
      },
      ...options,
    }),
  );
}

/** Seconds from now on. */
const lifetime = ({ exp = 0 }: JWTPayload): number => exp - Math.floor(clock.wallNow() / 1000);

const PRODUCTS: Readonly<
  Record<string, [Parameters<typeof ask>[0], Parameters<typeof ask>[1], (assertion: Assertion) => void]>
> = {
  'Google: the scope is a claim, and sub the user of a delegation': [
    {
      audience: 'https://oauth2.googleapis.com/token',
      keyId: 'key-1',
      claims: { sub: 'ann@example.com', scope: 'https://www.googleapis.com/auth/drive' },
    },
    {},
    ({ header, payload, parameters }) => {
      expect(header).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'key-1' });
      expect(payload).toMatchObject({ iss: 'client-1', sub: 'ann@example.com', scope: expect.any(String) as string });
      expect(payload.aud).toBe('https://oauth2.googleapis.com/token');
      expect(Object.keys(parameters).toSorted()).toEqual(['assertion', 'grant_type']);
      expect(lifetime(payload)).toBeLessThanOrEqual(3600);
    },
  ],
  'Salesforce: no client authentication, the user as sub': [
    { audience: 'https://login.salesforce.com', claims: { sub: 'api@partner.example' } },
    {},
    ({ payload, parameters }) => {
      expect(payload).toMatchObject({ iss: 'client-1', sub: 'api@partner.example' });
      expect(payload.aud).toBe('https://login.salesforce.com');
      expect(parameters).not.toHaveProperty('client_id');
      expect(lifetime(payload)).toBeLessThanOrEqual(180);
    },
  ],
  'Box: id and secret besides, the enterprise as sub, at most 60 s': [
    { keyId: 'box-key', claims: { sub: '123456', box_sub_type: 'enterprise' } },
    { method: secret },
    ({ header, payload, parameters }) => {
      expect(header.kid).toBe('box-key');
      expect(payload).toMatchObject({ iss: 'client-1', sub: '123456', box_sub_type: 'enterprise' });
      expect(payload.aud).toBe(new URL('/token', server.url).href);
      expect(payload.jti?.length).toBeGreaterThanOrEqual(16);
      expect(parameters).toMatchObject({ client_id: 'client-1', client_secret: 'sesame-of-box' });
      expect(lifetime(payload)).toBeLessThanOrEqual(60);
    },
  ],
  'DocuSign: a host as the audience, scope among the claims': [
    { audience: 'account-d.docusign.com', claims: { sub: 'user-guid', scope: 'signature impersonation' } },
    {},
    ({ payload }) => {
      expect(payload).toMatchObject({ aud: 'account-d.docusign.com', scope: 'signature impersonation' });
    },
  ],
  'the client id as sub, scope as a parameter': [
    {},
    { scope: 'a b' },
    ({ payload, parameters }) => {
      expect(payload).toMatchObject({ iss: 'client-1', sub: 'client-1' });
      expect(parameters.scope).toBe('a b');
    },
  ],
};

test.each(Object.entries(PRODUCTS))('%s', async (_, [grant, options, verify]) => {
  check = verify;
  expect(await ask(grant, options)).toMatchObject({ kind: 'ok', value: 't0ken' });
});

test('each request has an assertion of its own, with times of its own', async () => {
  check = () => undefined;
  seen.length = 0;
  await ask({});
  await clock.advance(5_000);
  await ask({});
  const [first, second] = seen.map(({ payload }) => payload);
  expect(first?.jti).not.toBe(second?.jti);
  expect((second?.exp ?? 0) - (first?.exp ?? 0)).toBe(5);
});

test('private_key_jwt and the grant together send two assertions with one key', async () => {
  check = () => undefined;
  const signing = { keyFile, keyId: undefined, algorithm: undefined, certificateFile: undefined, audience: 'issuer' };
  expect(await ask({}, { method: { name: 'private_key_jwt', ...signing } })).toMatchObject({ kind: 'ok' });
  const parameters = seen.at(-1)?.parameters ?? {};
  expect(parameters.client_assertion).not.toBe(parameters.assertion);
  await compactVerify(String(parameters.client_assertion), rsa.publicKey);
});

describe('the thumbprints of auth.certificateFile', () => {
  test('are in the head of the grant, next to the kid', async () => {
    const leaf = new X509Certificate(readFileSync(issued.certificateFile));
    await using recorder = await startRecordingUpstream((_request, response) => {
      response.writeHead(200).end('{"access_token":"t0ken","expires_in":3600}');
    });
    const { keyFile: file, certificateFile } = issued;
    const grant = { keyFile: file, certificateFile, keyId: 'k', algorithm: undefined, audience: 'a', claims: {} };
    const url = new URL(recorder.url);
    await askOnce(
      buildEndpoint(url, { grantType: JWT_BEARER, method: { name: 'none' }, assertionGrant: grant, clock }),
    );
    const assertion = new URLSearchParams(recorder.requests[0]?.body.toString()).get('assertion') ?? '';
    const { protectedHeader } = await jwtVerify(assertion, leaf.publicKey, { currentDate: new Date(clock.wallNow()) });
    expect(protectedHeader).toEqual({
      alg: 'ES256',
      typ: 'JWT',
      kid: 'k',
      x5t: createHash('sha1').update(leaf.raw).digest('base64url'),
      'x5t#S256': createHash('sha256').update(leaf.raw).digest('base64url'),
    });
  });
});
