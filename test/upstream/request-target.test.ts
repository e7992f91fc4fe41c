/** Joining a client's target to the base: what is accepted stays byte for byte, and nothing accepted leaves the base. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { joinTarget, withoutTrailingSlash } from '../../src/upstream/request-target.ts';

const accepted: readonly (readonly [base: string, target: string, joined: string])[] = [
  ['/', '/', '/'],
  ['/', '/a', '/a'],
  ['/v1', '/', '/v1/'],
  ['/v1/', '/a/b/', '/v1/a/b/'],
  ['/v1', '//x', '/v1//x'],
  ['/', '//x', '//x'],
  ['/v1', '/a%20b/%C3%A9', '/v1/a%20b/%C3%A9'],
  ['/v1', '/a%2Fb', '/v1/a%2Fb'],
  ['/v1', '/a%5Cb', '/v1/a%5Cb'],
  ['/v1', '/.well-known/x', '/v1/.well-known/x'],
  ['/v1', '/...', '/v1/...'],
  ['/v1', '/a..b/c..', '/v1/a..b/c..'],
  ['/v1', '/a;p=1/b', '/v1/a;p=1/b'],
  ['/v1', '/%', '/v1/%'],
  ['/v1', '/%zz', '/v1/%zz'],
  ['/v1', '/%25', '/v1/%25'],
  ['/v1', '/?', '/v1/?'],
  ['/v1', '/a?x=../../b&y=\\..\\&z=%2e%2e%2f', '/v1/a?x=../../b&y=\\..\\&z=%2e%2e%2f'],
  ['/v1', '/a?b?c//d', '/v1/a?b?c//d'],
];

const DOTS = ['.', '%2e', '%2E', '%252e', '%25%32e', '%25252E'];
const SLASHES = ['/', '%2f', '%2F', '%5c', '%5C', '%255c', '%252F'];

describe('joinTarget', () => {
  it.each(accepted)('%s + %s = %s', (base, target, path) => {
    expect(joinTarget(base, target)).toBe(path);
  });

  it.each([
    ['a dot segment', ['/.', '/..', '/a/..', '/a/../b', '/./a', '/..?x=1', '/%2e%2E/a', '/.%2e', '/%2e']],
    ['a dot segment with parameters', ['/..;x', '/..;x=1/a', '/.;/a', '/a/%2e%2e;a', '/..%3bx/a']],
    ['a hidden separator', ['/a%2f..%2fb', '/a%2F%2e%2e', '/x%5c..%5cy', '/..%2f', '/..%5C', '/a%2f..']],
    ['a decoding of its own', ['/%252e%252e/a', '/%25252e%25252e', '/a%252f..', '/a%255c%252e%252e', '/..%253bx']],
    ['white space that a server may drop', ['/.%09.', '/..%20/a', '/..%00', '/.%250a./a', '/%09..;x']],
    [
      'an overlong encoding',
      ['/%c0%ae%c0%ae/a', '/..%c0%af', '/%E0%80%AE./a', '/a%c1%9c..', '/%f0%80%80%ae%2e', '/%u002e%u002e/a'],
    ],
    ['a hidden query or fragment', ['/..%23', '/..%3fa/b', '/a/..%2523']],
    ['a backslash', ['/\\..\\a', '/a\\b', '/..\\', '\\a']],
    ['no path', ['', '*', 'a', 'http://other/', '?x', '#']],
    ['a fragment', ['/a#b', '/a?b#c', '/#/../x']],
  ])('refuses %s', (_, targets) => {
    for (const target of targets) expect(joinTarget('/v1', target), target).toMatchObject({ code: 'BAD_REQUEST' });
  });

  it('refuses two dots in every spelling between separators in every spelling', () => {
    for (const before of SLASHES) {
      for (const after of [...SLASHES, ';']) {
        for (const first of DOTS) {
          for (const second of DOTS) {
            const target = `/a${before}${first}${second}${after}b`;
            expect(joinTarget('/v1', target), target).toMatchObject({ code: 'BAD_REQUEST' });
          }
        }
      }
    }
  });

  it('keeps every byte of what it accepts', () => {
    fc.assert(
      fc.property(base, target, (basePath, path) => {
        const joined = joinTarget(basePath, path);
        if (typeof joined === 'string') expect(joined).toBe(withoutTrailingSlash(basePath) + path);
      }),
    );
  });

  it('accepts nothing that leaves the base when it is resolved, or decoded twice and resolved', () => {
    fc.assert(
      fc.property(base, target, (basePath, path) => {
        const joined = joinTarget(basePath, path);
        if (typeof joined !== 'string') return;
        const [ownPath = ''] = joined.split('?');
        for (const reading of [ownPath, decode(ownPath), decode(decode(ownPath))]) {
          expect(resolve(reading).startsWith(`${withoutTrailingSlash(basePath)}/`)).toBe(true);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

const base = fc.constantFrom('/', '/v1', '/v1/', '/a/b');
const piece = fc.constantFrom(
  '/',
  '//',
  '\\',
  '.',
  '..',
  '%2e',
  '%2E',
  '%252e',
  '%2f',
  '%5c',
  '%255C',
  '%32',
  '%09',
  ';',
  'a',
  '?',
  '%',
);
const target = fc.array(piece, { maxLength: 12 }).map((pieces) => `/${pieces.join('')}`);

function decode(path: string): string {
  return path.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
}

/** As a server behind the Fetch standard's URL parser sees it; parameters are dropped as Java servers do. */
function resolve(path: string): string {
  return new URL(`http://upstream.test${path.replaceAll(/;[^/\\]*/g, '').replaceAll('?', '%3F')}`).pathname;
}
