import { expect, test } from 'vitest';
import { findMissingScopes } from '../../../src/token/endpoint/token-response.ts';

test.each<[string | undefined, string | undefined, string[]]>([
  ['a b', 'a b', []],
  ['a b', 'b a c', []],
  ['a b', 'a', ['b']],
  ['a b', 'c', ['a', 'b']],
  ['a b b', 'a', ['b']],
  ['urn:x.write', 'urn:x.writer', ['urn:x.write']],
  ['a', 'A', ['a']],
  // Unknown, not none.
  ['a b', undefined, []],
  ['a b', '', []],
  ['a b', ' ', []],
  [undefined, 'a', []],
])('requested %j, granted %j: %j is missing', (requested, granted, missing) => {
  expect(findMissingScopes(requested, granted)).toEqual(missing);
});
