import fc from 'fast-check';
import { expect, it } from 'vitest';
import { describeEndpoint } from '../../src/throttle/endpoint.ts';

it.each([
  ['/', 'GET /'],
  ['/policies?expand=holder/1', 'GET /policies'],
  ['/v1/policies/4711/holders?x', 'GET /*/policies/*/holders'],
  ['/a/b/c/d/e/f', 'GET /a/b/c/d'],
  [`/${'x'.repeat(25)}/holders`, 'GET /*/holders'],
  ['/policies/', 'GET /policies/'],
])('leaves identifiers and query out of %s', (path, expected) => {
  expect(describeEndpoint('GET', path)).toBe(expected);
});

it('has at most 110 characters, for any path', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 2000, unit: fc.constantFrom('/', 'a', '7', '?', '%', '\n') }), (path) => {
      expect(describeEndpoint('GET', `/${path}`).length).toBeLessThanOrEqual(110);
    }),
  );
});
