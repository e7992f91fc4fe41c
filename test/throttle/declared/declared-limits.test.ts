/** Declared limits beside upstreams that count exactly: at any instant between sending and response, and by a clock of their own. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DeclaredLimits } from '../../../src/throttle/declared/declared-limits.ts';
import type { DeclaredLimit } from '../../../src/throttle/declared/declared-limit.ts';
import { createLimitWindow, periodMs } from '../../../src/throttle/declared/limit-window.ts';
import type { TakenPermits } from '../../../src/throttle/declared/counted-limit.ts';
import { ACCEPTED, REFUSED, grantOf } from './grants.ts';

const START = Date.UTC(2026, 10, 24, 13, 17, 3);

function limit(terms: Partial<DeclaredLimit>): DeclaredLimit {
  return {
    ...{ name: 'l', calls: 10, per: '10s', window: 'sliding', timeZone: 'UTC' },
    ...{ countsRefused: true, spread: 'none', reserve: 0 },
    ...terms,
  };
}

function create(...limits: DeclaredLimit[]): DeclaredLimits {
  return new DeclaredLimits({ limits, toEpoch: (now) => START + now });
}

type Draw = readonly [tookMs: number, countedAfterMs: number];

/** Sends as early as permitted, again and again; `draw` gives a call's time to the response, and when in it the upstream counts. */
function sendAll(limits: DeclaredLimits, durationMs: number, draw: () => Draw): number[] {
  const counted: number[] = [];
  const pending: { readonly at: number; readonly sentAt: number; readonly taken: TakenPermits }[] = [];
  let now = 0;
  while (now < durationMs) {
    for (const one of pending.filter(({ at }) => at <= now)) {
      pending.splice(pending.indexOf(one), 1);
      limits.settle(one.at, grantOf(one.sentAt, one.taken), ACCEPTED);
    }
    if (limits.forAll.isOpen(now, false)) {
      const [tookMs, countedAfterMs] = draw();
      pending.push({ at: now + tookMs, sentAt: now, taken: limits.forAll.take(now) });
      counted.push(now + countedAfterMs);
      now += 0.5;
    } else {
      const openAt = Math.max(now + 0.5, limits.forAll.nthAt(now, 0, false));
      now = Math.min(openAt, ...pending.map(({ at }) => Math.max(now + 0.5, at)));
    }
  }
  return counted.sort((one, other) => one - other);
}

/** The most calls that any time of this length holds. */
function mostWithin(counted: readonly number[], windowMs: number): number {
  let most = 0;
  for (let first = 0, last = 0; last < counted.length; last++) {
    while ((counted[last] ?? 0) - (counted[first] ?? 0) >= windowMs) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

function draws(maxMs: number): fc.Arbitrary<readonly [number, number]> {
  const parts = fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: 0, max: 1, noNaN: true }));
  return parts.map(([took, counted]) => [took * maxMs, took * maxMs * counted] as const);
}

describe('a sliding limit', () => {
  it('is never exceeded at the upstream, whenever that counts a call', () => {
    const terms = fc.record({ calls: fc.integer({ min: 1, max: 60 }), per: fc.constantFrom('1s', '3s', '10s', '1m') });
    fc.assert(
      fc.property(terms, fc.infiniteStream(draws(100)), ({ calls, per }, stream) => {
        const counted = sendAll(create(limit({ calls, per })), 4 * periodMs(per), () => stream.next().value as Draw);
        expect(mostWithin(counted, periodMs(per))).toBeLessThanOrEqual(calls);
      }),
      { numRuns: 150 },
    );
  });

  it.each(['1s', '10s', '1m', '1h'])('of 100 per %s is used by 98.5 % and more', (per) => {
    const counted = sendAll(create(limit({ calls: 100, per })), 20 * periodMs(per), () => [1, 0.5]);
    expect(counted.length / 20 / 100).toBeGreaterThan(0.985);
  });

  it('is never exceeded where each call takes about as long as the others, and slow responses cost little of it', () => {
    const counts = fc.record({
      phase: fc.double({ min: 0, max: 1, noNaN: true }),
      delays: fc.infiniteStream(draws(30)),
    });
    fc.assert(
      fc.property(counts, fc.constantFrom(20, 80, 400), ({ phase, delays }, usualMs) => {
        // Delays on the way there move the count, those on the way back do not.
        const draw = (): Draw => {
          const [there, back] = delays.next().value as Draw;
          return [usualMs + there + back, usualMs * phase + there];
        };
        const counted = sendAll(create(limit({ calls: 50, per: '1s' })), 60_000, draw);
        expect(mostWithin(counted, 1000)).toBeLessThanOrEqual(50);
        expect(counted.length / 60 / 50).toBeGreaterThan(0.88);
      }),
      { numRuns: 40 },
    );
  });

  it('is never exceeded by the millisecond in which the clock shows the time', () => {
    const clock = fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true }));
    fc.assert(
      fc.property(clock, fc.infiniteStream(draws(0.4)), (late, stream) => {
        const toEpoch = (now: number): number => START + now - (late.next().value as number);
        const limits = new DeclaredLimits({ limits: [limit({ calls: 100, per: '1s' })], toEpoch });
        const counted = sendAll(limits, 30_000, () => stream.next().value as Draw);
        expect(mostWithin(counted, 1000)).toBeLessThanOrEqual(100);
      }),
      { numRuns: 30 },
    );
  });

  it('of several all hold, and the tighter one is used', () => {
    const limits = create(limit({ name: 'a', calls: 20, per: '1s' }), limit({ name: 'b', calls: 100, per: '10s' }));
    const counted = sendAll(limits, 100_000, () => [2, 1]);
    expect(mostWithin(counted, 1000)).toBeLessThanOrEqual(20);
    expect(mostWithin(counted, 10_000)).toBeLessThanOrEqual(100);
    expect(counted.length / 1000).toBeGreaterThan(0.97);
  });
});

describe('a calendar limit', () => {
  it('is never exceeded by a clock that differs by up to two seconds', () => {
    const skews = fc.integer({ min: -1900, max: 1900 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), skews, fc.infiniteStream(draws(50)), (calls, skewMs, stream) => {
        const counted = sendAll(
          create(limit({ calls, per: '5m', window: 'calendar' })),
          1_500_000,
          () => stream.next().value as Draw,
        );
        const perWindow = new Map<number, number>();
        for (const at of counted) {
          const window = Math.floor((START + at + skewMs) / 300_000);
          perWindow.set(window, (perWindow.get(window) ?? 0) + 1);
        }
        expect(Math.max(...perWindow.values())).toBeLessThanOrEqual(calls);
      }),
      { numRuns: 150 },
    );
  });

  it('opens with the next local day', () => {
    const timeZone = 'Europe/Berlin';
    const limits = create(limit({ calls: 2, per: '1d', window: 'calendar', timeZone }));
    limits.forAll.take(0);
    limits.forAll.take(0);
    const midnight = Date.parse('2026-11-25T00:00:00+01:00') - START;
    expect(limits.forAll.isOpen(midnight - 1, true)).toBe(false);
    expect(limits.forAll.nthAt(0, 0, false)).toBe(midnight + 2000);
    expect(limits.forAll.nthAt(0, 5, false)).toBe(midnight + 2000 + 2 * 86_400_000);
    expect(limits.forAll.isOpen(midnight + 2000, false)).toBe(true);
  });
});

it('nthAt says exactly when a call may go', () => {
  const calls = fc.array(fc.integer({ min: 0, max: 3000 }), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(calls, fc.boolean(), fc.constantFrom('sliding', 'calendar'), (gaps, isHigh, window) => {
      const limits = create(limit({ calls: 6, reserve: 2, window }), limit({ name: 'b', calls: 9, per: '30s' }));
      let now = 0;
      for (const gap of gaps) {
        now += gap;
        const openAt = limits.forAll.nthAt(now, 0, isHigh);
        expect(limits.forAll.isOpen(now, isHigh)).toBe(openAt <= now);
        if (openAt > now) {
          expect(limits.forAll.isOpen(openAt - 0.01, isHigh)).toBe(false);
          expect(limits.forAll.isOpen(openAt + 0.01, isHigh)).toBe(true);
        } else limits.forAll.take(now);
      }
    }),
  );
});

it('keeps the reserve for high priority', () => {
  const limits = create(limit({ calls: 5, reserve: 2 }));
  for (let call = 0; call < 3; call++) limits.forAll.take(0);
  expect([limits.forAll.isOpen(0, false), limits.forAll.isOpen(0, true)]).toEqual([false, true]);
  limits.forAll.take(0);
  limits.forAll.take(0);
  expect(limits.forAll.isOpen(0, true)).toBe(false);
});

it('gives back a call that was not made, and a refused one where refused ones do not count', () => {
  const limits = create(limit({ name: 'all', calls: 2 }), limit({ name: 'accepted', calls: 2, countsRefused: false }));
  const [one, other] = [limits.forAll.take(0), limits.forAll.take(0)];
  limits.giveBack(10, grantOf(0, one));
  expect(limits.state(10).map(({ used }) => used)).toEqual([1, 1]);
  limits.settle(10, grantOf(0, other), REFUSED);
  expect(limits.state(10).map(({ used }) => used)).toEqual([1, 0]);
});

describe('an even spread', () => {
  it('deals out what is left of a calendar window over the time left', () => {
    const limits = create(limit({ calls: 24, per: '1h', window: 'calendar', spread: 'even' }));
    // The present hour has 43 minutes left.
    const counted = sendAll(limits, 42.5 * 60_000, () => [1, 0]);
    expect(counted).toHaveLength(24);
    const gaps = counted.slice(1).map((at, index) => at - (counted[index] ?? 0));
    expect(Math.max(...gaps) / Math.min(...gaps)).toBeLessThan(1.1);
  });

  it('sends the calls of a sliding window one by one', () => {
    const counted = sendAll(create(limit({ calls: 10, spread: 'even' })), 60_000, () => [1, 0]);
    expect(counted.length).toBeGreaterThanOrEqual(58);
    expect(mostWithin(counted, 999)).toBe(1);
  });
});

describe('a statement of the upstream', () => {
  const day = limit({ calls: 100, per: '1d', window: 'calendar' });
  const statement = (remaining: number) => [{ quota: 100, windowMs: 86_400_000, remaining, resetInMs: undefined }];

  it('raises a count that is too low at once', () => {
    const limits = create(day);
    limits.forAll.take(0);
    limits.correct(10, 0, statement(40), 0);
    expect(limits.state(10)[0]?.used).toBe(60);
  });

  it('lowers one that is too high, but for calls that the upstream may not have counted yet', () => {
    const limits = create(day);
    for (let call = 0; call < 30; call++) limits.forAll.take(0);
    limits.correct(10, 0, statement(95), 3);
    expect(limits.state(10)[0]?.used).toBe(8);
    limits.correct(20, 0, statement(99), Infinity);
    expect(limits.state(20)[0]?.used).toBe(8);
  });

  it('about a shorter window, or of a window before, changes nothing', () => {
    const short = create(limit({ calls: 100, per: '10s' }));
    short.correct(10, 0, [{ quota: 100, windowMs: 10_000, remaining: 3 }], 0);
    expect(short.state(10)[0]?.used).toBe(0);
    const limits = create(day);
    const midnight = (createLimitWindow(day).endOf(START) ?? 0) - START;
    limits.correct(midnight + 1, midnight - 1, statement(3), 0);
    expect(limits.state(midnight + 1)[0]?.used).toBe(0);
  });
});

describe('the forecast', () => {
  it('says when a day is used up at the rate of the last hour, and nothing where it lasts', () => {
    const limits = create(limit({ calls: 1000, per: '1d', window: 'calendar' }));
    for (let minute = 0; minute < 120; minute++) limits.forAll.take(minute * 60_000);
    const now = 120 * 60_000;
    expect(limits.state(now)[0]?.usedUpAt).toBe(Infinity);
    for (let call = 0; call < 480; call++) limits.forAll.take(now + call * 1000);
    const [state] = limits.state(now + 480_000);
    // 532 calls in the last hour, 400 are left.
    expect((state?.usedUpAt ?? 0) - START - now - 480_000).toBeGreaterThan(2_600_000);
    expect((state?.usedUpAt ?? 0) - START - now - 480_000).toBeLessThan(2_800_000);
  });

  it('is never for a sliding window that lasts at this rate', () => {
    const limits = create(limit({ calls: 100, per: '1h' }));
    for (let call = 0; call < 90; call++) limits.forAll.take(call * 40_000);
    expect(limits.state(3_600_000)[0]?.usedUpAt).toBe(Infinity);
  });
});

it('keeps the counts of a limit through a change of its calls, and begins anew with another window', () => {
  const limits = create(limit({ calls: 10 }));
  const taken = limits.forAll.take(0);
  limits.reconfigure([limit({ calls: 2 }), limit({ name: 'new', calls: 5 })]);
  expect(limits.state(0).map(({ used, calls }) => [used, calls])).toEqual([
    [1, 2],
    [0, 5],
  ]);
  limits.giveBack(0, grantOf(0, taken));
  expect(limits.state(0)[0]?.used).toBe(0);
  limits.forAll.take(0);
  limits.reconfigure([limit({ per: '20s' })]);
  expect(limits.state(0)[0]?.used).toBe(0);
});

it('divides by the share of this process', () => {
  const part = { parts: 4, index: 3 };
  const limits = new DeclaredLimits({ limits: [limit({ calls: 11 })], toEpoch: (now) => START + now, part });
  limits.forAll.take(0);
  limits.forAll.take(0);
  expect(limits.forAll.isOpen(0, true)).toBe(false);
});

it('a limit of seconds that is declared later needs no permits of a fleet', () => {
  const day = limit({ per: '1d' });
  const limits = create(day);
  const [report] = limits.report(0, true, false);
  limits.recordGrants(1, [{ key: report?.key ?? '', granted: 5, counts: [], heldByOthers: 0 }], 2);
  limits.reconfigure([day, limit({ name: 'short', per: '1s' })]);
  expect(limits.report(2, true, false).map(({ key }) => key)).toEqual([report?.key]);
  expect(limits.forAll.isOpen(3, false)).toBe(true);
});
