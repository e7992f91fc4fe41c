/** The unit of a reset and the owner of a partition, learned from successive responses. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readMadeAt } from '../../../src/platform/origin-clock.ts';
import { readRateLimitSignal } from '../../../src/throttle/signals/rate-limit-signal.ts';
import { ObservedSignalContext } from '../../../src/throttle/signals/observed-signal-context.ts';

/** @param readings pairs of instant and value */
function unitAfter(...readings: readonly (readonly [number, string])[]): number {
  const context = new ObservedSignalContext();
  for (const [at, reset] of readings) context.observe(new Map([['x-ratelimit-reset', reset]]), at);
  return context.resetUnitMs;
}

describe('a reset in plain digits', () => {
  it('keeps its unit whatever the fields of another sender show', () => {
    const context = new ObservedSignalContext();
    for (const [at, reset] of [
      [0, '60000'],
      [1000, '59000'],
      [2000, '58000'],
    ] as const)
      for (const name of ['x-acme-ratelimit-reset', 'x-contentful-ratelimit-minute-reset'])
        context.observe(new Map([[name, reset]]), at);
    const fields = new Map([
      ['x-ratelimit-reset', '30'],
      ['x-ratelimit-remaining', '0'],
    ]);
    expect(readRateLimitSignal(429, fields, readMadeAt(undefined, undefined, 0), context).statedWaitMs).toBe(30_000);
  });

  it('a reset that is measured in milliseconds leaves an epoch in another field an instant', () => {
    const fields = new Map(Object.entries({ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1793534405' }));
    const context = { isOwnPartition: () => true, resetUnitMs: 1, hints: new Map() };
    const made = readMadeAt('Sun, 01 Nov 2026 12:00:00 GMT', undefined, Date.UTC(2026, 10, 1, 12));
    expect(readRateLimitSignal(429, fields, made, context).statedWaitMs).toBe(5000);
  });

  it('counts seconds until milliseconds are measured', () => {
    expect(unitAfter()).toBe(1000);
    expect(unitAfter([0, '60000'])).toBe(1000);
    expect(unitAfter([0, '60000'], [1000, '59000'])).toBe(1000);
  });

  it('counts milliseconds after two agreeing measurements', () => {
    expect(unitAfter([0, '60000'], [1000, '59010'], [2000, '57990'])).toBe(1);
  });

  it.each<[string, ...[number, string][]]>([
    ['that stands still', [0, '60'], [1000, '60'], [2000, '60']],
    ['that falls by one a second', [0, '60'], [1000, '59'], [2000, '58']],
    ['that only rises', [0, '60000'], [1000, '61000'], [2000, '62000']],
    ['that falls at another speed', [0, '60000'], [1000, '50000'], [2000, '40000']],
    ['of responses close together', [0, '60000'], [100, '59900'], [200, '59800']],
    ['of responses minutes apart', [0, '600000'], [61_000, '539000'], [122_000, '478000']],
    ['that is an epoch', [0, '1793534400000'], [1000, '1793534399000'], [2000, '1793534398000']],
    ['without a number', [0, 'x'], [1000, ''], [2000, '-5']],
  ])('%s counts seconds', (_, ...readings) => {
    expect(unitAfter(...readings)).toBe(1000);
  });

  it('counts seconds again at the first sign of them', () => {
    expect(unitAfter([0, '60000'], [1000, '59000'], [2000, '58000'], [3000, '57999'])).toBe(1000);
  });

  it('in milliseconds is recognized at any rate of calls, over many windows', () => {
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

  it('in seconds is never taken for milliseconds, at any rate of calls and any window', () => {
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
  it('is ours while its policy always names the same', () => {
    const { isOwnPartition } = new ObservedSignalContext();
    for (let count = 0; count < 5; count++) {
      expect(isOwnPartition('minute', 'us')).toBe(true);
      expect(isOwnPartition('day', 'also us')).toBe(true);
    }
  });

  it('that changes from call to call is not ours', () => {
    const { isOwnPartition } = new ObservedSignalContext();
    const results = ['a', 'b', 'a', 'b', 'c', 'a'].map((partition) => isOwnPartition('minute', partition));
    expect(results).toEqual([true, false, false, false, false, false]);
  });

  it('that changed once, as with a new token, is ours again after eight responses', () => {
    const { isOwnPartition } = new ObservedSignalContext();
    isOwnPartition('minute', 'before');
    const results = Array.from({ length: 10 }, () => isOwnPartition('minute', 'after'));
    expect(results.indexOf(true)).toBe(8);
    expect(results.lastIndexOf(false)).toBe(7);
  });

  it('of a policy beyond the 16th is not ours', () => {
    const { isOwnPartition } = new ObservedSignalContext();
    const results = Array.from({ length: 20 }, (_, at) => isOwnPartition(`p${at}`, 'us'));
    expect(results.filter((isOwn) => isOwn)).toHaveLength(16);
  });
});
