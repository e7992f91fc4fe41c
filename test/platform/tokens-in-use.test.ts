/** The mask for access tokens in texts of a server. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TokensInUse } from '../../src/platform/tokens-in-use.ts';

const TOKEN_CHARS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/='.split('');
const TOKEN = fc.string({ unit: fc.constantFrom(...TOKEN_CHARS), minLength: 24, maxLength: 300 });
/** No part of a token. */
const TEXT = fc.string({ unit: fc.constantFrom('#', ' ', '"', 'ä'), maxLength: 20 });
/** What may remain of a token at the ends of a masked run. */
const REST_CHARS = 10;

const FORMS: Readonly<Record<string, (token: string, before: string) => string>> = {
  plain: (token) => token,
  'percent-encoded': (token) => encodeURIComponent(token),
  'in base64': (token) => Buffer.from(token).toString('base64'),
  'in base64 after other text': (token, before) => Buffer.from(before + token).toString('base64'),
  'in base64 for URLs': (token, before) => Buffer.from(before + token).toString('base64url'),
};

function holdsPart(text: string, form: string): boolean {
  for (let at = 0; at + REST_CHARS < form.length; at++)
    if (text.includes(form.slice(at, at + REST_CHARS + 1))) return true;
  return false;
}

test.each(Object.keys(FORMS))('a token %s is masked, whole or cut', (name) => {
  fc.assert(
    fc.property(TOKEN, TEXT, TEXT, fc.nat(300), fc.nat(300), (token, before, after, start, length) => {
      const tokens = new TokensInUse();
      tokens.add('default', token);
      const form = FORMS[name]!(token, 'user:');
      for (const part of [form, form.slice(start), form.slice(0, length), form.slice(start, start + length)])
        expect(holdsPart(tokens.mask(before + part + after), FORMS[name]!(token, 'user:').slice(8))).toBe(false);
    }),
  );
});

test('another text stays as it is', () => {
  const tokens = new TokensInUse();
  const text = 'error="insufficient_scope", scope="urn:vendor.partners.sales.read"';
  expect(tokens.mask(text)).toBe(text);
  tokens.add('default', 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl');
  expect(tokens.mask(text)).toBe(text);
  expect(tokens.mask('')).toBe('');
});

test('a text that the hashes let pass has nothing that the search would mask', () => {
  const form = fc.constantFrom(...Object.values(FORMS));
  const id = fc.string({
    unit: fc.constantFrom('0', '7', 'a', 'e', 'Z', '-', '_', '.', ':', '=', ' '),
    maxLength: 128,
  });
  fc.assert(
    fc.property(TOKEN, form, id, fc.nat(300), fc.nat(128), (token, encode, text, start, length) => {
      const tokens = new TokensInUse();
      tokens.add('default', token);
      const echo = text + encode(token, 'user:').slice(start, start + length) + text;
      // An escape has the whole text searched.
      expect(tokens.mask(echo) === echo).toBe(tokens.mask(`${echo} %`) === `${echo} %`);
    }),
    { numRuns: 3000 },
  );
});

test('the text around a whole token is kept', () => {
  const tokens = new TokensInUse();
  const token = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl';
  tokens.add('default', token);
  expect(tokens.mask(`(insufficient_scope: ${token}) -> add`)).toBe('(insufficient_scope: ********) -> add');
});

test('a short token is masked as a whole', () => {
  const tokens = new TokensInUse();
  for (const token of ['abc', 'abcd', 'token-1']) tokens.add(token, token);
  expect(tokens.mask('abc abcd token-1 token-2')).toBe('abc ******** ******** token-2');
});

test('of each credential the newest four tokens are masked', () => {
  const tokens = new TokensInUse();
  const issued = Array.from({ length: 6 }, (_, index) => `${index}`.repeat(30));
  for (const token of issued) tokens.add('one', token);
  tokens.add('other', 'z'.repeat(30));
  const shown = issued.filter((token) => tokens.mask(token) === token);
  expect(shown).toEqual(issued.slice(0, 2));
  expect(tokens.mask('z'.repeat(30))).toBe('********');
  // Used again.
  tokens.add('one', issued[2]!);
  tokens.add('one', 'y'.repeat(30));
  expect(tokens.mask(issued[2]!)).toBe('********');
});
