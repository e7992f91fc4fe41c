/**
 * A client assertion (RFC 7523 §3): a short-lived statement of the client, signed with its private key, for one request to one
 * server. jose writes and signs it.
 */
import { randomUUID } from 'node:crypto';
import type { SigningKey } from './signing-key.ts';

export interface ClientAssertionOptions {
  readonly clientId: string;
  /** Who may take it. */
  readonly audience: string;
  readonly key: SigningKey;
  /** Epoch milliseconds. */
  readonly wallNow: number;
}

/** A server whose clock is behind would take a statement of this very second for one of the future. */
const BACKDATED_S = 10;
/** Some servers take nothing that lives longer than a minute. */
const LIFETIME_S = 60;

/** The assertion in compact form. Rejects when the platform cannot sign with the key. */
export async function signAssertion({ clientId, audience, key, wallNow }: ClientAssertionOptions): Promise<string> {
  // Most clients have a secret and never need it.
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
