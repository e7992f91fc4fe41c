/** Words of a server that contain the client id, a secret or a part of one, in any form: nothing of it is shown. */
import fc from 'fast-check';
import { expect, it, test } from 'vitest';
import { createServerTextFilter } from '../../../src/token/endpoint/server-text.ts';

const CLIENT_ID = 'client-0815';
const base64 = (text: string): string => Buffer.from(text, 'utf8').toString('base64');

/** How a server may echo a secret; each can be reversed by a reader. */
const ECHOES: Readonly<Record<string, (secret: string) => string>> = {
  plain: (secret) => secret,
  percent: (secret) => encodeURIComponent(secret),
  'percent, every byte': (secret) => Buffer.from(secret).toString('hex').replaceAll(/../g, '%$&'),
  form: (secret) => new URLSearchParams([['', secret]]).toString().slice(1),
  base64,
  'base64, without padding': (secret) => base64(secret).replace(/=+$/, ''),
  base64url: (secret) => Buffer.from(secret, 'utf8').toString('base64url'),
  'base64 of more': (secret) => base64(`it is ${secret}, is it?`),
  'base64 in lines': (secret) => base64(secret).replaceAll(/.{6}/g, '$&\r\n'),
  'Basic credentials': (secret) => `Basic ${base64(`${CLIENT_ID}:${secret}`)}`,
  JSON: (secret) => JSON.stringify(secret),
  'JSON, every character': (secret) =>
    Array.from({ length: secret.length }, (_, at) => `\\u${secret.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
      '',
    ),
  HTML: (secret) => secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;'),
  'controls between': (secret) => Array.from(secret).join('\u0007'),
  'bidirectional marks between': (secret) => Array.from(secret).join('\u202e'),
  'quotes between': (secret) => Array.from(secret).join('"'),
  'line ends between': (secret) => secret.replaceAll(/.{3}/g, '$&\r\n'),
  'other letters between': (secret) => Array.from(secret).join('ж'),
  'full-width letters': (secret) =>
    secret.replaceAll(/[!-~]/g, (char) => String.fromCharCode(char.charCodeAt(0) + 0xfee0)),
  'its first half': (secret) => secret.slice(0, Math.max(8, secret.length / 2)),
  'its end': (secret) => secret.slice(3),
};

const secrets = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9~_-]{12,60}$/),
  fc.stringMatching(/^[\x21-\x7e]{12,40}$/),
  fc
    .string({ unit: 'grapheme', minLength: 12, maxLength: 30 })
    .filter((text) => text.isWellFormed() && text.trim() === text),
);
const surroundings = fc.constantFrom('', 'the secret is ', 'AADSTS7000215: ', 'x', "'", 'a=');

function reveals(shown: string, secret: string): boolean {
  const visible = secret.normalize('NFKD').replaceAll(/[^\x21-\x7e]|["\\]/g, '');
  const forms = [secret, visible, base64(secret), encodeURIComponent(secret)];
  const compact = shown.replaceAll(' ', '');
  return forms.some((form) =>
    Array.from({ length: Math.max(0, form.length - 7) }, (_, at) => form.slice(at, at + 8)).some(
      (part) => shown.includes(part) || compact.includes(part),
    ),
  );
}

it('shows no eight characters of a secret that the server echoes', () => {
  fc.assert(
    fc.property(
      secrets,
      fc.constantFrom(...Object.keys(ECHOES)),
      surroundings,
      surroundings,
      fc.integer({ min: 1, max: 300 }),
      (secret, form, before, after, maxChars) => {
        const show = createServerTextFilter([secret], CLIENT_ID);
        const shown = show(`${before}${ECHOES[form]?.(secret) ?? ''}${after}`, maxChars);
        expect(reveals(shown, secret)).toBe(false);
        expect(shown).toMatch(/^[\x20-\x7e]*$/);
        expect(shown.length).toBeLessThanOrEqual(maxChars);
      },
    ),
    { numRuns: 1000 },
  );
});

test.each([
  ['Invalid client secret provided.\r\nTrace ID: 0', 'Invalid client secret provided. Trace ID: 0'],
  [`no ${CLIENT_ID} here`, 'no ******** here'],
  [`no ${base64(CLIENT_ID)} here`, 'no ********= here'],
  ['the key is 0123456789ab, or so', 'the key is ********, or so'],
  ['the key begins with 01234567', 'the key begins with ********'],
  ['der Schlüssel ist ungültig', 'der Schlussel ist ungultig'],
  ['\u001b[31mred\u0000\u202e "quoted" \\ back', '[31mred quoted  back'],
  ['', ''],
])('%j is shown as %j', (text, shown) => {
  expect(createServerTextFilter(['0123456789ab'], CLIENT_ID)(text, 200)).toBe(shown);
});
