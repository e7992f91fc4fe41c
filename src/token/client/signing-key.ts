/** Parses the private key that signs assertions (RFC 7523): PEM, or one JWK (RFC 7517). */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { tryRead } from '../../platform/try-read.ts';

const RSA_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const;
const CURVE_ALGORITHMS = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' } as const;

/** JWS algorithms (RFC 7518 §3.1, RFC 8037 §3.1) for assertions. */
export type SigningAlgorithm = (typeof RSA_ALGORITHMS)[number] | 'ES256' | 'ES384' | 'ES512' | 'EdDSA';

export interface SigningKey {
  readonly key: KeyObject;
  readonly algorithm: SigningAlgorithm;
  readonly keyId: string | undefined;
}

/** RFC 7518 §3.3; servers and jose reject shorter keys. */
const MIN_RSA_BITS = 2048;

/**
 * The key, or a fault, which follows the name of the file and shows nothing of its contents. Never throws.
 * @param requested undefined = the JWK's own algorithm, else the usual one for the kind of key
 */
export function parseSigningKey(text: string, requested: SigningAlgorithm | undefined): SigningKey | string {
  const trimmed = text.trim();
  const source = trimmed.startsWith('{') ? parseJwk(trimmed) : parsePem(trimmed);
  if (typeof source === 'string') return source;
  const possible = listAlgorithms(source.key);
  if (typeof possible === 'string') return possible;
  const wanted = requested ?? source.algorithm;
  const algorithm = wanted === undefined ? possible[0] : possible.find((name) => name === wanted);
  if (algorithm === undefined)
    return `holds a key for ${possible.join(', ')}, which cannot sign ${sanitizeAlgorithm(wanted)}`;
  return { key: source.key, algorithm, keyId: source.keyId };
}

interface ParsedKey {
  readonly key: KeyObject;
  readonly algorithm?: string | undefined;
  readonly keyId?: string | undefined;
}

function parsePem(text: string): ParsedKey | string {
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(text))
    return 'holds an encrypted key; expected one without a passphrase';
  const key = tryRead(() => createPrivateKey(text));
  if (key !== undefined) return { key };
  return tryRead(() => createPublicKey(text)) === undefined
    ? 'holds no private key in PEM or JWK'
    : 'holds a public key or a certificate; expected the private key';
}

function parseJwk(text: string): ParsedKey | string {
  const jwk = tryRead(() => JSON.parse(text) as Readonly<Record<string, unknown>>);
  if (jwk === undefined) return 'begins like a JWK and is not JSON';
  if (Array.isArray(jwk.keys)) return 'holds a set of keys; expected one JWK';
  if (jwk.kty === 'oct') return 'holds a symmetric key; expected a private one';
  if (typeof jwk.d !== 'string')
    return 'holds JSON that is no private JWK (no "d"); of a Google key file use the text of "private_key" alone, as PEM';
  const key = tryRead(() => createPrivateKey({ key: jwk, format: 'jwk' }));
  if (key === undefined) return 'holds a JWK that is no usable private key';
  const algorithm = typeof jwk.alg === 'string' ? jwk.alg : undefined;
  return { key, algorithm, keyId: typeof jwk.kid === 'string' && jwk.kid !== '' ? jwk.kid : undefined };
}

/** The first is the usual one; a fault when there is none. */
function listAlgorithms(key: KeyObject): readonly [SigningAlgorithm, ...SigningAlgorithm[]] | string {
  const { modulusLength = 0, namedCurve = '' } = key.asymmetricKeyDetails ?? {};
  switch (key.asymmetricKeyType) {
    case 'rsa':
      if (modulusLength >= MIN_RSA_BITS) return RSA_ALGORITHMS;
      return `holds an RSA key of ${modulusLength} bits; expected ${MIN_RSA_BITS} or more`;
    case 'ec':
      if (namedCurve in CURVE_ALGORITHMS) return [CURVE_ALGORITHMS[namedCurve as keyof typeof CURVE_ALGORITHMS]];
      return `holds an EC key of the curve ${namedCurve}; expected P-256, P-384 or P-521`;
    case 'ed25519':
      return ['EdDSA'];
    default:
      return `holds a key of the kind ${key.asymmetricKeyType ?? 'unknown'}; expected RSA, EC or Ed25519`;
  }
}

function sanitizeAlgorithm(algorithm: string | undefined): string {
  return (algorithm ?? '').replace(/[^\w-]/g, '').slice(0, 20);
}
