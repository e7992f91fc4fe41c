/** What each method of client authentication reads, sends and redacts. */
import { createHash, createPublicKey, generateKeyPairSync, verify, X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { canCredentialChange, readClientCredential } from '../../../src/token/client/client-authentication.ts';
import type {
  ClientCredential,
  ClientAuthMethod,
  ClientAuthOptions,
  ClientAuthentication,
} from '../../../src/token/client/client-authentication.ts';
import type { AssertionTarget } from '../../../src/token/client/signed-assertion.ts';
import { makeCertificates } from '../../support/certificates.ts';
import type { Certificates } from '../../support/certificates.ts';

const folder = mkdtempSync(join(tmpdir(), 'client-authentication-'));
let certificates: Certificates;
beforeAll(() => {
  certificates = makeCertificates();
});
afterAll(() => {
  certificates[Symbol.dispose]();
  rmSync(folder, { recursive: true });
});

const SECRET = 'pä:ß%2B+/= ';
const secret = { kind: 'value', value: SECRET } as const;
const recipient = {
  tokenUrl: new URL('https://login.test/oauth/token'),
  issuer: undefined,
  wallNow: Date.UTC(2026, 10, 1),
};

function clientOf(method: ClientAuthMethod, more: Partial<ClientAuthOptions> = {}): ClientAuthOptions {
  return {
    clientId: { kind: 'value', value: 'client-1' },
    method,
    clientCertificate: undefined,
    assertionGrant: undefined,
    extraParameters: {},
    extraHeaders: {},
    ...more,
  };
}

interface ReadCredential extends Omit<ClientCredential, 'authenticate'> {
  readonly authenticate: (target: AssertionTarget) => Promise<ClientAuthentication>;
}

async function read(options: ClientAuthOptions): Promise<ReadCredential> {
  const reading = await readClientCredential(options);
  if (reading.kind === 'unreadable') throw new Error(reading.detail);
  const authenticate = async (target: AssertionTarget): Promise<ClientAuthentication> => {
    const authentication = await reading.authenticate(target);
    if (authentication.kind === 'unreadable') throw new Error(authentication.detail);
    return authentication;
  };
  return { ...reading, authenticate };
}

function write(name: string, contents: string): string {
  const path = join(folder, name);
  writeFileSync(path, contents);
  return path;
}

const pem = (key: KeyObject): string => key.export({ format: 'pem', type: 'pkcs8' });

describe('a secret', () => {
  test.each([
    ['raw', `client-1:${SECRET}`],
    ['form', 'client-1:p%C3%A4%3A%C3%9F%252B%2B%2F%3D+'],
  ] as const)('in Basic, %s', async (encoding, joined) => {
    const { authenticate } = await read(clientOf({ name: 'client_secret_basic', secret, encoding }));
    const basic = Buffer.from(joined).toString('base64');
    const proof = await authenticate(recipient);
    expect(proof).toMatchObject({ authorization: `Basic ${basic}`, parameters: [] });
    expect(proof.valuesToRedact).toEqual(expect.arrayContaining([SECRET, basic]));
  });

  test('client_secret_post is sent in the form, not in the header', async () => {
    const credential = await read(clientOf({ name: 'client_secret_post', secret }));
    expect(await credential.authenticate(recipient)).toEqual({
      kind: 'authenticated',
      authorization: undefined,
      parameters: [
        ['client_id', 'client-1'],
        ['client_secret', SECRET],
      ],
      valuesToRedact: [SECRET, 'p%C3%A4%3A%C3%9F%252B%2B%2F%3D+'],
    });
    expect(credential.keyMaterial).toBe(SECRET);
  });

  test('cannot be joined to an id with a colon', async () => {
    const clientId = { kind: 'value', value: 'https://client.test' } as const;
    const basic = (encoding: 'raw' | 'form') =>
      clientOf({ name: 'client_secret_basic', secret, encoding }, { clientId });
    expect(await readClientCredential(basic('raw'))).toMatchObject({
      kind: 'unreadable',
      detail: expect.stringContaining('colon') as unknown,
    });
    expect(await readClientCredential(basic('form'))).toMatchObject({ kind: 'ready', clientId: 'https://client.test' });
  });
});

describe('an assertion', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const ed25519 = generateKeyPairSync('ed25519').privateKey;
  const keyFile = (key: KeyObject): string => write('key.pem', pem(key));
  const method = (file: string, more: Partial<Extract<ClientAuthMethod, { name: 'private_key_jwt' }>> = {}) =>
    ({
      name: 'private_key_jwt',
      keyFile: file,
      keyId: undefined,
      algorithm: undefined,
      certificateFile: undefined,
      audience: 'token_endpoint',
      ...more,
    }) as const;

  interface Decoded {
    readonly header: Readonly<Record<string, unknown>>;
    readonly claims: Readonly<Record<string, unknown>>;
    readonly signed: Buffer;
    readonly signature: Buffer;
  }

  function decode({ parameters }: ClientAuthentication): Decoded {
    const assertion = new Map(parameters).get('client_assertion') ?? '';
    const [header = '', claims = '', signature = ''] = assertion.split('.');
    const json = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>;
    return {
      header: json(header),
      claims: json(claims),
      signed: Buffer.from(`${header}.${claims}`),
      signature: Buffer.from(signature, 'base64url'),
    };
  }

  test('names client and endpoint, lives for less than a minute, and is signed', async () => {
    const { authenticate } = await read(clientOf(method(keyFile(p256), { keyId: 'k1' })));
    const proof = await authenticate(recipient);
    const { header, claims, signed, signature } = decode(proof);
    expect(proof.parameters.slice(0, 2)).toEqual([
      ['client_id', 'client-1'],
      ['client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'],
    ]);
    expect(header).toEqual({ alg: 'ES256', typ: 'JWT', kid: 'k1' });
    const nowS = recipient.wallNow / 1000;
    expect(claims).toEqual({
      iss: 'client-1',
      sub: 'client-1',
      aud: 'https://login.test/oauth/token',
      jti: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
      iat: nowS - 10,
      nbf: nowS - 10,
      exp: nowS + 50,
    });
    const key = createPublicKey(p256);
    expect(verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, signature)).toBe(true);
    expect(proof.valuesToRedact).toEqual([new Map(proof.parameters).get('client_assertion')]);
  });

  test.each([
    ['RS256', rsa, 'sha256', {}],
    ['PS256', rsa, 'sha256', { padding: 6, saltLength: 32 }],
    ['RS512', rsa, 'sha512', {}],
    ['EdDSA', ed25519, undefined, {}],
  ] as const)('is signed with %s', async (algorithm, key, hash, padding) => {
    const { authenticate, algorithm: used } = await read(clientOf(method(keyFile(key), { algorithm })));
    const { header, signed, signature } = decode(await authenticate(recipient));
    expect([header.alg, used]).toEqual([algorithm, algorithm]);
    expect(verify(hash, signed, { key: createPublicKey(key), ...padding }, signature)).toBe(true);
  });

  test('is never used twice', async () => {
    const { authenticate } = await read(clientOf(method(keyFile(p256))));
    const ids = await Promise.all(
      [authenticate(recipient), authenticate(recipient)].map(async (proof) => decode(await proof).claims.jti),
    );
    expect(new Set(ids).size).toBe(2);
  });

  test('has the issuer as its audience if that is set and known', async () => {
    const { authenticate } = await read(clientOf(method(keyFile(p256), { audience: 'issuer' })));
    const { claims } = decode(await authenticate({ ...recipient, issuer: 'https://login.test/tenant' }));
    expect(claims.aud).toBe('https://login.test/tenant');
  });

  test('has the kid of the JWK unless another one is set', async () => {
    const file = write('key.jwk', JSON.stringify({ ...p256.export({ format: 'jwk' }), kid: 'of-the-jwk' }));
    const kid = async (keyId: string | undefined) =>
      decode(await (await read(clientOf(method(file, { keyId })))).authenticate(recipient)).header.kid;
    expect([await kid(undefined), await kid('mine')]).toEqual(['of-the-jwk', 'mine']);
  });

  test('has the same key material for every encoding of the key', async () => {
    const asPem = await read(clientOf(method(write('same.pem', pem(p256)))));
    const asJwk = await read(clientOf(method(write('same.jwk', JSON.stringify(p256.export({ format: 'jwk' }))))));
    expect([asJwk.keyMaterial, asJwk.version]).toEqual([asPem.keyMaterial, asPem.version]);
  });

  test('names the thumbprints of the certificate, which must be that of the key', async () => {
    const { certificateFile, keyFile: file } = certificates.issue('a');
    const options = clientOf(method(file, { certificateFile, audience: 'urn:any text' }));
    const { header, claims } = decode(await (await read(options)).authenticate(recipient));
    const { raw } = new X509Certificate(readFileSync(certificateFile));
    expect(header).toMatchObject({
      x5t: createHash('sha1').update(raw).digest('base64url'),
      'x5t#S256': createHash('sha256').update(raw).digest('base64url'),
    });
    expect(claims.aud).toBe('urn:any text');
    const before = (await read(options)).version;
    copyFileSync(certificates.issue('b').certificateFile, certificateFile);
    expect(await readClientCredential(options)).toEqual({
      kind: 'unreadable',
      detail: `auth.certificateFile: the file ${certificateFile} holds the certificate of another key; expected that of the key in auth.privateKeyFile`,
    });
    const next = certificates.issue('c');
    copyFileSync(next.certificateFile, certificateFile);
    copyFileSync(next.keyFile, file);
    expect((await read(options)).version).not.toBe(before);
  });

  test('cannot be created from a file without a key', async () => {
    const reading = await readClientCredential(clientOf(method(write('none.pem', 'sesame'))));
    expect(reading).toEqual({
      kind: 'unreadable',
      detail: `auth.privateKeyFile: the file ${join(folder, 'none.pem')} holds no private key in PEM or JWK`,
    });
  });
});

describe('a certificate', () => {
  test('sends only the client id in the form', async () => {
    const credential = await read(
      clientOf({ name: 'tls_client_auth' }, { clientCertificate: certificates.issue('a') }),
    );
    expect(await credential.authenticate(recipient)).toEqual({
      kind: 'authenticated',
      authorization: undefined,
      parameters: [['client_id', 'client-1']],
      valuesToRedact: [],
    });
    expect(credential.hasCertificate).toBe(true);
    expect(credential.keyMaterial).toMatch(/./);
  });

  test('is required by tls_client_auth', async () => {
    expect(await readClientCredential(clientOf({ name: 'tls_client_auth' }))).toMatchObject({ kind: 'unreadable' });
  });

  test('that does not belong to its key is unreadable', async () => {
    const { certificateFile } = certificates.issue('a');
    const { keyFile } = certificates.issue('b');
    expect(
      await readClientCredential(
        clientOf({ name: 'tls_client_auth' }, { clientCertificate: { certificateFile, keyFile } }),
      ),
    ).toEqual({
      kind: 'unreadable',
      detail: expect.stringMatching(
        /^auth\.tlsCertificateFile: .* the key does not belong to the certificate/,
      ) as unknown,
    });
  });
});

describe('extra parameters and header fields', () => {
  const none = { name: 'none' } as const;

  test('are read with the credential, and change its version', async () => {
    const path = write('extra', 'first\n');
    for (const key of ['extraParameters', 'extraHeaders'] as const) {
      const options = clientOf(none, { [key]: { a: { kind: 'file', path }, b: { kind: 'value', value: 'true' } } });
      expect(canCredentialChange(options)).toBe(true);
      const before = await read(options);
      expect(before[key]).toEqual({ a: 'first', b: 'true' });
      expect(before.sentSecrets).toEqual(['first']);
      writeFileSync(path, 'second');
      const after = await read(options);
      expect(after[key]).toEqual({ a: 'second', b: 'true' });
      expect(after.version).not.toBe(before.version);
      writeFileSync(path, 'first\n');
    }
  });

  test.each([
    ['extraParameters', '', /^auth\.extraParameters\.a: the file .* is empty$/],
    ['extraHeaders', 'two\nlines', /^auth\.extraHeaders\.a: the file .* holds what no header field can carry$/],
  ])('%s that cannot be used are unreadable', async (key, contents, detail) => {
    const options = clientOf(none, { [key]: { a: { kind: 'file', path: write('extra', contents) } } });
    expect(await readClientCredential(options)).toEqual({
      kind: 'unreadable',
      detail: expect.stringMatching(detail) as unknown,
    });
  });
});

describe('key material', () => {
  const signing = { keyId: undefined, algorithm: undefined, certificateFile: undefined, audience: 'a', claims: {} };

  test('of a client without a secret is that of the grant or of the certificate, and else there is none', async () => {
    const { certificateFile, keyFile } = certificates.issue('a');
    const of = async (more?: Partial<ClientAuthOptions>) => (await read(clientOf({ name: 'none' }, more))).keyMaterial;
    expect(await of()).toBeUndefined();
    const ofGrant = await of({ assertionGrant: { keyFile, ...signing } });
    expect(ofGrant).toBeDefined();
    expect(await of({ clientCertificate: { certificateFile, keyFile } })).toBe(ofGrant);
  });
});

describe('a version', () => {
  test('changes with a secret, a key or a certificate', async () => {
    const path = write('secret', 'first');
    const certificate = certificates.issue('a');
    const options = clientOf(
      { name: 'client_secret_post', secret: { kind: 'file', path } },
      { clientCertificate: certificate },
    );
    const versions = [(await read(options)).version, (await read(options)).version];
    writeFileSync(path, 'second');
    versions.push((await read(options)).version);
    const next = certificates.issue('a');
    copyFileSync(next.certificateFile, certificate.certificateFile);
    expect(await readClientCredential(options)).toMatchObject({ kind: 'unreadable' });
    copyFileSync(next.keyFile, certificate.keyFile);
    versions.push((await read(options)).version);
    expect(new Set(versions).size).toBe(3);
    expect(versions[0]).toBe(versions[1]);
  });

  test('cannot change without files', () => {
    const basic = { name: 'client_secret_basic', secret, encoding: 'raw' } as const;
    expect(canCredentialChange(clientOf(basic))).toBe(false);
    expect(canCredentialChange(clientOf({ ...basic, secret: { kind: 'file', path: '/s' } }))).toBe(true);
    const file = { path: '/a', audience: 'https://auth.test/' };
    expect(canCredentialChange(clientOf({ name: 'client_assertion', file }))).toBe(true);
    expect(canCredentialChange(clientOf(basic, { clientId: { kind: 'file', path: '/i' } }))).toBe(true);
    expect(canCredentialChange(clientOf(basic, { clientCertificate: { certificateFile: '/c', keyFile: '/k' } }))).toBe(
      true,
    );
  });
});
