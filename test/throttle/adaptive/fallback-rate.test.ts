import { describe, expect, it } from 'vitest';
import { FallbackRate } from '../../../src/throttle/adaptive/fallback-rate.ts';

const DECREASE_FACTOR = 0.85;

/** The rates after each second in use. */
function ratesInUse(fallback: FallbackRate, seconds: number, slowdown = 1): number[] {
  return Array.from({ length: seconds }, () => {
    for (let step = 0; step < 10; step++) fallback.increase(100, slowdown);
    return fallback.rate;
  });
}

describe('the fallback rate', () => {
  it('doubles with each second in use before the first refusal', () => {
    const fallback = new FallbackRate(2, DECREASE_FACTOR);
    expect(ratesInUse(fallback, 4).map((rate) => Math.round(rate))).toEqual([4, 8, 16, 32]);
  });

  it('falls to a share of the refused rate, returns to it within six seconds in use, and exceeds it slowly', () => {
    const fallback = new FallbackRate(10, DECREASE_FACTOR);
    fallback.decrease(10, 20);
    expect(fallback.rate).toBe(8.5);
    const rates = ratesInUse(fallback, 20);
    expect(rates).toEqual(rates.toSorted((a, b) => a - b));
    expect(rates[4]).toBeLessThan(10);
    expect(rates[5]).toBeCloseTo(10, 1);
    expect(rates[8]).toBeLessThan(11);
    expect(rates[19]).toBeGreaterThan(20);
  });

  it('falls to the accepted rate when that is lower, and by half at most', () => {
    const fallback = new FallbackRate(10, DECREASE_FACTOR);
    fallback.decrease(10, 7);
    expect(fallback.rate).toBe(7);
    fallback.decrease(10, 1);
    expect(fallback.rate).toBe(5);
  });

  it('returns more slowly after contradictions, and at low rates', () => {
    const rateAfter = (refused: number, slowdown: number): number => {
      const fallback = new FallbackRate(refused, DECREASE_FACTOR);
      fallback.decrease(refused, refused);
      return (ratesInUse(fallback, 8, slowdown).at(-1) ?? NaN) / refused;
    };
    expect(rateAfter(10, 3)).toBeLessThan(rateAfter(10, 1));
    expect(rateAfter(0.1, 1)).toBeLessThan(rateAfter(10, 1));
  });

  it('does not grow when it is not in use', () => {
    const fallback = new FallbackRate(10, DECREASE_FACTOR);
    fallback.decrease(10, 20);
    fallback.increase(0, 1);
    expect(fallback.rate).toBe(8.5);
  });

  it('goes on from a rate that is handed in, remembering what was refused, or starts anew', () => {
    const fallback = new FallbackRate(10, DECREASE_FACTOR);
    fallback.decrease(10, 20);
    fallback.continueFrom(9);
    expect(ratesInUse(fallback, 1)[0]).toBeLessThan(10);
    fallback.restart(9);
    expect(ratesInUse(fallback, 1)[0]).toBeCloseTo(18, 1);
  });

  it.each([2, 4, 6])(
    'with refusals %d times as costly, cuts less and returns later, unless it is refused again soon',
    (cost) => {
      const secondsToReturn = (refusalCost: number): number => {
        const fallback = new FallbackRate(10, DECREASE_FACTOR);
        fallback.decrease(10, 20, refusalCost);
        return ratesInUse(fallback, 200).findIndex((rate) => rate >= 9.99);
      };
      expect(secondsToReturn(cost)).toBeGreaterThan(2 * secondsToReturn(1));

      const fallback = new FallbackRate(10, DECREASE_FACTOR);
      fallback.decrease(10, 20, cost);
      expect(fallback.rate).toBeGreaterThan(9);
      fallback.decrease(10, 20, cost);
      expect(fallback.rate).toBe(8.5);
      ratesInUse(fallback, 200);
      fallback.decrease(10, 20, cost);
      expect(fallback.rate).toBeGreaterThan(9);
    },
  );

  it('stays above zero and finite for any input', () => {
    const fallback = new FallbackRate(0, DECREASE_FACTOR);
    for (let refusal = 0; refusal < 100; refusal++) {
      fallback.decrease(fallback.rate, 0);
      fallback.decreaseAfterProbe();
    }
    expect(fallback.rate).toBeCloseTo(1 / 30);
    for (const rate of [0, -1, NaN, Infinity]) {
      fallback.continueFrom(rate);
      expect(fallback.rate).toBeGreaterThan(0);
      expect(fallback.rate).toBeLessThan(Infinity);
    }
    fallback.decrease(Infinity, 5);
    expect(fallback.rate).toBe(4.25);
  });
});
