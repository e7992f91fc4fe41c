/** Signs assertions (RFC 7523): short-lived JWTs for one token request each, of the client (§2.2) or as the grant itself (§2.1). */
import { createHash, randomUUID, X509Certificate, type KeyObject } from 'node:crypto';
import type { JWTHeaderParameters, SignJWT } from 'jose';
import { tryRead } from '../../platform/try-read.ts';
import { LARGEST_PEM_BYTES, describeUnreadable, readTextFile } from './secret-file.ts';
import { parseSigningKey, type SigningAlgorithm } from './signing-key.ts';

export interface AssertionSigningOptions {
  /** PEM or one JWK. */
  readonly keyFile: string;
  /** `kid` of the assertion; undefined = that of the JWK, if it has one. */
  readonly keyId: string | undefined;
  /** Undefined = as the key says. */
  readonly algorithm: SigningAlgorithm | undefined;
  /** PEM certificate of the key, whose thumbprints the assertion names (`x5t`, `x5t#S256`); undefined = none. */
  readonly certificateFile: string | undefined;
  /** `aud` of the assertion: `token_endpoint` for its URL, `issuer` for the issuer if it is known, else the text itself. */
  readonly audience: string;
}

export interface AssertionTarget {
  readonly tokenUrl: URL;
  readonly issuer: string | undefined;
  /** Epoch milliseconds. */
  readonly wallNow: number;
}

type AssertionClaims = Readonly<Record<string, unknown>>;

/** A server whose clock is behind would reject a JWT issued now as one of the future. */
const BACKDATED_S = 10;
/** Some servers reject a longer lifetime. */
const LIFETIME_S = 60;

/** Reads the files of key and certificate, which must belong together. Never rejects. */
export async function readAssertionSigner(options: AssertionSigningOptions) {
  const { keyFile, certificateFile } = options;
  const [file, certificate] = await Promise.all([
    readTextFile('auth.privateKeyFile', keyFile, LARGEST_PEM_BYTES),
    certificateFile && readTextFile('auth.certificateFile', certificateFile, LARGEST_PEM_BYTES),
  ]);
  if (file.kind === 'unreadable') return file;
  const reading = parseSigningKey(file.value, options.algorithm);
  if (typeof reading === 'string') return describeUnreadable('auth.privateKeyFile', keyFile, reading);
  const { key, algorithm, keyId: ownKeyId } = reading;
  const { keyId = ownKeyId } = options;
  const header: JWTHeaderParameters = { alg: algorithm, typ: 'JWT', ...(keyId === undefined ? {} : { kid: keyId }) };
  if (certificateFile && certificate) {
    if (certificate.kind === 'unreadable') return certificate;
    const fault = findSigningCertificateFault(certificate.value, key);
    if (fault !== undefined) return describeUnreadable('auth.certificateFile', certificateFile, fault);
    Object.assign(header, computeThumbprints(certificate.value));
  }
  const keyMaterial = encodePrivateKey(key);
  return {
    kind: 'ready',
    algorithm,
    keyMaterial,
    /** Change with everything that was read. */
    versionParts: [keyMaterial, JSON.stringify(header)],
    /** A new JWT in compact form. Rejects when the platform cannot sign with the key. @param claims Default of `sub`: the client id */
    sign: async (clientId: string, target: AssertionTarget, claims?: AssertionClaims): Promise<string> => {
      const payload = await createPayload({ sub: clientId, ...claims }, target.wallNow);
      const audience = chooseAudience(options.audience, target);
      return payload.setProtectedHeader(header).setIssuer(clientId).setAudience(audience).sign(key);
    },
  } as const;
}

async function createPayload(claims: AssertionClaims, wallNow: number): Promise<SignJWT> {
  // Loaded on demand: most clients have a secret instead of a key.
  const { SignJWT } = await import('jose/jwt/sign');
  const issuedAt = Math.floor(wallNow / 1000) - BACKDATED_S;
  const payload = new SignJWT(claims).setJti(randomUUID()).setIssuedAt(issuedAt);
  return payload.setNotBefore(issuedAt).setExpirationTime(issuedAt + LIFETIME_S);
}

/** Why the first certificate of a PEM text cannot stand for a key, after the name of its file; undefined when it can. Never throws. */
export function findSigningCertificateFault(pem: string, key: KeyObject): string | undefined {
  const isOfKey = tryRead(() => new X509Certificate(pem).checkPrivateKey(key));
  if (isOfKey === undefined) return 'holds no PEM certificate';
  return isOfKey ? undefined : 'holds the certificate of another key; expected that of the key in auth.privateKeyFile';
}

/** RFC 7515 §4.1.7, §4.1.8: of the DER encoding, in base64url. */
function computeThumbprints(pem: string): Readonly<Record<'x5t' | 'x5t#S256', string>> {
  const { raw } = new X509Certificate(pem);
  const digest = (algorithm: string): string => createHash(algorithm).update(raw).digest('base64url');
  return { x5t: digest('sha1'), 'x5t#S256': digest('sha256') };
}

function chooseAudience(audience: string, { tokenUrl, issuer = tokenUrl.href }: AssertionTarget): string {
  if (audience === 'issuer') return issuer;
  return audience === 'token_endpoint' ? tokenUrl.href : audience;
}

/** Equal for every encoding of the same key. */
export function encodePrivateKey(key: KeyObject): string {
  return key.export({ format: 'der', type: 'pkcs8' }).toString('base64');
}
