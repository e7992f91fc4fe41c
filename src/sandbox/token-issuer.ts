/** Issues and verifies access tokens: JWTs (RFC 9068, ES256) with a key pair created at start. Nothing is kept per token. */
import { generateKeyPairSync, sign, verify } from 'node:crypto';
import type { Clock } from '../platform/clock.ts';

/** The claims of a token (RFC 9068 §2.2). Instants are epoch seconds with fractions, as RFC 7519 §2 allows. */
export interface TokenClaims {
  readonly iss: string;
  readonly sub: string;
  readonly client_id: string;
  readonly aud: string;
  readonly scope: string;
  readonly roles: readonly string[];
  readonly iat: number;
  readonly exp: number;
  readonly jti: string;
}

export type TokenVerification =
  | { readonly kind: 'valid'; readonly claims: TokenClaims }
  | { readonly kind: 'invalid'; readonly reason: 'malformed' | 'signature' | 'expired' };

export const LIFETIME_S = 3600;

/** The `iss` of every token: a name that is never a real host (RFC 2606). */
export const ISSUER = 'https://authorization.sandbox.invalid/';

const KEY_ID = 'sandbox';
const HEADER = encode({ alg: 'ES256', typ: 'at+jwt', kid: KEY_ID });

export class TokenIssuer {
  readonly #clock: Clock;
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  #issued = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get publicJwk(): Readonly<Record<string, unknown>> {
    return { ...this.#keys.publicKey.export({ format: 'jwk' }), kid: KEY_ID, alg: 'ES256', use: 'sig' };
  }

  issue(grant: {
    readonly clientId: string;
    readonly audience: string;
    readonly scope: string;
    readonly role: string;
  }): string {
    this.#issued += 1;
    const wallMs = this.#clock.wallNow();
    const claims: TokenClaims = {
      iss: ISSUER,
      sub: grant.clientId,
      client_id: grant.clientId,
      aud: grant.audience,
      scope: grant.scope,
      roles: [grant.role],
      iat: wallMs / 1000,
      exp: wallMs / 1000 + LIFETIME_S,
      jti: this.#issued.toString(),
    };
    const signed = `${HEADER}.${encode(claims)}`;
    const signature = sign('sha256', Buffer.from(signed), { key: this.#keys.privateKey, dsaEncoding: 'ieee-p1363' });
    return `${signed}.${signature.toString('base64url')}`;
  }

  verify(token: string): TokenVerification {
    const [header, payload, signature, ...rest] = token.split('.');
    // The header is compared only: a token must not choose its own verification (RFC 8725 §3.1).
    if (header !== HEADER || payload === undefined || signature === undefined || rest.length > 0)
      return { kind: 'invalid', reason: 'malformed' };
    const key = { key: this.#keys.publicKey, dsaEncoding: 'ieee-p1363' } as const;
    if (!verify('sha256', Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url')))
      return { kind: 'invalid', reason: 'signature' };
    // The valid signature shows that `issue` wrote this.
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as TokenClaims;
    if (this.#clock.wallNow() >= claims.exp * 1000) return { kind: 'invalid', reason: 'expired' };
    return { kind: 'valid', claims };
  }
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
