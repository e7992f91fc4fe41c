import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { evaluateRatios } from './verdict.ts';

describe('the verdict on two builds', () => {
  it('calls ratios on both sides of 1 the same', () => {
    expect(evaluateRatios([0.97, 1.04, 1.01, 0.99, 1.0]).kind).toBe('the same');
  });

  it('calls a build slower whose ratios are all above 1, and gives their mean', () => {
    const { kind, ratio, interval } = evaluateRatios([1.04, 1.06, 1.05, 1.05]);
    expect(kind).toBe('slower');
    expect(ratio).toBeCloseTo(1.05, 2);
    expect(interval[0]).toBeGreaterThan(1.03);
    expect(interval[1]).toBeLessThan(1.07);
  });

  it('is the opposite when the builds change places', () => {
    const ratios = fc.array(fc.double({ min: 0.5, max: 2, noNaN: true }), { minLength: 2, maxLength: 40 });
    const opposite = { faster: 'slower', slower: 'faster', 'the same': 'the same' } as const;
    fc.assert(
      fc.property(ratios, (all) => {
        const there = evaluateRatios(all);
        const back = evaluateRatios(all.map((ratio) => 1 / ratio));
        expect(back.kind).toBe(opposite[there.kind]);
        expect(back.ratio).toBeCloseTo(1 / there.ratio, 9);
      }),
    );
  });

  it('needs more than one start', () => {
    expect(() => evaluateRatios([1])).toThrow(RangeError);
  });
});
