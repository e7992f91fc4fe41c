/** Record names, token marks and sealed failures in the shared store. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { deriveTokenMark, deriveRecordName, openFailure, sealFailure } from '../../../src/token/store/shared-record.ts';
import { openToken, sealText, sealToken } from '../../../src/token/store/sealed-token.ts';
import type { TokenBinding, TokenIdentity } from '../../../src/token/store/sealed-token.ts';

const BINDING: TokenBinding = {
  tokenUrl: 'https://auth.test/oauth/token',
  clientId: 'client',
  method: 'client_secret_basic',
  requestedParameters: [['scope', 'a b']],
};
const IDENTITY: TokenIdentity = { binding: BINDING, keyMaterial: 'secret-of-the-tests' };

const binding = fc.record({
  tokenUrl: fc.string(),
  clientId: fc.string(),
  method: fc.string(),
  requestedParameters: fc.array(fc.tuple(fc.string(), fc.string()), { maxLength: 3 }),
});
const identity = fc.record({ binding, keyMaterial: fc.string({ minLength: 1 }) });

describe('names and marks', () => {
  test('are equal for equal identities and tokens only', () => {
    fc.assert(
      fc.property(identity, identity, fc.string(), fc.string(), (one, other, token, otherToken) => {
        const isSame = JSON.stringify(one) === JSON.stringify(other);
        expect(deriveRecordName(one) === deriveRecordName(other)).toBe(isSame);
        expect(deriveTokenMark(one, token) === deriveTokenMark(one, otherToken)).toBe(token === otherToken);
        expect(deriveRecordName(structuredClone(one))).toBe(deriveRecordName(one));
      }),
    );
  });

  test.each([
    ['another endpoint', { tokenUrl: 'https://auth.test/oauth/token2' }],
    ['another client', { clientId: 'clien', method: 'tclient_secret_basic' }],
    ['another method', { method: 'client_secret_post' }],
    [
      'other requested parameters',
      {
        requestedParameters: [
          ['scope', 'a'],
          ['scope', 'b'],
        ],
      },
    ],
    ['another order of them', { requestedParameters: [['a b', 'scope']] }],
  ] as const)('differ for %s', (_, change) => {
    expect(deriveRecordName({ ...IDENTITY, binding: { ...BINDING, ...change } })).not.toBe(deriveRecordName(IDENTITY));
  });

  test('differ for another secret, and reveal nothing', () => {
    const other = { ...IDENTITY, keyMaterial: 'another-secret' };
    expect(deriveRecordName(other)).not.toBe(deriveRecordName(IDENTITY));
    expect(deriveTokenMark(other, 'token')).not.toBe(deriveTokenMark(IDENTITY, 'token'));
    expect(deriveRecordName(IDENTITY)).toMatch(/^[\w-]{22}$/);
    expect(deriveTokenMark(IDENTITY, 'token')).toMatch(/^[\w-]{22}$/);
  });
});

describe('a sealed failure', () => {
  const failure = { kind: 'rejected', detail: 'auth.test answered 401 and the error "invalid_client"' } as const;

  test('opens unchanged, without the stated Retry-After', () => {
    expect(openFailure(sealFailure(failure, IDENTITY), IDENTITY)).toEqual(failure);
    const stated = { kind: 'unavailable', detail: 'busy', retryAfterMs: 5000 } as const;
    expect(openFailure(sealFailure(stated, IDENTITY), IDENTITY)).toEqual({ kind: 'unavailable', detail: 'busy' });
  });

  test('opens for no other identity, and not as a token', () => {
    const sealed = sealFailure(failure, IDENTITY);
    expect(openFailure(sealed, { ...IDENTITY, keyMaterial: 'another-secret' })).toBeUndefined();
    expect(openFailure(sealed, { ...IDENTITY, binding: { ...BINDING, clientId: 'x' } })).toBeUndefined();
    expect(openToken(sealed, IDENTITY)).toBeUndefined();
    const token = { value: 'token', scope: undefined, obtainedWallAt: 0, expiresWallAt: 1 };
    expect(openFailure(sealToken(token, IDENTITY), IDENTITY)).toBeUndefined();
  });

  test.each(['["ok","x"]', '["rejected",1]', '["rejected"]', '{}', 'null', '"rejected"'])(
    'of another form does not open: %s',
    (plain) => {
      expect(openFailure(sealText(plain, IDENTITY), IDENTITY)).toBeUndefined();
    },
  );

  test('that was altered anywhere does not open', () => {
    const sealed = sealFailure(failure, IDENTITY);
    fc.assert(
      fc.property(fc.nat(sealed.length - 1), fc.constantFrom('A', 'z', '.', '-'), (at, character) => {
        const altered = sealed.slice(0, at) + character + sealed.slice(at + 1);
        fc.pre(altered !== sealed);
        const opened = openFailure(altered, IDENTITY);
        // The last character of base64 holds unused bits.
        expect(opened === undefined || at === sealed.length - 1).toBe(true);
      }),
    );
  });
});
