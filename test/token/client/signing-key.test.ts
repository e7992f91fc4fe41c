/** Private keys for client assertions: accepted encodings, and the faults of others. */
import { generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { parseSigningKey } from '../../../src/token/client/signing-key.ts';
import type { SigningAlgorithm } from '../../../src/token/client/signing-key.ts';

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve });
const p256 = ec('P-256');
const ed25519 = generateKeyPairSync('ed25519');

const pem = (key: KeyObject, type: 'pkcs8' | 'pkcs1' | 'sec1' = 'pkcs8'): string =>
  key.export({ format: 'pem', type } as { format: 'pem'; type: 'pkcs8' });
const jwk = (key: KeyObject, more: object = {}): string =>
  JSON.stringify({ ...key.export({ format: 'jwk' }), ...more });

describe('a key is read, with its usual algorithm', () => {
  test.each<[string, string, SigningAlgorithm]>([
    ['RSA, PKCS #8', pem(rsa.privateKey), 'RS256'],
    ['RSA, PKCS #1', pem(rsa.privateKey, 'pkcs1'), 'RS256'],
    ['P-256, PKCS #8', pem(p256.privateKey), 'ES256'],
    ['P-256, SEC 1', pem(p256.privateKey, 'sec1'), 'ES256'],
    ['P-384', pem(ec('P-384').privateKey), 'ES384'],
    ['P-521', pem(ec('P-521').privateKey), 'ES512'],
    ['Ed25519', pem(ed25519.privateKey), 'EdDSA'],
    ['an RSA JWK', jwk(rsa.privateKey), 'RS256'],
    ['an RSA JWK for PS256', jwk(rsa.privateKey, { alg: 'PS256' }), 'PS256'],
    ['an EC JWK', jwk(p256.privateKey), 'ES256'],
    ['an Ed25519 JWK', `\n ${jwk(ed25519.privateKey)}\n`, 'EdDSA'],
    ['PEM behind a remark', `# of legacy-app\n${pem(p256.privateKey)}`, 'ES256'],
  ])('%s', (_, text, algorithm) => {
    expect(parseSigningKey(text, undefined)).toMatchObject({ algorithm, keyId: undefined });
  });

  test('the configured algorithm overrides that of the JWK, and the kid is kept', () => {
    const text = jwk(rsa.privateKey, { alg: 'PS256', kid: 'k1' });
    expect(parseSigningKey(text, 'RS512')).toMatchObject({ algorithm: 'RS512', keyId: 'k1' });
  });
});

describe('a key that cannot sign is refused, without its contents', () => {
  const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;
  const encrypted = p256.privateKey.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' });
  test.each<[string, string, SigningAlgorithm | undefined, string]>([
    ['nothing', '', undefined, 'holds no private key in PEM or JWK'],
    ['another text', 'sesame', undefined, 'holds no private key in PEM or JWK'],
    [
      'a broken PEM',
      '-----BEGIN PRIVATE KEY-----\nsesame\n-----END PRIVATE KEY-----',
      undefined,
      'holds no private key',
    ],
    ['an encrypted key', encrypted, undefined, 'holds an encrypted key; expected one without a passphrase'],
    [
      'a public key',
      p256.publicKey.export({ format: 'pem', type: 'spki' }),
      undefined,
      'holds a public key or a certificate; expected the private key',
    ],
    [
      'a public JWK',
      jwk(p256.publicKey),
      undefined,
      'holds JSON that is no private JWK (no "d"); of a Google key file use the text of "private_key" alone, as PEM',
    ],
    ['a symmetric JWK', '{"kty":"oct","k":"c2VzYW1l"}', undefined, 'holds a symmetric key; expected a private one'],
    ['a set', `{"keys":[${jwk(p256.privateKey)}]}`, undefined, 'holds a set of keys; expected one JWK'],
    ['no JSON', '{"kty":"EC", sesame', undefined, 'begins like a JWK and is not JSON'],
    ['a broken JWK', '{"kty":"EC","crv":"P-256","d":"sesame"}', undefined, 'holds a JWK that is no usable private key'],
    ['a short RSA key', pem(small), undefined, 'holds an RSA key of 1024 bits; expected 2048 or more'],
    [
      'an unusual curve',
      pem(ec('secp256k1').privateKey),
      undefined,
      'holds an EC key of the curve secp256k1; expected P-256, P-384 or P-521',
    ],
    [
      'a key for agreement',
      pem(generateKeyPairSync('x25519').privateKey),
      undefined,
      'holds a key of the kind x25519; expected RSA, EC or Ed25519',
    ],
    ['another kind', pem(p256.privateKey), 'RS256', 'holds a key for ES256, which cannot sign RS256'],
    ['another curve', pem(p256.privateKey), 'ES384', 'holds a key for ES256, which cannot sign ES384'],
    ['a JWK for encryption', jwk(p256.privateKey, { alg: 'ECDH-ES' }), undefined, 'which cannot sign ECDH-ES'],
  ])('%s', (_, text, requested, fault) => {
    const reading = parseSigningKey(text, requested);
    expect(reading).toEqual(expect.stringContaining(fault));
    expect(reading).not.toContain('sesame');
  });
});
