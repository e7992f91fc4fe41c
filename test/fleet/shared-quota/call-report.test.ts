/** Call reports: encoding, decoding and bounds. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decodeCalls,
  encodeCalls,
  ReportBuffer,
  type ReportedCalls,
} from '../../../src/fleet/shared-quota/call-report.ts';
import { ClockOffset } from '../../../src/fleet/shared-quota/clock-offset.ts';

const call = (at: number, traits: Partial<ReportedCalls> = {}): ReportedCalls => ({
  at,
  count: 1,
  tookMs: 5,
  isRefused: false,
  isWaitedFor: false,
  isPauseProbe: false,
  ...traits,
});

const countOf = (calls: readonly ReportedCalls[]): number => calls.reduce((total, { count }) => total + count, 0);

const same = (at: number): number => at;

/** The store's clock shows the same time. */
function createReport(): ReportBuffer {
  const clockOffset = new ClockOffset();
  clockOffset.addSample(0, 0, 0);
  return new ReportBuffer(clockOffset);
}

describe('a report', () => {
  test('is decoded as it was encoded, with converted instants', () => {
    const calls = [
      call(10),
      call(20, { isRefused: true }),
      call(30, { isWaitedFor: true, isPauseProbe: true, count: 7 }),
    ];
    const text = encodeCalls(calls, (at) => at + 1_790_000_000_000);
    expect(decodeCalls(text, (at) => at - 1_790_000_000_000, 30)).toEqual(calls);
  });

  test('is bounded and loses no recent call: near calls are merged, refused ones separately', () => {
    const at = fc.integer({ min: 0, max: 9000 });
    fc.assert(
      fc.property(fc.array(fc.tuple(at, fc.integer({ min: 0, max: 99 })), { maxLength: 3000 }), (made) => {
        const report = createReport();
        for (const [at, chance] of made) report.add(call(at, { isRefused: chance === 0 }));
        const limit = report.takeCalls();
        const refused = made.filter(([, chance]) => chance === 0).length;
        expect(countOf(limit)).toBe(made.length);
        expect(countOf(limit.filter(({ isRefused }) => isRefused))).toBe(refused);
        expect(limit.length).toBeLessThanOrEqual(65 + 2 * Math.min(65, refused));
        expect(report.size).toBe(0);
      }),
    );
  });

  test.each([
    ['one after the other', (nth: number) => call(nth * 20, { isRefused: true })],
    ['all at once', () => call(7, { isRefused: true })],
    ['with responses in reverse order', (nth: number) => call(9000 - nth, { isRefused: true })],
    ['each a probe', (nth: number) => call(nth * 500, { isRefused: true, isPauseProbe: true })],
    ['every other one', (nth: number) => call(nth, { isRefused: nth % 2 === 0 })],
    ['probes among them', (nth: number) => call(nth, { isRefused: nth % 3 > 0, isPauseProbe: nth % 3 === 1 })],
  ])('is bounded for 20 000 unreported refusals, %s', (_, make) => {
    const report = createReport();
    let most = 0;
    for (let nth = 0; nth < 20_000; nth++) {
      report.add(make(nth));
      most = Math.max(most, report.size);
    }
    expect(most).toBeLessThanOrEqual(1024);
    const limit = report.takeCalls();
    expect(limit.length).toBeLessThanOrEqual(325);
    expect(encodeCalls(limit, (at) => at + 1_790_000_000_000).length).toBeLessThan(10_000);
  });

  test('keeps the last second after a long time without an exchange', () => {
    const report = createReport();
    for (let nth = 0; nth < 20_000; nth++) report.add(call(nth * 300, { isRefused: true, isPauseProbe: true }));
    const [last, probe] = [19_999 * 300, { isRefused: true, isPauseProbe: true }];
    report.onConnected(last);
    expect(report.takeCalls()).toEqual([900, 600, 300, 0].map((ago) => call(last - ago, probe)));
  });

  test('omits old calls after a reconnection, and dates a refusal by the last refused call', () => {
    const report = createReport();
    report.add(call(10));
    report.add(call(2000, { isRefused: true }));
    report.onConnected(2000);
    report.recordRefusal(2500, undefined);
    expect(report.takeRefusal()?.at).toBe(2000);
    expect(report.takeCalls().map(({ at }) => at)).toEqual([2000]);
    report.recordRefusal(2500, undefined);
    expect(report.takeRefusal()?.at).toBe(2500);
  });

  test.each([
    '',
    ';;',
    'x y z;',
    '1 2;',
    '1 -5 3 0;',
    'NaN 1 1 0;',
    '1 1 -1 0;',
    '1 1 1 0.5;',
    '1 1e9 0 0;',
    '6 1 0 0;',
    '1 1 1e9 0;',
    '1e300 1 1 0;',
  ])('that is none is passed over: %j', (text) => {
    expect(decodeCalls(`${text}5 1 2 1;`, same, 5)).toEqual([call(5, { tookMs: 2, isRefused: true })]);
  });

  test('stands for a bounded number of calls, also if it states more', () => {
    const number = fc.oneof(fc.integer({ min: 0, max: 20_000 }), fc.double());
    const entry = fc.tuple(number, number, number, fc.integer({ min: 0, max: 7 })).map((one) => `${one.join(' ')};`);
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 200 }), fc.integer({ min: 0, max: 20_000 }), (entries, latest) => {
        const calls = decodeCalls(entries.join(''), same, latest);
        expect(countOf(calls)).toBeLessThanOrEqual(65_536);
        for (const one of calls) expect(one.at).toBeLessThanOrEqual(latest);
      }),
    );
  });
});
