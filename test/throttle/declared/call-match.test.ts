/** Which calls a limit counts: every one that some server could take for a call of its path. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findMatch, readSegments } from '../../../src/throttle/declared/call-match.ts';
import { joinTarget } from '../../../src/upstream/request-target.ts';
import { pathTargets, READERS, readOrNothing } from '../../support/path-readers.ts';

const valueOf = (path: string, target: string): string | undefined => findMatch({ path }, 'GET', readSegments(target));

/** The plain meaning of a prefix by whole segments. */
function isBelow(pattern: string, path: string): boolean {
  const segments = path.split('/').slice(1);
  return pattern
    .split('/')
    .slice(1)
    .every((name, index) => (name === '*' ? (segments[index] ?? '') !== '' : segments[index] === name));
}

it.each([
  ['/policies', '/policies', ''],
  ['/policies', '/policies/1?x=/other', ''],
  ['/policies', '/policiesx', undefined],
  ['/policies', '/Policies', undefined],
  ['/policies', '/v1/policies', undefined],
  ['/policies', '/%70olicies', ''],
  ['/policies', '//policies', ''],
  ['/policies/new', '/policies%2Fnew', ''],
  ['/policies/new', '/policies%252fnew', ''],
  ['/policies/new', '/policies;v=1/new', ''],
  ['/', '/anything', ''],
  ['/tenants/*', '/tenants', undefined],
  ['/tenants/*', '/tenants/', undefined],
  ['/tenants/*', '/tenants/a', 'a'],
  ['/tenants/*', '/tenants/%61/b', 'a'],
  ['/tenants/*', '/tenants/%c3%bc', '\u00c3\u00bc'],
  ['/tenants/*', '/tenants/%C3%BC?a', '\u00c3\u00bc'],
  ['/quotes/*', '//quotes%2f%3b', ''],
  ['/*/x/*', '/a/x/b/c', 'a/b'],
])('the limit of %s takes %s for %s', (path, target, value) => {
  expect(valueOf(path, target)).toBe(value);
});

it('without methods or without a path it counts all of them', () => {
  expect(findMatch({ methods: ['POST'] }, 'POST', readSegments('/x'))).toBe('');
  expect(findMatch({ methods: ['POST'] }, 'GET', readSegments('/x'))).toBeUndefined();
  expect(findMatch({ path: '/x' }, 'DELETE', readSegments('/x'))).toBe('');
});

describe('for every path that is forwarded', () => {
  const starts = fc.constantFrom('', '/', '/quotes', '/%71uotes', '/x%2f', '/quotes/special', '/policies;v=1');
  const patterns = fc.constantFrom('/quotes', '/quotes/special', '/policies', '/*/special', '/quotes/*');

  it('no spelling that a server takes for the path of the limit passes it', () => {
    let counted = 0;
    fc.assert(
      fc.property(starts, pathTargets, patterns, (start, rest, pattern) => {
        const target = start + rest;
        if (typeof joinTarget('/', target) !== 'string') return;
        const path = target.split('?', 1)[0] ?? '';
        const isCounted = valueOf(pattern, target) !== undefined;
        if (isCounted) counted++;
        for (const read of READERS) {
          const seen = readOrNothing(read, path);
          if (seen !== undefined && isBelow(pattern, seen))
            expect(`${target} ${String(isCounted)}`).toBe(`${target} true`);
        }
      }),
      { numRuns: 5000 },
    );
    expect(counted).toBeGreaterThan(300);
  });

  it('a plain path is counted by the plain meaning of the prefix', () => {
    const plain = fc
      .array(fc.constantFrom('quotes', 'special', 'policies', 'x'), { minLength: 1, maxLength: 4 })
      .map((segments) => `/${segments.join('/')}`);
    fc.assert(
      fc.property(plain, patterns, (path, pattern) => {
        expect(valueOf(pattern, path) !== undefined).toBe(isBelow(pattern, path));
      }),
    );
  });

  it('every spelling of a value is the same value', () => {
    const spelling = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
      .filter((text) => /^[^./\\;?#%\0- ]+$/.test(text));
    const escapes = fc.array(fc.boolean(), { minLength: 64, maxLength: 64 });
    fc.assert(
      fc.property(spelling, escapes, (text, choices) => {
        const bytes = [...Buffer.from(text)];
        const spelled = bytes.map((byte, index) => {
          const escape = `%${byte.toString(16).padStart(2, '0')}`;
          if (byte < 0x80 && choices[index] !== true) return String.fromCharCode(byte);
          return choices[index] === true ? escape.toUpperCase() : escape;
        });
        expect(valueOf('/tenants/*', `/tenants/${spelled.join('')}`)).toBe(String.fromCharCode(...bytes));
      }),
    );
  });
});
