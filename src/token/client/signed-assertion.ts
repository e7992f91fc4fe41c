/**
 * Creates a client assertion (RFC 7523 §3): a short-lived JWT, signed with the client's private key by jose, for one token
 * request.
 */
import { randomUUID } from 'node:crypto';
import type { SigningKey } from './signing-key.ts';

export interface ClientAssertionOptions {
  readonly clientId: string;
  readonly audience: string;
  readonly key: SigningKey;
  /** Epoch milliseconds. */
  readonly wallNow: number;
}

/** A server whose clock is behind would refuse a JWT issued now as one of the future. */
const BACKDATED_S = 10;
/** Some servers refuse a longer lifetime. */
const LIFETIME_S = 60;

/** The JWT in compact form. Rejects when the platform cannot sign with the key. */
export async function signAssertion({ clientId, audience, key, wallNow }: ClientAssertionOptions): Promise<string> {
  // Loaded on demand: most clients have a secret instead of a key.
  const { SignJWT } = await import('jose/jwt/sign');
  const issuedAt = Math.floor(wallNow / 1000) - BACKDATED_S;
  return new SignJWT()
    .setProtectedHeader({ alg: key.algorithm, typ: 'JWT', ...(key.keyId === undefined ? {} : { kid: key.keyId }) })
    .setIssuer(clientId)
    .setSubject(clientId)
    .setAudience(audience)
    .setJti(randomUUID())
    .setIssuedAt(issuedAt)
    .setNotBefore(issuedAt)
    .setExpirationTime(issuedAt + LIFETIME_S)
    .sign(key.key);
}
