/** What a count becomes that a response has lowered, when the calls that it was lowered by would have stopped to count. */
import { expect, it } from 'vitest';
import { DeclaredLimits } from '../../../src/throttle/declared/declared-limits.ts';
import type { DeclaredLimit } from '../../../src/throttle/declared/declared-limit.ts';
import { ACCEPTED, grantOf } from './grants.ts';

const MIDNIGHT = Date.UTC(2026, 10, 25);
const TERMS: DeclaredLimit = {
  ...{ name: 'l', calls: 100, per: '1h', window: 'sliding', timeZone: 'UTC' },
  ...{ countsRefused: true, spread: 'none', reserve: 0 },
};

it.each([
  ['of an hour', TERMS, 0, 600_000, 3_700_000],
  ['of a day, lowered at its beginning', { ...TERMS, per: '1d', window: 'calendar' }, -60_000, 1000, 10_000],
] as const)('a lowered count %s never falls below 0', (_, terms, madeAt, statedAt, laterAt) => {
  const limits = new DeclaredLimits({ limits: [terms], toEpoch: (now) => MIDNIGHT + now });
  for (let call = 0; call < 50; call++) limits.settle(madeAt, grantOf(madeAt, limits.forAll.take(madeAt)), ACCEPTED);
  const windowMs = terms.per === '1h' ? 3_600_000 : 86_400_000;
  limits.correct(statedAt, statedAt, [{ quota: 100, windowMs, remaining: 100 }], 0);
  expect(limits.forAll.available(statedAt, false)).toBe(100);
  expect(limits.forAll.available(laterAt, false)).toBe(100);
});
