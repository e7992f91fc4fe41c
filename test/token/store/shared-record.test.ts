/** Record names, sealed tokens and sealed failures in the shared store. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  deriveRecordName,
  openFailure,
  openToken,
  sealFailure,
  sealText,
  sealToken,
} from '../../../src/token/store/sealed-token.ts';
import type { TokenBinding, TokenIdentity } from '../../../src/token/store/sealed-token.ts';
import { bindings, ORDINARY_REQUEST } from './ordinary-request.ts';

const BINDING: TokenBinding = {
  tokenUrl: 'https://auth.test/oauth/token',
  clientId: 'client',
  method: 'client_secret_basic',
  requestedParameters: [['scope', 'a b']],
  ...ORDINARY_REQUEST,
};
const IDENTITY: TokenIdentity = { binding: BINDING, keyMaterial: 'secret-of-the-tests' };

const identity = fc.record({ binding: bindings, keyMaterial: fc.string({ minLength: 1 }) });

describe('names', () => {
  test('are equal for equal identities only', () => {
    fc.assert(
      fc.property(identity, identity, (one, other) => {
        const isSame = JSON.stringify(one) === JSON.stringify(other);
        expect(deriveRecordName(one) === deriveRecordName(other)).toBe(isSame);
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
    ['another body', { bodyFormat: 'json' }],
    ['other claims', { assertion: { audience: 'token_endpoint', claims: { sub: 'a' } } }],
    ['another field of the token', { responseFields: ['token', 'expires_in', 'seconds'] }],
    ['another header field of the calls', { tokenHeaders: ['authorization: Token '] }],
  ] as const)('differ for %s', (_, change) => {
    expect(deriveRecordName({ ...IDENTITY, binding: { ...BINDING, ...change } })).not.toBe(deriveRecordName(IDENTITY));
  });

  test('differ for another secret, and reveal nothing', () => {
    const other = { ...IDENTITY, keyMaterial: 'another-secret' };
    expect(deriveRecordName(other)).not.toBe(deriveRecordName(IDENTITY));
    expect(deriveRecordName(IDENTITY)).toMatch(/^[\w-]{22}$/);
  });
});

const TOKEN = {
  value: 'token',
  scope: 'a b',
  order: 1_790_000_000_001,
  expiresAt: 1_790_003_600_000.5,
  lifetimeMs: 3_600_000.5,
};
const FAILURE = { kind: 'rejected', detail: 'auth.test answered 401 and the error "invalid_client"' } as const;
const ENDS_AT = 1_790_000_060_000;

describe('a shared token', () => {
  test('opens unchanged', () => {
    expect(openToken(sealToken(TOKEN, IDENTITY, 'bst4'), IDENTITY, 'bst4')).toEqual(TOKEN);
    const unscoped = { ...TOKEN, scope: undefined };
    expect(openToken(sealToken(unscoped, IDENTITY, 'bst4'), IDENTITY, 'bst4')).toEqual(unscoped);
  });

  test('opens for no other identity, and not as the token of a file or as a failure', () => {
    const sealed = sealToken(TOKEN, IDENTITY, 'bst4');
    expect(openToken(sealed, { ...IDENTITY, keyMaterial: 'another-secret' }, 'bst4')).toBeUndefined();
    expect(openToken(sealed, { ...IDENTITY, binding: { ...BINDING, clientId: 'x' } }, 'bst4')).toBeUndefined();
    const body = sealed.slice('bst4.'.length);
    for (const format of ['bst3', 'bst4', 'bsf4']) {
      expect(openToken(`${format}.${body}`, IDENTITY, 'bst3')).toBeUndefined();
      expect(openFailure(`${format}.${body}`, IDENTITY)).toBeUndefined();
    }
  });

  test('does not open when it is the token of a file, a failure, or longer than any', () => {
    const cached = sealToken(
      { value: 'token', scope: undefined, obtainedWallAt: 0, expiresWallAt: 1 },
      IDENTITY,
      'bst3',
    );
    const failed = sealFailure({ failure: FAILURE, endsAt: ENDS_AT }, IDENTITY);
    for (const sealed of [cached, cached.replace('bst3', 'bst4'), failed, failed.replace('bsf4', 'bst4')])
      expect(openToken(sealed, IDENTITY, 'bst4')).toBeUndefined();
    const long = sealToken({ ...TOKEN, value: 'x'.repeat(60_000) }, IDENTITY, 'bst4');
    expect(openToken(long, IDENTITY, 'bst4')).toBeUndefined();
  });

  test.each(['["t",null,1,2]', '["t",null,1,2,"3"]', '["t",1,1,2,3]', '[1,null,1,2,3]', '["t",null,1,null,3]', '{}'])(
    'of another form does not open: %s',
    (plain) => {
      expect(openToken(sealText(plain, IDENTITY, 'bst4'), IDENTITY, 'bst4')).toBeUndefined();
    },
  );
});

describe('a sealed failure', () => {
  const shared = { failure: FAILURE, endsAt: ENDS_AT };

  test('opens unchanged, without the stated Retry-After', () => {
    expect(openFailure(sealFailure(shared, IDENTITY), IDENTITY)).toEqual(shared);
    const failure = { kind: 'unavailable', detail: 'busy', retryAfterMs: 5000 } as const;
    const expected = { failure: { kind: 'unavailable', detail: 'busy' }, endsAt: 1 };
    expect(openFailure(sealFailure({ failure, endsAt: 1 }, IDENTITY), IDENTITY)).toEqual(expected);
  });

  test('opens for no other identity, and not as a token', () => {
    const sealed = sealFailure(shared, IDENTITY);
    expect(openFailure(sealed, { ...IDENTITY, keyMaterial: 'another-secret' })).toBeUndefined();
    expect(openFailure(sealed, { ...IDENTITY, binding: { ...BINDING, clientId: 'x' } })).toBeUndefined();
    expect(openToken(sealed, IDENTITY, 'bst3')).toBeUndefined();
  });

  test.each(['["ok","x",1]', '["rejected",1,1]', '["rejected","x"]', '["rejected","x","1"]', '{}', 'null', '"x"'])(
    'of another form does not open: %s',
    (plain) => {
      expect(openFailure(sealText(plain, IDENTITY, 'bsf4'), IDENTITY)).toBeUndefined();
    },
  );

  test('that was altered anywhere does not open', () => {
    const sealed = sealFailure(shared, IDENTITY);
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
