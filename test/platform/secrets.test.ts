/** The mask for secrets in texts from outside. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Secrets } from '../../src/platform/secrets.ts';
import { ManualClock } from '../support/manual-clock.ts';

const TOKEN_CHARS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/='.split('');
const TOKEN = fc.string({ unit: fc.constantFrom(...TOKEN_CHARS), minLength: 24, maxLength: 300 });
/** No part of a token. */
const TEXT = fc.string({ unit: fc.constantFrom('#', ' ', '"', 'ä'), maxLength: 20 });
/** What may remain of a token at the ends of a masked run. */
const REST_CHARS = 10;
/** A percent-encoded character takes three. */
const ENCODED_REST_CHARS = 3 * REST_CHARS + 2;

const FORMS: Readonly<Record<string, (token: string, before: string) => string>> = {
  plain: (token) => token,
  'percent-encoded': (token) => encodeURIComponent(token),
  'in base64': (token) => Buffer.from(token).toString('base64'),
  'in base64 after other text': (token, before) => Buffer.from(before + token).toString('base64'),
  'in base64 for URLs': (token, before) => Buffer.from(before + token).toString('base64url'),
};

function holdsPart(text: string, form: string, rest = REST_CHARS): boolean {
  for (let at = 0; at + rest < form.length; at++) if (text.includes(form.slice(at, at + rest + 1))) return true;
  return false;
}

test.each(Object.keys(FORMS))('a token %s is masked, whole or cut', (name) => {
  fc.assert(
    fc.property(TOKEN, TEXT, TEXT, fc.nat(300), fc.nat(300), (token, before, after, start, length) => {
      const tokens = new Secrets(new ManualClock());
      tokens.addToken(token, 'default');
      const form = FORMS[name]!(token, 'user:');
      const rest = name === 'percent-encoded' ? ENCODED_REST_CHARS : REST_CHARS;
      for (const part of [form, form.slice(start), form.slice(0, length), form.slice(start, start + length)])
        expect(holdsPart(tokens.mask(before + part + after), form.slice(8), rest)).toBe(false);
    }),
  );
});

test('another text stays as it is', () => {
  const tokens = new Secrets(new ManualClock());
  const text = 'error="insufficient_scope", scope="urn:vendor.partners.sales.read"';
  expect(tokens.mask(text)).toBe(text);
  tokens.addToken('eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl', 'default');
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
      const tokens = new Secrets(new ManualClock());
      tokens.addToken(token, 'default');
      const echo = text + encode(token, 'user:').slice(start, start + length) + text;
      // An escape has the whole text searched.
      expect(tokens.mask(echo) === echo).toBe(tokens.mask(`${echo} %`) === `${echo} %`);
    }),
    { numRuns: 3000 },
  );
});

test('the text around a whole token is kept', () => {
  const tokens = new Secrets(new ManualClock());
  const token = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl';
  tokens.addToken(token, 'default');
  expect(tokens.mask(`(insufficient_scope: ${token}) -> add`)).toBe('(insufficient_scope: ********) -> add');
});

test('a secret is masked from eight characters on', () => {
  const secrets = new Secrets(new ManualClock());
  for (const secret of ['abc', 'token-1', 'token-12']) secrets.add(secret);
  expect(secrets.mask('abc token-1 token-12 token-13')).toBe('abc token-1 ******** token-13');
});

test('of each owner the newest four tokens are masked, and others for an hour', async () => {
  const clock = new ManualClock();
  const secrets = new Secrets(clock);
  const issued = Array.from({ length: 6 }, (_, index) => `${index}`.repeat(30));
  for (const token of issued) secrets.addToken(token, 'one');
  secrets.addToken('z'.repeat(30), 'other');
  expect(issued.map(secrets.mask)).toEqual(issued.map(() => '********'));
  await clock.advance(3_600_000);
  // Used again.
  secrets.addToken(issued[2]!, 'one');
  expect(issued.filter((token) => secrets.mask(token) === token)).toEqual(issued.slice(0, 2));
  expect(secrets.mask('z'.repeat(30))).toBe('********');
});

/** As programs write a secret into a URL, a JSON document or a header field. */
const ENCODED: Readonly<Record<string, (secret: string, before: string) => string>> = {
  plain: (secret) => secret,
  'percent-encoded': (secret) => encodeURIComponent(secret),
  'percent-encoded in small letters': (secret) =>
    encodeURIComponent(secret).replaceAll(/%../g, (escape) => escape.toLowerCase()),
  'percent-encoded as a whole': (secret) => Buffer.from(secret).toString('hex').replaceAll(/../g, '%$&'),
  'percent-encoded twice': (secret) => encodeURIComponent(encodeURIComponent(secret)),
  'form-encoded': (secret) => new URLSearchParams([['', secret]]).toString().slice(1),
  'in JSON': (secret) => JSON.stringify(secret).slice(1, -1),
  'in JSON of ASCII': (secret) =>
    JSON.stringify(secret)
      .slice(1, -1)
      .replaceAll(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`),
  'in Base64 of a longer text': (secret, before) => Buffer.from(`${before}${secret} and more`).toString('base64'),
  'in Base64 for URLs': (secret, before) => Buffer.from(before + secret).toString('base64url'),
  'as Basic credentials in a URL': (secret, before) =>
    encodeURIComponent(Buffer.from(`${before}:${secret}`).toString('base64')),
  'as form-encoded Basic credentials': (secret, before) =>
    Buffer.from(`${before}:${encodeURIComponent(secret)}`).toString('base64'),
  'with control characters in it': (secret) => Array.from(secret).join('\u0000'),
};
const SECRET = fc
  .string({ unit: fc.constantFrom(...Array.from('aZ09 +/%-_"\\ü:.~=&')), minLength: 8, maxLength: 60 })
  .filter((secret) => secret.trim() === secret && new Set(secret).size > 4);

/** Longer than what surrounds the secret in Base64. */
const MARGIN_CHARS = 16;

/** Every part of the written form that is of the secret alone. */
function hasPartOf(written: string, name: string, text: string): boolean {
  const core = /Base64|Basic/.test(name) ? written.slice(MARGIN_CHARS, -MARGIN_CHARS) : written;
  const parts = Array.from({ length: Math.max(1, core.length - 11) }, (_, at) => core.slice(at, at + 12));
  return parts.some((part) => part.length >= 8 && text.includes(part));
}

test.each(Object.keys(ENCODED))('a secret %s is masked in a text and in a log line, which stays JSON', (name) => {
  const encode = ENCODED[name]!;
  fc.assert(
    fc.property(SECRET, fc.constantFrom('', 'i', 'id', 'client'), (secret, before) => {
      const secrets = new Secrets(new ManualClock());
      secrets.add(secret);
      const written = encode(secret, before);
      expect(hasPartOf(written, name, secrets.mask(`/path/${written}?x`))).toBe(false);
      const line = JSON.stringify({ level: 'info', path: written, other: 'kept as it is' });
      const shown = JSON.parse(secrets.maskLines(`${line}\n${line}\n`).split('\n')[1]!) as Record<string, string>;
      expect(hasPartOf(written, name, shown.path!)).toBe(false);
      expect(shown).toMatchObject({ level: 'info', other: 'kept as it is' });
    }),
  );
});

test('any text is masked without a fault, and stays as it is where it has no secret', () => {
  const pieces = fc.constantFrom(
    '\\u',
    '\\N',
    '\\n',
    '%',
    '%zz',
    '%C3',
    '\\ud83d',
    'ü',
    '"',
    '\u0000',
    'a',
    '…',
    '\ud800',
  );
  fc.assert(
    fc.property(fc.string({ unit: fc.oneof(pieces, fc.string({ unit: 'binary', maxLength: 3 })) }), (text) => {
      const secrets = new Secrets(new ManualClock());
      secrets.add('correct-horse-battery');
      expect(secrets.mask(text)).toBe(text);
      expect(secrets.mask(`${text} correct-horse-battery`)).toMatch(/\*{8}$/);
    }),
  );
});

test('a secret whose end is cut off is masked where a mark shows the cut', () => {
  const secrets = new Secrets(new ManualClock());
  secrets.add('correct-horse-battery');
  expect(secrets.mask('the path /a/correct-horse…')).toBe('the path /a/********…');
  expect(secrets.mask('the host "correct-horse..." is not allowed')).toBe('the host "********..." is not allowed');
  expect(secrets.mask('a correct-horse is kept')).toBe('a correct-horse is kept');
});
