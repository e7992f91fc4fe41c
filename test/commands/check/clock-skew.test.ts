/** What a difference of the clocks means for the calls. */
import { expect, test } from 'vitest';
import { evaluateSkew } from '../../../src/commands/check/clock-skew.ts';

const NOW = Date.UTC(2027, 0, 2, 3, 4, 5);

test('skips without a Date field', () => {
  expect(evaluateSkew(undefined, true, NOW)).toMatchObject({ outcome: 'skip' });
});

test.each([
  [0, false, 'ok', /agrees with ours/],
  [-2_900, true, 'ok', /agrees with ours/],
  [4_000, false, 'ok', /4 s ahead of ours/],
  [-20_000, true, 'warn', /19 s behind ours, 2027-01-02T03:04:05Z/],
  [3_600_000, false, 'warn', /3600 s ahead of ours/],
  [3_600_000, true, 'fail', /rejects our signed assertions/],
  [-3_600_000, true, 'fail', /3599 s behind/],
] as const)('a difference of %i ms, assertions %s: %s', (skewMs, isFatal, outcome, words) => {
  const verdict = evaluateSkew(skewMs, isFatal, NOW);
  expect(verdict).toMatchObject({ outcome, detail: expect.stringMatching(words) as string });
  expect(verdict.advice === undefined).toBe(skewMs >= -2_900 && skewMs <= 4_000);
});
