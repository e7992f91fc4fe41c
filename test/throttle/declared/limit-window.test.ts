/** When calls stop to count, beside what Temporal says of days and months. */
/// <reference lib="esnext.temporal" />
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DeclaredLimit } from '../../../src/throttle/declared/declared-limit.ts';
import { createLimitWindow, periodMs } from '../../../src/throttle/declared/limit-window.ts';

const LIMIT: DeclaredLimit = {
  ...{ name: 'l', calls: 10, per: '1d', window: 'calendar', timeZone: 'UTC' },
  ...{ countsRefused: true, spread: 'none', reserve: 0 },
};
/** With changes of the clock at midnight, by half an hour, of other hemispheres, and none. */
const ZONES = [
  ...['UTC', 'Europe/Berlin', 'America/New_York', 'America/Sao_Paulo', 'Asia/Beirut', 'Africa/Cairo', 'America/Havana'],
  ...['Australia/Lord_Howe', 'Asia/Kathmandu', 'Pacific/Apia', 'America/Santiago', 'Asia/Tehran', 'Pacific/Auckland'],
];
const instants = fc.integer({ min: Date.UTC(2012, 0, 1), max: Date.UTC(2031, 0, 1) });

describe('a calendar window', () => {
  it('of a day ends with the local date, also where clocks change', () => {
    fc.assert(
      fc.property(instants, fc.constantFrom(...ZONES), (at, timeZone) => {
        const day = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(timeZone);
        const next = day.toPlainDate().add({ days: 1 }).toZonedDateTime(timeZone);
        expect(createLimitWindow({ ...LIMIT, timeZone }).endOf(at)).toBe(next.epochMilliseconds);
      }),
      { numRuns: 2000 },
    );
  });

  it('of a month ends with the local month', () => {
    fc.assert(
      fc.property(instants, fc.constantFrom(...ZONES), (at, timeZone) => {
        const day = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(timeZone).toPlainDate();
        const next = day.with({ day: 1 }).add({ months: 1 }).toZonedDateTime(timeZone);
        expect(createLimitWindow({ ...LIMIT, per: '1mo', timeZone }).endOf(at)).toBe(next.epochMilliseconds);
      }),
      { numRuns: 1000 },
    );
  });

  it.each([
    ['25 hours where an hour is repeated', '2026-10-25T00:00:00+02:00', 25],
    ['23 hours where an hour is skipped', '2026-03-29T00:00:00+01:00', 23],
  ])('of a day has %s', (_, start, hours) => {
    const at = Date.parse(start);
    expect(createLimitWindow({ ...LIMIT, timeZone: 'Europe/Berlin' }).endOf(at)).toBe(at + hours * 3_600_000);
  });

  it('of up to an hour is aligned to the epoch', () => {
    const lengths = fc.constantFrom('1s', '10s', '1m', '15m', '1h');
    fc.assert(
      fc.property(instants, lengths, (at, per) => {
        const end = createLimitWindow({ ...LIMIT, per }).endOf(at) ?? NaN;
        expect(end % periodMs(per)).toBe(0);
        expect(end - at).toBeGreaterThan(0);
        expect(end - at).toBeLessThanOrEqual(periodMs(per));
      }),
    );
  });

  it('knows its end also when the clock is set back', () => {
    const window = createLimitWindow(LIMIT);
    const at = Date.UTC(2026, 5, 10, 12);
    expect(window.endOf(at)).toBe(Date.UTC(2026, 5, 11));
    expect(window.endOf(at - 86_400_000)).toBe(Date.UTC(2026, 5, 10));
    expect(window.endOf(at)).toBe(Date.UTC(2026, 5, 11));
  });

  it('counts a call near its end until the end of the next one', () => {
    const end = Date.UTC(2026, 5, 11);
    const window = createLimitWindow(LIMIT);
    expect(window.expiryAt(end - 1999)).toBe(end + 86_402_000);
    expect(window.expiryAt(end - 2001)).toBe(end + 2000);
    expect(createLimitWindow({ ...LIMIT, per: '10s' }).expiryAt(end - 150)).toBe(end + 10_200);
  });

  it.each([
    ['takes over a difference of clocks', 30_000, 30_000],
    ['ignores what whole seconds explain', 1200, 0],
    ['ignores another time zone', 3_600_000, 0],
  ])('%s', (_, statedLaterMs, adoptedMs) => {
    const end = Date.UTC(2026, 5, 11);
    const window = createLimitWindow(LIMIT);
    window.adjustEnd(end - 5_000_000, end + statedLaterMs);
    expect(window.endOf(end - 4_000_000)).toBe(end + adoptedMs);
    expect(window.endOf(end + adoptedMs)).toBe(end + 86_400_000 + adoptedMs);
  });
});

it('in a sliding window a call counts for the length of the window, and at most a hundredth longer', () => {
  const lengths = fc.constantFrom('1s', '10s', '7m', '1h', '1d', '1mo');
  fc.assert(
    fc.property(instants, lengths, (at, per) => {
      const window = createLimitWindow({ ...LIMIT, window: 'sliding', per });
      const expiresAt = window.expiryAt(at);
      expect(expiresAt - at).toBeGreaterThan(periodMs(per));
      expect(expiresAt - at).toBeLessThanOrEqual(periodMs(per) * 1.01);
    }),
  );
});

it.each(['', 's', '10', '0s', '-1s', '10w', 'x1s'])('refuses the period %j', (per) => {
  expect(() => createLimitWindow({ ...LIMIT, window: 'sliding', per })).toThrow(RangeError);
});
