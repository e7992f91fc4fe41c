import { describe, expect, test } from 'vitest';
import { createRedact } from '../../../src/platform/secret-redaction.ts';
import {
  DEFAULT_LIFETIME_MS,
  parseTokenResponse,
  parseOAuthError,
  parseRetryAfterMs,
} from '../../../src/token/endpoint/token-response.ts';

function grant(fields: Record<string, unknown>): string {
  return JSON.stringify({ access_token: 'abc.DEF-1_2~+/==', token_type: 'Bearer', expires_in: 3600, ...fields });
}

describe('a success (RFC 6749 5.1)', () => {
  test.each<[string, Record<string, unknown>, object]>([
    ['as documented', { scope: 'a b' }, { value: 'abc.DEF-1_2~+/==', lifetimeMs: 3_600_000, scope: 'a b' }],
    ['token_type in any case', { token_type: 'bEARER' }, { kind: 'ok' }],
    ['an empty scope', { scope: '' }, { scope: undefined }],
    ['no scope', {}, { scope: undefined }],
    ['scope null', { scope: null }, { scope: undefined }],
    ['no expires_in', { expires_in: undefined }, { lifetimeMs: DEFAULT_LIFETIME_MS }],
    ['expires_in in quotes', { expires_in: '120' }, { lifetimeMs: 120_000 }],
    ['expires_in with a fraction', { expires_in: 1.5 }, { lifetimeMs: 1_500 }],
    ['an endless expires_in', { expires_in: 1e300 }, { lifetimeMs: 365 * 24 * 3_600_000 }],
    ['fields unknown', { refresh_token: 'x', id_token: 7 }, { kind: 'ok' }],
    ['the longest token', { access_token: 'a'.repeat(16_384) }, { kind: 'ok' }],
  ])('%s', (_name, fields, expected) => {
    expect(parseTokenResponse(grant(fields))).toMatchObject({ kind: 'ok', ...expected });
  });

  test.each<[string, string]>([
    ['HTML', '<html>sign in</html>'],
    ['nothing', ''],
    ['an array', '[]'],
    ['null', 'null'],
    ['no access_token', grant({ access_token: undefined })],
    ['an empty access_token', grant({ access_token: '' })],
    ['a line break in it', grant({ access_token: 'abc\r\nX-Injected: 1' })],
    ['a space in it', grant({ access_token: 'abc def' })],
    ['a character beyond ASCII in it', grant({ access_token: 'abcé' })],
    ['padding alone', grant({ access_token: '==' })],
    ['one too long', grant({ access_token: 'a'.repeat(16_385) })],
    ['no token_type', grant({ token_type: undefined })],
    ['another token_type', grant({ token_type: 'DPoP' })],
    ['expires_in 0', grant({ expires_in: 0 })],
    ['expires_in below 0', grant({ expires_in: -3600 })],
    ['expires_in in words', grant({ expires_in: 'an hour' })],
    ['expires_in with a unit', grant({ expires_in: '3600s' })],
    ['expires_in false', grant({ expires_in: false })],
    ['expires_in empty', grant({ expires_in: '' })],
    ['a life shorter than any flight', grant({ expires_in: 0.001 })],
    ['scope as a list', grant({ scope: ['a'] })],
  ])('malformed: %s', (_name, body) => {
    const result = parseTokenResponse(body);
    expect(result.kind).toBe('malformed');
    expect(JSON.stringify(result)).not.toMatch(/abc|html|aaaa/);
  });
});

describe('an error (RFC 6749 5.2)', () => {
  test.each<[string, string | undefined]>([
    ['{"error":"invalid_client","error_description":"secret is wrong"}', 'invalid_client'],
    [JSON.stringify({ error: 'a"b\\c\u0000d\u001b[31mé' }), 'abcd[31m'],
    [JSON.stringify({ error: 'x'.repeat(500) }), 'x'.repeat(100)],
    [JSON.stringify({ error: 'no hunter2 here' }), 'no ******** here'],
    ['{"error":""}', undefined],
    ['{"error":42}', undefined],
    ['{"message":"no"}', undefined],
    ['<html>', undefined],
  ])('%s', (body, expected) => {
    expect(parseOAuthError(body, createRedact(['hunter2', '']))).toBe(expected);
  });
});

describe('Retry-After', () => {
  const now = Date.UTC(1994, 10, 6, 8, 49, 7);
  test.each<[string | string[] | undefined, number | undefined]>([
    ['120', 120_000],
    ['0', 0],
    [' 7 ', 7_000],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 30_000],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 30_000],
    ['Sun Nov  6 08:49:37 1994', 30_000],
    ['Sun, 06 Nov 1994 08:00:00 GMT', 0],
    [undefined, undefined],
    ['', undefined],
    ['-5', undefined],
    ['1.5', undefined],
    ['soon', undefined],
    ['Sun, tomorrow', undefined],
    [['1', '2'], undefined],
  ])('%j', (field, expected) => {
    expect(parseRetryAfterMs(field, now)).toBe(expected);
  });
});
