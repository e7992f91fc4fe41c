/**
 * An issuer of assertions such as a Kubernetes API server or a workload identity platform: JWTs with the claims of a projected
 * service-account token, really signed, each registered as a secret.
 */
import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { registerSecret } from './secrets.ts';

export const ASSERTION_AUDIENCE = 'api://AzureADTokenExchange';
export const ASSERTION_SUBJECT = 'system:serviceaccount:sales:legacy-app';

export type Claims = Readonly<Record<string, unknown>>;

export interface AssertionIssuer {
  readonly issuer: string;
  readonly keyId: string;
  readonly publicKey: KeyObject;
  /**
   * A new assertion with a `jti` of its own, valid for an hour.
   * @param claims replaced ones; undefined = left out
   */
  readonly issue: (claims?: Claims, header?: Claims) => string;
}

/** @param wallNow epoch milliseconds. Default: now */
export function createAssertionIssuer(
  issuer = 'https://oidc.cluster.example',
  wallNow: () => number = Date.now,
): AssertionIssuer {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const keyId = randomUUID();
  const encode = (part: Claims): string => Buffer.from(JSON.stringify(part)).toString('base64url');
  return {
    issuer,
    keyId,
    publicKey,
    issue: (claims = {}, header = {}) => {
      const now = Math.floor(wallNow() / 1000);
      const standard = {
        iss: issuer,
        sub: ASSERTION_SUBJECT,
        aud: [ASSERTION_AUDIENCE],
        iat: now,
        nbf: now,
        exp: now + 3600,
        jti: randomUUID(),
      };
      const signed = `${encode({ alg: 'ES256', kid: keyId, ...header })}.${encode({ ...standard, ...claims })}`;
      const key = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const;
      const assertion = `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`;
      registerSecret('an assertion', assertion);
      return assertion;
    },
  };
}
