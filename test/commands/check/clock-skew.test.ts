/** How far a server's clock is off, as far as the time of the exchange cannot explain it. */
import { expect, test } from 'vitest';
import { evaluateSkew, measureSkewMs } from '../../../src/commands/check/clock-skew.ts';

const NOW = Date.UTC(2027, 0, 2, 3, 4, 5);
const date = (offsetMs: number): string => new Date(NOW + offsetMs).toUTCString();

test.each([
  ['the same second', 0, 100, 0],
  ['the second before, cut off by the field', -1000, 100, 0],
  ['two seconds behind', -2000, 100, -1000],
  ['ahead by more than the exchange took', 3000, 500, 2500],
  ['within a slow exchange', 3000, 5000, 0],
])('%s', (_, offsetMs, tookMs, expected) => {
  expect(measureSkewMs({ date: date(offsetMs), sentAt: NOW, receivedAt: NOW + tookMs })).toBe(expected);
});

test.each([
  [0, false, 'ok', /agrees with ours/],
  [4_000, false, 'ok', /4 s ahead of ours/],
  [-20_000, true, 'warn', /19 s behind ours/],
  [3_600_000, false, 'warn', /3600 s ahead of ours/],
  [3_600_000, true, 'fail', /rejects our signed assertions/],
  [-3_600_000, true, 'fail', /3599 s behind/],
] as const)('a difference of %i ms, assertions %s: %s', (offsetMs, isFatal, outcome, words) => {
  const verdict = evaluateSkew({ date: date(offsetMs), sentAt: NOW, receivedAt: NOW }, isFatal);
  expect(verdict).toMatchObject({ outcome, detail: expect.stringMatching(words) as string });
  expect(verdict.advice === undefined).toBe(outcome === 'ok');
});

test.each([undefined, 'yesterday'])('skips without a valid Date field: %s', (text) => {
  expect(evaluateSkew({ date: text, sentAt: NOW, receivedAt: NOW }, true)).toMatchObject({ outcome: 'skip' });
});
