/** What a replica tells of its calls, and what is read of it. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FleetReport, readCalls, writeCalls, type ReportedCalls } from '../../src/throttle/fleet-report.ts';

const call = (at: number, traits: Partial<ReportedCalls> = {}): ReportedCalls => ({
  at,
  count: 1,
  tookMs: 5,
  isRefused: false,
  isWaitedFor: false,
  isProbe: false,
  ...traits,
});

const same = (at: number): number => at;

describe('a report', () => {
  test('is read as it was written, by the clock in between', () => {
    const calls = [call(10), call(20, { isRefused: true }), call(30, { isWaitedFor: true, isProbe: true, count: 7 })];
    const text = writeCalls(calls, (at) => at + 1_790_000_000_000);
    expect(readCalls(text, (at) => at - 1_790_000_000_000)).toEqual(calls);
  });

  test('is bounded: near calls become one, refused ones stay, and none is lost', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 0, max: 99 })), { maxLength: 3000 }),
        (made) => {
          const report = new FleetReport();
          for (const [at, chance] of made) report.note(call(at, { isRefused: chance === 0 }));
          const told = report.take(-Infinity);
          const refused = made.filter(([, chance]) => chance === 0).length;
          expect(told.reduce((total, { count }) => total + count, 0)).toBe(made.length);
          expect(told.filter(({ isRefused }) => isRefused)).toHaveLength(refused);
          expect(told.length).toBeLessThanOrEqual(65 + 2 * refused);
          expect(report.isEmpty).toBe(true);
        },
      ),
    );
  });

  test('leaves out what is too old, and knows when the last refused call was made', () => {
    const report = new FleetReport();
    report.note(call(10));
    report.note(call(2000, { isRefused: true }));
    expect(report.refusedAt).toBe(2000);
    expect(report.take(1000).map(({ at }) => at)).toEqual([2000]);
    expect(report.refusedAt).toBeUndefined();
  });

  test.each(['', ';;', 'x y z;', '1 2;', '1 -5 3 0;', 'NaN 1 1 0;', '1 1 -1 0;', '1 1 1 0.5;', '1 1e9 0 0;'])(
    'that is none is passed over: %j',
    (text) => {
      expect(readCalls(`${text}5 1 2 1;`, same)).toEqual([call(5, { tookMs: 2, isRefused: true })]);
    },
  );
});
