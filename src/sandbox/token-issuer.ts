/** Issues and verifies access tokens: JWTs (RFC 9068, ES256) with a key pair created at start. Nothing is kept per token. */
import { generateKeyPairSync, sign, verify } from 'node:crypto';
import type { Clock } from '../platform/clock.ts';

export const LIFETIME_S = 3600;

/** The `iss` of every token: a name that is never a real host (RFC 2606). */
export const ISSUER = 'https://authorization.sandbox.invalid/';

const KEY_ID = 'sandbox';
const HEADER = encode({ alg: 'ES256', typ: 'at+jwt', kid: KEY_ID });

type TokenGrant = Readonly<Record<'clientId' | 'audience' | 'scope' | 'role', string>>;

export type TokenClaims = ReturnType<typeof createClaims>;

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

  issue(grant: TokenGrant): string {
    this.#issued += 1;
    const signed = `${HEADER}.${encode(createClaims(grant, this.#clock.wallNow() / 1000, this.#issued))}`;
    const signature = sign('sha256', Buffer.from(signed), { key: this.#keys.privateKey, dsaEncoding: 'ieee-p1363' });
    return `${signed}.${signature.toString('base64url')}`;
  }

  /** @returns the claims, or what is wrong with the token, in words */
  verify(token: string): TokenClaims | string {
    const [header, payload, signature, ...rest] = token.split('.');
    // The header is compared only: a token must not choose its own verification (RFC 8725 §3.1).
    if (header !== HEADER || payload === undefined || signature === undefined || rest.length > 0)
      return 'The access token is malformed.';
    const key = { key: this.#keys.publicKey, dsaEncoding: 'ieee-p1363' } as const;
    if (!verify('sha256', Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url')))
      return 'The signature of the access token is wrong.';
    // The valid signature shows that `issue` wrote this.
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as TokenClaims;
    return this.#clock.wallNow() < claims.exp * 1000 ? claims : 'The access token has expired.';
  }
}

/** The claims of a token (RFC 9068 §2.2). Instants are epoch seconds with fractions, as RFC 7519 §2 allows. */
function createClaims({ clientId, audience, scope, role }: TokenGrant, at: number, count: number) {
  return {
    iss: ISSUER,
    sub: clientId,
    client_id: clientId,
    aud: audience,
    scope,
    roles: [role],
    iat: at,
    exp: at + LIFETIME_S,
    jti: count.toString(),
  };
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
