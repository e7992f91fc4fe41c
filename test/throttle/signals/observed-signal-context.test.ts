/** What successive answers tell of a reset's unit and of whose quota a partition is. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ObservedSignalContext } from '../../../src/throttle/signals/observed-signal-context.ts';

/** @param readings instant and value, by turns */
function unitAfter(...readings: readonly (readonly [number, string])[]): number {
  const context = new ObservedSignalContext();
  for (const [at, reset] of readings) context.observe((name) => (name === 'x-ratelimit-reset' ? reset : undefined), at);
  return context.resetUnitMs;
}

describe('a plain reset', () => {
  it('counts seconds as long as nothing else is shown', () => {
    expect(unitAfter()).toBe(1000);
    expect(unitAfter([0, '60000'])).toBe(1000);
    expect(unitAfter([0, '60000'], [1000, '59000'])).toBe(1000);
  });

  it('counts milliseconds after two measurements of them', () => {
    expect(unitAfter([0, '60000'], [1000, '59010'], [2000, '57990'])).toBe(1);
  });

  it.each<[string, ...[number, string][]]>([
    ['that stands still', [0, '60'], [1000, '60'], [2000, '60']],
    ['that falls by one a second', [0, '60'], [1000, '59'], [2000, '58']],
    ['that only rises', [0, '60000'], [1000, '61000'], [2000, '62000']],
    ['that falls at no such speed', [0, '60000'], [1000, '50000'], [2000, '40000']],
    ['of answers that come together', [0, '60000'], [100, '59900'], [200, '59800']],
    ['of answers minutes apart', [0, '600000'], [61_000, '539000'], [122_000, '478000']],
    ['that is an epoch', [0, '1793534400000'], [1000, '1793534399000'], [2000, '1793534398000']],
    ['that is none', [0, 'x'], [1000, ''], [2000, '-5']],
  ])('%s counts seconds', (_, ...readings) => {
    expect(unitAfter(...readings)).toBe(1000);
  });

  it('counts seconds again at the first sign of them', () => {
    expect(unitAfter([0, '60000'], [1000, '59000'], [2000, '58000'], [3000, '57999'])).toBe(1000);
  });

  it('in milliseconds is known for it at any pace of calls, over many windows', () => {
    const window = 30_000;
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 20, max: 4000 }), { minLength: 60, maxLength: 200 }), (gaps) => {
        let now = 0;
        const readings = gaps.map((gap): [number, string] => [(now += gap), String(window - (now % window))]);
        const apart = readings.slice(1).filter(([, reset], at) => Number(reset) < Number(readings[at]![1]));
        fc.pre(apart.length > 40 && now > 20_000);
        expect(unitAfter(...readings)).toBe(1);
      }),
    );
  });

  it('in seconds is never taken for another, at any pace of calls and any window', () => {
    const windows = fc.constantFrom(1, 10, 60, 3600, 86_400);
    fc.assert(
      fc.property(windows, fc.array(fc.integer({ min: 1, max: 4000 }), { maxLength: 200 }), (window, gaps) => {
        let now = 0;
        const readings = gaps.map((gap): [number, string] => {
          now += gap;
          return [now, String(Math.ceil(window - ((now / 1000) % window)))];
        });
        expect(unitAfter(...readings)).toBe(1000);
      }),
    );
  });
});

describe('a partition', () => {
  it('is ours while it is always the same, each policy for itself', () => {
    const { isOwnPartition } = new ObservedSignalContext();
    for (let count = 0; count < 5; count++) {
      expect(isOwnPartition('minute', 'us')).toBe(true);
      expect(isOwnPartition('day', 'also us')).toBe(true);
    }
  });

  it('that changes from call to call is nobody’s', () => {
    const { isOwnPartition } = new ObservedSignalContext();
    const verdicts = ['a', 'b', 'a', 'b', 'c', 'a'].map((partition) => isOwnPartition('minute', partition));
    expect(verdicts).toEqual([true, false, false, false, false, false]);
  });

  it('that has changed once, as with a new token, is ours again soon', () => {
    const { isOwnPartition } = new ObservedSignalContext();
    isOwnPartition('minute', 'before');
    const verdicts = Array.from({ length: 10 }, () => isOwnPartition('minute', 'after'));
    expect(verdicts.indexOf(true)).toBe(8);
    expect(verdicts.lastIndexOf(false)).toBe(7);
  });

  it('of one policy too many is nobody’s', () => {
    const { isOwnPartition } = new ObservedSignalContext();
    const verdicts = Array.from({ length: 20 }, (_, at) => isOwnPartition(`p${at}`, 'us'));
    expect(verdicts.filter((isOurs) => isOurs)).toHaveLength(16);
  });
});
