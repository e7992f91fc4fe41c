/** Permits that a process leases from the file that keeps its counts, and what the next process makes of them. */
import { describe, expect, it } from 'vitest';
import { DeclaredLimits } from '../../../src/throttle/declared/declared-limits.ts';
import type { DeclaredLimit } from '../../../src/throttle/declared/declared-limit.ts';
import { createThrottle } from '../../../src/throttle/queue/queueing-throttle.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const START = Date.UTC(2026, 10, 24, 13);
const DAY_MS = 86_400_000;
const NOON_LIMIT: DeclaredLimit = {
  ...{ name: 'l', calls: 10, per: '1h', window: 'sliding', timeZone: 'UTC' },
  ...{ countsRefused: true, spread: 'none', reserve: 0 },
};
const DAILY: DeclaredLimit = { ...NOON_LIMIT, per: '1d', window: 'calendar' };

function create(terms: DeclaredLimit, requestPermits?: () => void, start = START): DeclaredLimits {
  return new DeclaredLimits({ limits: [terms], toEpoch: (now) => start + now, requestPermits });
}

function lease(limits: DeclaredLimits, now = 0): void {
  limits.beginLease(now);
  limits.endLease();
}

function usedBy(limits: DeclaredLimits, now = 0): number | undefined {
  return limits.state(now)[0]?.used;
}

describe('the store', () => {
  it('is told when few leased permits are left, and not while a limit is used up', () => {
    let requests = 0;
    const limits = create({ ...NOON_LIMIT, calls: 100 }, () => requests++);
    lease(limits);
    limits.forAll.take(0);
    expect(requests).toBe(1);
    while (limits.forAll.isOpen(0, false) || requests === 0) {
      limits.forAll.take(0);
      lease(limits);
    }
    requests = 0;
    expect(limits.forAll.isOpen(0, false)).toBe(false);
    expect(requests).toBe(0);
  });

  it('is waited for without a timer that fires at once', async () => {
    const clock = new ManualClock();
    const throttle = createThrottle({
      route: 'default',
      throttle: { rate: 1000, burst: 10, maxInFlight: 64, maxStreams: 100, maxPauseMs: 300_000, limits: [NOON_LIMIT] },
      queue: { max: 10, timeoutMs: 30_000 },
      ...{ clock, random: () => 0.5, observe: () => undefined, requestPermits: () => undefined },
    });
    const limits = throttle.declaredLimits;
    if (limits === undefined) throw new Error('no limit is declared');
    lease(limits);
    let granted = 0;
    const wait = async (): Promise<void> => {
      await throttle.enter(60_000, undefined, false).waitForPermit();
      granted++;
    };
    void wait();
    void wait();
    await clock.advance(5);
    expect(granted).toBe(1);
    lease(limits, clock.now());
    throttle.pump();
    await clock.advance(0);
    expect(granted).toBe(2);
  });

  it('that began to write before a limit was declared has leased none of it', () => {
    const limits = create(NOON_LIMIT, () => undefined);
    lease(limits);
    limits.beginLease(0);
    limits.reconfigure([NOON_LIMIT, { ...NOON_LIMIT, name: 'new' }]);
    limits.endLease();
    expect(limits.forAll.isOpen(0, false)).toBe(false);
    lease(limits);
    expect(limits.forAll.isOpen(0, false)).toBe(true);
  });

  it('that has failed is needed no more, until it has stored the counts again', () => {
    const limits = create(NOON_LIMIT, () => undefined);
    lease(limits);
    limits.goOnWithoutStore();
    for (let call = 0; call < 5; call++) limits.forAll.take(0);
    expect(limits.forAll.isOpen(0, false)).toBe(true);
    const [saved] = limits.beginLease(0);
    limits.endLease();
    expect(saved?.counts.reduce((sum, [, calls]) => sum + calls, 0)).toBe(5);
    limits.forAll.take(0);
    expect(limits.forAll.isOpen(0, false)).toBe(false);
  });
});

describe('restored counts', () => {
  it('of a crash before midnight count for the upstream whose day has begun', () => {
    const beforeMidnight = Date.UTC(2026, 10, 25) - 1000;
    const first = create(DAILY, undefined, beforeMidnight);
    const saved = first.beginLease(0);
    const second = create(DAILY, undefined, beforeMidnight);
    second.restore(saved, 500);
    expect(usedBy(second, 5000)).toBe(1);
  });

  it('of a crash count the lease once', () => {
    const saved = create(DAILY).beginLease(0);
    for (const laterMs of [0, DAY_MS, 10 * DAY_MS]) {
      const second = create(DAILY);
      second.restore(saved, laterMs);
      expect(usedBy(second, laterMs)).toBe(1);
    }
  });

  it.each([
    ['sliding', NOON_LIMIT, 3_700_000],
    ['calendar', DAILY, 2 * DAY_MS],
  ] as const)('of a %s limit end in time when the clock was a year ahead', (_, terms, laterMs) => {
    const ahead = create(terms, undefined, START + 365 * DAY_MS);
    ahead.forAll.take(0);
    const saved = ahead.save(0);
    const limits = create(terms);
    limits.restore(saved, 0);
    expect(usedBy(limits)).toBe(1);
    expect(usedBy(limits, laterMs)).toBe(0);
  });

  it.each([
    ['name', { name: 'other' }],
    ['length', { per: '2h' }],
    ['window', { window: 'calendar' }],
  ] as const)('of a limit with another %s are dropped', (_, other) => {
    const first = create(NOON_LIMIT);
    first.forAll.take(0);
    const limits = create({ ...NOON_LIMIT, ...other });
    limits.restore(first.beginLease(0), 0);
    expect(usedBy(limits)).toBe(0);
  });
});
