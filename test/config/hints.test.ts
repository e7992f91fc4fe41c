/** `throttle.hints`: which maps are accepted, and what a fault says. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { fieldHints } from '../../src/config/schema/formats/field-hints.ts';
import type { Format, TextMap } from '../../src/config/schema/formats/formats.ts';
import { HINT_MEANINGS } from '../../src/throttle/signals/hinted-quotas.ts';
import { problemsOf } from './base-env.ts';

const FORMAT: Format<TextMap> = fieldHints;

function faultOf(value: unknown): string | undefined {
  try {
    FORMAT(value);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

it('accepts any field names with known meanings, as an object or as JSON', () => {
  const names = fc.uniqueArray(fc.stringMatching(/^[A-Za-z0-9-]{1,40}$/), {
    maxLength: 32,
    selector: (name) => name.toLowerCase(),
  });
  const property = fc.property(names, fc.constantFrom(...HINT_MEANINGS), (fields, meaning) => {
    const hints = Object.fromEntries(fields.map((name) => [name, meaning]));
    expect(faultOf(hints)).toBeUndefined();
    expect(FORMAT.fromText(JSON.stringify(hints))).toEqual(hints);
  });
  fc.assert(property);
});

it.each([
  ['not an object', 'remaining', 'expected field names with meanings'],
  ['a list', ['remaining'], 'expected field names with meanings'],
  ['a name with a space', { 'X Left': 'remaining' }, '"X Left": expected a field name'],
  ['an empty name', { '': 'remaining' }, '"": expected a field name'],
  ['an unknown meaning', { 'X-Left': 'left' }, '"X-Left": expected one of remaining, limit, resetAt'],
  ['a number', { 'X-Left': 5 }, '"X-Left": must be a text'],
  ['a name in another case', { 'X-Left': 'remaining', 'x-left': 'limit' }, '"x-left" is there twice'],
  [
    'more than 32 fields',
    Object.fromEntries(Array.from({ length: 33 }, (_, at) => [`X-${at}`, 'limit'])),
    'expected at most 32 fields; found 33',
  ],
])('refuses %s', (_what, value, fault) => {
  expect(faultOf(value)).toContain(fault);
});

it.each(['{"X-Left":"left"}', '{"X-Left":5}'])('calls the value %s of a variable a section, as in a file', (text) => {
  expect(problemsOf({ SIDECAR_THROTTLE_HINTS: text })).toEqual([
    expect.stringContaining('(SIDECAR_THROTTLE_HINTS): found a section; "X-Left": '),
  ]);
});
