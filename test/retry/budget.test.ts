/** The retry budget over ten seconds that slide, in virtual time. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRetryBudget } from '../../src/retry/budget.ts';
import type { RetryBudget } from '../../src/retry/budget.ts';

function takeAll(budget: RetryBudget, now: number): number {
  let taken = 0;
  while (taken < 10_000 && budget.tryTake(now)) taken++;
  return taken;
}

function record(budget: RetryBudget, now: number, requests: number): void {
  for (let request = 0; request < requests; request++) budget.recordRequest(now);
}

describe('the retry budget', () => {
  it('always allows ten retries', () => {
    expect(takeAll(createRetryBudget(), 0)).toBe(10);
  });

  it('is a fifth of the requests of the last ten seconds', () => {
    const budget = createRetryBudget();
    record(budget, 0, 500);
    record(budget, 5000, 500);
    expect(takeAll(budget, 9999)).toBe(200);
    expect(takeAll(budget, 9999)).toBe(0);
  });

  it('forgets what is older than its window', () => {
    const budget = createRetryBudget();
    record(budget, 0, 500);
    expect(takeAll(budget, 10_000)).toBe(10);
    expect(takeAll(budget, 19_999)).toBe(0);
    expect(takeAll(budget, 20_000)).toBe(10);
    record(budget, 1e9, 100);
    expect(takeAll(budget, 1e9)).toBe(20);
  });

  it('takes back a retry that was not made, while it is in the window', () => {
    const budget = createRetryBudget();
    expect(takeAll(budget, 0)).toBe(10);
    budget.giveBack(999);
    expect(takeAll(budget, 5000)).toBe(1);
    // The one of the sixth second still counts, those of the first do not.
    expect(takeAll(budget, 10_000)).toBe(9);
    budget.giveBack(0);
    expect(takeAll(budget, 10_000)).toBe(0);
  });

  it('never grants more than its share in any ten seconds', () => {
    const step = fc.record({ waitMs: fc.nat(4000), requests: fc.nat(60), tries: fc.nat(40) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const budget = createRetryBudget();
        const seen: { at: number; requests: number; granted: number }[] = [];
        let at = 0;
        for (const { waitMs, requests, tries } of steps) {
          at += waitMs;
          record(budget, at, requests);
          let granted = 0;
          for (let tried = 0; tried < tries; tried++) granted += budget.tryTake(at) ? 1 : 0;
          seen.push({ at, requests, granted });
          const oldest = Math.floor(at / 1000) - 9;
          const recent = seen.filter((entry) => Math.floor(entry.at / 1000) >= oldest);
          const sum = (of: 'requests' | 'granted'): number => recent.reduce((total, entry) => total + entry[of], 0);
          // What a request earned may leave the window before the retry that it paid for.
          if (granted > 0) expect(sum('granted')).toBeLessThanOrEqual(Math.ceil(Math.max(10, 0.2 * sum('requests'))));
        }
      }),
    );
  });
});
