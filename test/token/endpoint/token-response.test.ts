import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import type { TokenResponseForm } from '../../../src/token/endpoint/token-response.ts';
import { anyCodePoint } from '../../support/code-points.ts';
import { parseResponse } from './endpoint.ts';

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
    ['scope as a list', { scope: ['a', '', 'b c'] }, { scope: 'a b c' }],
    ['an empty list of scopes', { scope: [] }, { scope: undefined }],
    ['a list of other values than scopes', { scope: ['a', 7] }, { scope: undefined }],
    ['scope as an object', { scope: { a: true } }, { scope: undefined }],
    ['scope as a number', { scope: 7 }, { scope: undefined }],
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
    expect(parseResponse(grant(fields))).toMatchObject({ kind: 'ok', ...expected });
  });

  const assumed = (lifetimeFault: string) => ({ lifetimeMs: 77_000, lifetimeFault });
  test.each<[unknown, object]>([
    [undefined, assumed('no expires_in')],
    [null, assumed('no expires_in')],
    ['', assumed('no expires_in')],
    [0, assumed('expires_in below 1 s')],
    ['0', assumed('expires_in below 1 s')],
    [-3600, assumed('expires_in below 1 s')],
    ['-1', assumed('expires_in below 1 s')],
    [0.9, assumed('expires_in below 1 s')],
    ['an hour', assumed('expires_in that is not a number')],
    ['3600s', assumed('expires_in that is not a number')],
    [false, assumed('expires_in that is not a number')],
    [[3600], assumed('expires_in that is not a number')],
    [1, { lifetimeMs: 1000 }],
    [' 60 ', { lifetimeMs: 60_000 }],
  ])('with expires_in %j lives as %j', (expiresIn, expected) => {
    const result = parseResponse(grant({ expires_in: expiresIn }), { defaultLifetimeMs: 77_000 });
    expect(result).toEqual({ kind: 'ok', value: 'abc.DEF-1_2~+/==', scope: undefined, ...expected });
  });

  it('every token that passes can stand in a header field, and every token that can passes', () => {
    const anyText = fc.oneof(
      fc.string({ unit: anyCodePoint, minLength: 1, maxLength: 40 }),
      fc.stringMatching(/^[\x20-\x7f]{1,40}$/),
      fc.stringMatching(/^[\x21-\x2b\x2d-\x7e]{1,40}$/),
    );
    fc.assert(
      fc.property(anyText, (value) => {
        const isSafe = Array.from(value).every((char) => char >= '!' && char <= '~' && char !== ',');
        expect(parseResponse(grant({ access_token: value })).kind).toBe(isSafe ? 'ok' : 'malformed');
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
  ])('malformed: %s', (_name, body) => {
    const result = parseResponse(body);
    expect(result.kind).toBe('malformed');
    expect(JSON.stringify(result)).not.toMatch(/abc|html|aaaa/);
  });
});

test('a token_type that no upstream.tokenPrefix names is malformed', () => {
  const types = ['JWT', 'Token token', 'mac', 'MAC ', 'x'];
  for (const type of types)
    expect(parseResponse(grant({ token_type: type }), { tokenPrefixes: ['', 'JWTs ', 'Token token='] })).toMatchObject({
      kind: 'malformed',
    });
});

describe('a response of another form', () => {
  const result = (fields: object, form: Partial<TokenResponseForm>) => parseResponse(JSON.stringify(fields), form);

  test.each<[string, object, Partial<TokenResponseForm>, object]>([
    ['a member', { Token: 'abc' }, { tokenField: 'Token' }, { value: 'abc' }],
    ['a member of a member', { data: { auth: { jwt: 'abc' } } }, { tokenField: 'data.auth.jwt' }, { value: 'abc' }],
    ['a name with dots before a path', { 'a.b': 'abc', a: { b: 'def' } }, { tokenField: 'a.b' }, { value: 'abc' }],
    [
      'the token_type that upstream.tokenPrefix names',
      { access_token: 'abc', token_type: 'JWT' },
      { tokenPrefixes: ['Bearer ', 'jwt '] },
      { value: 'abc' },
    ],
    [
      'Bearer with another tokenPrefix',
      { access_token: 'abc', token_type: 'Bearer' },
      { tokenPrefixes: ['JWT '] },
      { value: 'abc' },
    ],
    ['any token_type', { jwt: 'abc', token_type: 'mac' }, { tokenField: 'jwt' }, { value: 'abc' }],
    [
      'a lifetime elsewhere',
      { access_token: 'abc', data: { ttl: '60' } },
      { expiresInField: 'data.ttl' },
      { lifetimeMs: 60_000 },
    ],
    [
      'milliseconds',
      { access_token: 'abc', expires_in: 90_000 },
      { expiresInUnit: 'milliseconds' },
      { lifetimeMs: 90_000 },
    ],
    [
      'milliseconds below a second',
      { access_token: 'abc', expires_in: 999 },
      { expiresInUnit: 'milliseconds' },
      { lifetimeFault: 'expires_in below 1 s' },
    ],
    [
      'a lifetime that is not there',
      { access_token: 'abc', expires_in: 60 },
      { expiresInField: 'data.ttl', defaultLifetimeMs: 7000 },
      { lifetimeMs: 7000, lifetimeFault: 'no data.ttl' },
    ],
  ])('has %s', (_name, fields, form, expected) => {
    expect(result(fields, form)).toMatchObject({ kind: 'ok', ...expected });
  });

  test.each([
    'constructor',
    '__proto__',
    'toString.name',
    'a.constructor.name',
    'list.0',
    'list.length',
    'a.',
    '.a',
    'text.length',
  ])('finds nothing at %s, and names it', (tokenField) => {
    const fields = { access_token: 'abc', a: {}, list: ['abc'], text: 'abc' };
    expect(result(fields, { tokenField })).toEqual({
      kind: 'malformed',
      detail: `the token endpoint answered 200 with no ${tokenField}`,
    });
  });

  test.each([
    ['x'.repeat(16_385), 'more than 16384 characters'],
    ['a b', 'characters that a bearer token may not have'],
  ])('with a token that cannot be used names the field', (value, words) => {
    expect(result({ jwt: value }, { tokenField: 'jwt' })).toMatchObject({
      kind: 'malformed',
      detail: expect.stringMatching(`with jwt (of|with) ${words}`) as string,
    });
  });

  test('with a token that is elsewhere does not show it with the words of the server', () => {
    const token = 'eyJhbGciOiJub25lIn0.e30.c2ln-9';
    expect(result({ message: `token: ${token}` }, {})).toEqual({
      kind: 'malformed',
      detail: 'the token endpoint answered 200 with no access_token: token: ********',
    });
  });

  test('with a token that is elsewhere does not show a part of it where the words of the server are cut', () => {
    const token = `${'abcdefghijklmnopqrst'.repeat(3)}9`;
    for (let before = 0; before < 260; before++) {
      const { kind, ...rest } = result({ message: `${'w'.repeat(14)} `.repeat(20).slice(-before - 1) + token }, {});
      expect(kind).toBe('malformed');
      expect(JSON.stringify(rest)).not.toContain('abcd');
    }
  });

  it('finds a token at any path of own members', () => {
    const name = fc.stringMatching(/^[A-Za-z_-]{1,8}$/);
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 5 }), fc.boolean(), (names, isNested) => {
        const build = (rest: readonly string[]): object =>
          Object.fromEntries([[rest[0], rest.length === 1 ? 'abc' : build(rest.slice(1))]]) as object;
        const fields = isNested ? build(names) : build([names.join('.')]);
        expect(result(fields, { tokenField: names.join('.') })).toMatchObject({ kind: 'ok', value: 'abc' });
      }),
    );
  });
});
