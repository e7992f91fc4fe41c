import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openToken, sealToken } from '../../../src/token/store/sealed-token.ts';
import type { StoredToken, TokenBinding, TokenIdentity } from '../../../src/token/store/sealed-token.ts';
import { anyCodePoint } from '../../support/code-points.ts';
import { bindings, ORDINARY_REQUEST } from './ordinary-request.ts';

const TOKEN: StoredToken = {
  value: 'eyJhbGciOi.J9.token~+/==',
  scope: 'urn:a.read urn:a.write',
  obtainedWallAt: 1_793_491_200_000.25,
  expiresWallAt: 1_793_494_800_000.25,
};
const BINDING: TokenBinding = {
  tokenUrl: 'https://login.example.com/oauth/token',
  clientId: 'sales-client',
  method: 'client_secret_basic',
  requestedParameters: [
    ['audience', 'https://api.example.com'],
    ['scope', 'urn:a.read urn:a.write'],
  ],
  ...ORDINARY_REQUEST,
};
const SECRET = 'pä:ß%2B+/=';
const IDENTITY: TokenIdentity = { binding: BINDING, keyMaterial: SECRET };

test.each([
  ['with a scope', TOKEN],
  ['without a scope', { ...TOKEN, scope: undefined }],
])('a sealed token %s opens again', (_name, token) => {
  expect(openToken(sealToken(token, IDENTITY, 'bst3'), IDENTITY, 'bst3')).toEqual(token);
});

test('a sealed token is one line of ASCII, differs each time, and shows neither token nor secret nor client id', () => {
  const [first, second] = [sealToken(TOKEN, IDENTITY, 'bst3'), sealToken(TOKEN, IDENTITY, 'bst3')];
  expect(first).toMatch(/^[\x21-\x7e]+$/);
  expect(first).not.toBe(second);
  const bytes = Buffer.from(first.slice('bst3.'.length), 'base64url').toString('latin1');
  for (const secret of [TOKEN.value, SECRET, BINDING.clientId, 'urn:a'])
    expect(bytes).not.toContain(Buffer.from(secret, 'utf8').toString('latin1'));
});

test.each<[string, TokenBinding]>([
  ['another endpoint', { ...BINDING, tokenUrl: 'https://evil.example.com/oauth/token' }],
  ['another client', { ...BINDING, clientId: 'sales-client2' }],
  ['another method', { ...BINDING, method: 'client_secret_post' }],
  ['another scope', { ...BINDING, requestedParameters: [['audience', 'https://api.example.com']] }],
  ['no scope', { ...BINDING, requestedParameters: [] }],
  [
    'the same values in one string',
    { ...BINDING, requestedParameters: [['audience', 'https://api.example.com,scope,urn:a.read']] },
  ],
])('a sealed token does not open for %s', (_name, binding) => {
  expect(openToken(sealToken(TOKEN, IDENTITY, 'bst3'), { ...IDENTITY, binding }, 'bst3')).toBeUndefined();
});

test('two settings never open the token of each other: every member of the binding counts', () => {
  const names = Object.keys(BINDING) as (keyof TokenBinding)[];
  fc.assert(
    fc.property(bindings, bindings, fc.constantFrom(...names), (one, other, name) => {
      const changed = { ...one, [name]: other[name] };
      const sealed = sealToken(TOKEN, { ...IDENTITY, binding: one }, 'bst3');
      const isSame = JSON.stringify(one[name]) === JSON.stringify(other[name]);
      expect(openToken(sealed, { ...IDENTITY, binding: changed }, 'bst3')).toEqual(isSame ? TOKEN : undefined);
      expect(openToken(sealed, { ...IDENTITY, binding: structuredClone(one) }, 'bst3')).toEqual(TOKEN);
    }),
  );
});

test('a sealed token does not open with another secret', () => {
  expect(
    openToken(sealToken(TOKEN, IDENTITY, 'bst3'), { ...IDENTITY, keyMaterial: `${SECRET} ` }, 'bst3'),
  ).toBeUndefined();
});

test('an altered, cut or foreign text does not open and does not throw', () => {
  const sealed = sealToken(TOKEN, IDENTITY, 'bst3');
  const bytes = Buffer.from(sealed.slice('bst3.'.length), 'base64url');
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, mask) => {
      const altered = Buffer.from(bytes);
      altered.writeUInt8(altered.readUInt8(at) ^ mask, at);
      expect(openToken(`bst3.${altered.toString('base64url')}`, IDENTITY, 'bst3')).toBeUndefined();
      expect(openToken(`bst3.${bytes.subarray(0, at).toString('base64url')}`, IDENTITY, 'bst3')).toBeUndefined();
    }),
  );
  fc.assert(
    fc.property(fc.string({ unit: anyCodePoint }), (text) => {
      expect(openToken(text, IDENTITY, 'bst3')).toBeUndefined();
      expect(openToken(`bst3.${Buffer.from(text).toString('base64url')}`, IDENTITY, 'bst3')).toBeUndefined();
    }),
  );
  expect(openToken(sealed.replace('bst3', 'bst4'), IDENTITY, 'bst3')).toBeUndefined();
});
