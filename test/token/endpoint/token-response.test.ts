import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { parseTokenResponse, parseRetryAfterMs } from '../../../src/token/endpoint/token-response.ts';

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
    ['the token_type of Apigee', { token_type: 'BearerToken' }, { kind: 'ok' }],
    ['no token_type', { token_type: undefined }, { kind: 'ok' }],
    ['token_type null', { token_type: null }, { kind: 'ok' }],
    ['an empty token_type', { token_type: '' }, { kind: 'ok' }],
    ['a token as of Salesforce', { access_token: '00D5g!AQ8AQ.x"y\\z' }, { value: '00D5g!AQ8AQ.x"y\\z' }],
    ['padding alone', { access_token: '==' }, { value: '==' }],
    ['expires_in in quotes', { expires_in: '120' }, { lifetimeMs: 120_000 }],
    ['expires_in with a fraction', { expires_in: 1.5 }, { lifetimeMs: 1_500 }],
    ['an endless expires_in', { expires_in: 1e300 }, { lifetimeMs: 365 * 24 * 3_600_000 }],
    ['fields unknown', { refresh_token: 'x', id_token: 7 }, { kind: 'ok' }],
    ['the longest token', { access_token: 'a'.repeat(16_384) }, { kind: 'ok' }],
  ])('%s', (_name, fields, expected) => {
    expect(parseTokenResponse(grant(fields))).toMatchObject({ kind: 'ok', ...expected });
  });

  const assumed = (lifetimeFault: string) => ({ lifetimeMs: 77_000, lifetimeFault });
  test.each<[unknown, object]>([
    [undefined, assumed('no expires_in')],
    [null, assumed('no expires_in')],
    ['', assumed('no expires_in')],
    [0, assumed('an expires_in of less than 1 s')],
    ['0', assumed('an expires_in of less than 1 s')],
    [-3600, assumed('an expires_in of less than 1 s')],
    ['-1', assumed('an expires_in of less than 1 s')],
    [0.9, assumed('an expires_in of less than 1 s')],
    ['an hour', assumed('an expires_in that is not a number')],
    ['3600s', assumed('an expires_in that is not a number')],
    [false, assumed('an expires_in that is not a number')],
    [[3600], assumed('an expires_in that is not a number')],
    [1, { lifetimeMs: 1000 }],
    [' 60 ', { lifetimeMs: 60_000 }],
  ])('with expires_in %j lives as %j', (expiresIn, expected) => {
    const result = parseTokenResponse(grant({ expires_in: expiresIn }), undefined, { defaultLifetimeMs: 77_000 });
    expect(result).toEqual({ kind: 'ok', value: 'abc.DEF-1_2~+/==', scope: undefined, ...expected });
  });

  it('every token that passes can stand in a header field, and every token that can passes', () => {
    const anyText = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }),
      fc.stringMatching(/^[\x20-\x7f]{1,40}$/),
      fc.stringMatching(/^[\x21-\x2b\x2d-\x7e]{1,40}$/),
    );
    fc.assert(
      fc.property(anyText, (value) => {
        const isSafe = Array.from(value).every((char) => char >= '!' && char <= '~' && char !== ',');
        expect(parseTokenResponse(grant({ access_token: value })).kind).toBe(isSafe ? 'ok' : 'malformed');
      }),
      { numRuns: 1000 },
    );
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
    ['a comma in it', grant({ access_token: 'abc,DEF' })],
    ['a DEL in it', grant({ access_token: 'abc\u007f' })],
    ['one too long', grant({ access_token: 'a'.repeat(16_385) })],
    ['another token_type', grant({ token_type: 'DPoP' })],
    ['a token_type that only begins as Bearer', grant({ token_type: 'Bearer,x' })],
    ['a token_type that is not a string', grant({ token_type: ['Bearer'] })],
    ['a token_type that holds the token', grant({ access_token: 'abc-abc-abc', token_type: 'x abc-abc-abc' })],
    ['scope as a list', grant({ scope: ['a'] })],
  ])('malformed: %s', (_name, body) => {
    const result = parseTokenResponse(body);
    expect(result.kind).toBe('malformed');
    expect(JSON.stringify(result)).not.toMatch(/abc|html|aaaa/);
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
