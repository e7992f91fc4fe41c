import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openToken, sealToken } from '../../../src/token/store/sealed-token.ts';
import type { StoredToken, TokenBinding } from '../../../src/token/store/sealed-token.ts';

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
  asked: [
    ['audience', 'https://api.example.com'],
    ['scope', 'urn:a.read urn:a.write'],
  ],
};
const SECRET = 'pä:ß%2B+/=';

test.each([
  ['with a scope', TOKEN],
  ['without one', { ...TOKEN, scope: undefined }],
])('what was sealed opens again, %s', (_name, token) => {
  expect(openToken(sealToken(token, BINDING, SECRET), BINDING, SECRET)).toEqual(token);
});

test('bytes and their text are the same key material', () => {
  const sealed = sealToken(TOKEN, BINDING, Buffer.from(SECRET, 'utf8'));
  expect(openToken(sealed, BINDING, SECRET)).toEqual(TOKEN);
});

test('it is one line of ASCII, never the same twice, and shows neither token nor secret nor client', () => {
  const [first, second] = [sealToken(TOKEN, BINDING, SECRET), sealToken(TOKEN, BINDING, SECRET)];
  expect(first).toMatch(/^[\x21-\x7e]+$/);
  expect(first).not.toBe(second);
  const bytes = Buffer.from(first.slice('bst1.'.length), 'base64url').toString('latin1');
  for (const withheld of [TOKEN.value, SECRET, BINDING.clientId, 'urn:a'])
    expect(bytes).not.toContain(Buffer.from(withheld, 'utf8').toString('latin1'));
});

test.each<[string, TokenBinding]>([
  ['another endpoint', { ...BINDING, tokenUrl: 'https://evil.example.com/oauth/token' }],
  ['another client', { ...BINDING, clientId: 'sales-client2' }],
  ['another method', { ...BINDING, method: 'client_secret_post' }],
  ['another scope', { ...BINDING, asked: [['audience', 'https://api.example.com']] }],
  ['no scope', { ...BINDING, asked: [] }],
  ['the same values in one string', { ...BINDING, asked: [['audience', 'https://api.example.com,scope,urn:a.read']] }],
])('it does not open for %s', (_name, binding) => {
  expect(openToken(sealToken(TOKEN, BINDING, SECRET), binding, SECRET)).toBeUndefined();
});

test('it does not open with another secret', () => {
  expect(openToken(sealToken(TOKEN, BINDING, SECRET), BINDING, `${SECRET} `)).toBeUndefined();
});

test('no altered, cut or foreign text opens, and none throws', () => {
  const sealed = sealToken(TOKEN, BINDING, SECRET);
  const bytes = Buffer.from(sealed.slice('bst1.'.length), 'base64url');
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, mask) => {
      const altered = Buffer.from(bytes);
      altered.writeUInt8(altered.readUInt8(at) ^ mask, at);
      expect(openToken(`bst1.${altered.toString('base64url')}`, BINDING, SECRET)).toBeUndefined();
      expect(openToken(`bst1.${bytes.subarray(0, at).toString('base64url')}`, BINDING, SECRET)).toBeUndefined();
    }),
  );
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(openToken(text, BINDING, SECRET)).toBeUndefined();
      expect(openToken(`bst1.${Buffer.from(text).toString('base64url')}`, BINDING, SECRET)).toBeUndefined();
    }),
  );
  expect(openToken(sealed.replace('bst1', 'bst2'), BINDING, SECRET)).toBeUndefined();
});
