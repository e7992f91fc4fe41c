import { describe, expect, it } from 'vitest';
import { FallbackRate } from '../../../src/throttle/adaptive/fallback-rate.ts';

const CUT_SHARE = 0.85;

/** The rates after each second in use. */
function ratesInUse(search: FallbackRate, seconds: number, patience = 1): number[] {
  return Array.from({ length: seconds }, () => {
    for (let step = 0; step < 10; step++) search.increase(100, patience);
    return search.rate;
  });
}

describe('a rate that only refusals shape', () => {
  it('doubles each second of use until the first refusal', () => {
    const search = new FallbackRate(2, CUT_SHARE);
    expect(ratesInUse(search, 4).map((rate) => Math.round(rate))).toEqual([4, 8, 16, 32]);
  });

  it('is cut to a share of what was refused, returns within six seconds of use, and goes past it slowly at first', () => {
    const search = new FallbackRate(10, CUT_SHARE);
    search.decrease(10, 20);
    expect(search.rate).toBe(8.5);
    const rates = ratesInUse(search, 20);
    expect(rates).toEqual(rates.toSorted((a, b) => a - b));
    expect(rates[4]).toBeLessThan(10);
    expect(rates[5]).toBeCloseTo(10, 1);
    expect(rates[8]).toBeLessThan(11);
    expect(rates[19]).toBeGreaterThan(20);
  });

  it('is cut to what was accepted lately when that is less, yet never by more than half', () => {
    const search = new FallbackRate(10, CUT_SHARE);
    search.decrease(10, 7);
    expect(search.rate).toBe(7);
    search.decrease(10, 1);
    expect(search.rate).toBe(5);
  });

  it('returns slower where beliefs have failed, and where permits are rare', () => {
    const rateAfter = (refused: number, patience: number): number => {
      const search = new FallbackRate(refused, CUT_SHARE);
      search.decrease(refused, refused);
      return (ratesInUse(search, 8, patience).at(-1) ?? NaN) / refused;
    };
    expect(rateAfter(10, 3)).toBeLessThan(rateAfter(10, 1));
    expect(rateAfter(0.1, 1)).toBeLessThan(rateAfter(10, 1));
  });

  it('grows with nothing but use', () => {
    const search = new FallbackRate(10, CUT_SHARE);
    search.decrease(10, 20);
    search.increase(0, 1);
    expect(search.rate).toBe(8.5);
  });

  it('goes on from a rate that is handed in, remembering what was refused, or starts anew', () => {
    const search = new FallbackRate(10, CUT_SHARE);
    search.decrease(10, 20);
    search.continueFrom(9);
    expect(ratesInUse(search, 1)[0]).toBeLessThan(10);
    search.restart(9);
    expect(ratesInUse(search, 1)[0]).toBeCloseTo(18, 1);
  });

  it('never stops altogether, whatever it is given', () => {
    const search = new FallbackRate(0, CUT_SHARE);
    for (let refusal = 0; refusal < 100; refusal++) {
      search.decrease(search.rate, 0);
      search.decreaseAfterProbe();
    }
    expect(search.rate).toBeCloseTo(1 / 30);
    for (const rate of [0, -1, NaN, Infinity]) {
      search.continueFrom(rate);
      expect(search.rate).toBeGreaterThan(0);
      expect(search.rate).toBeLessThan(Infinity);
    }
    search.decrease(Infinity, 5);
    expect(search.rate).toBe(4.25);
  });
});
