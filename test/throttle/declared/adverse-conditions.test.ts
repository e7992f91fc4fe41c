/** Declared limits under clocks that are set, partners that state too much, and calls that wait for a connection. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DeclaredLimits } from '../../../src/throttle/declared/declared-limits.ts';
import type { DeclaredLimit } from '../../../src/throttle/declared/declared-limit.ts';
import type { Permit } from '../../../src/throttle/throttle.ts';
import { ACCEPTED, Fixture } from '../fixture.ts';
import { ACCEPTED as ACCEPTED_RESULT, grantOf } from './grants.ts';

const START = Date.UTC(2026, 10, 24, 13, 17, 3);
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

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

/** Of a request without a body, which may not wait. */
function tryTake(fixture: Fixture): Permit | undefined {
  return fixture.throttle.enter(fixture.clock.now() + 60_000, undefined, false).tryTakePermit();
}

function takeAll(limits: DeclaredLimits, now: number): number {
  let taken = 0;
  for (; limits.forAll.isOpen(now, false); taken++) limits.forAll.take(now);
  return taken;
}

describe('a statement of the upstream', () => {
  it('that was true on its way never raises what may be sent above the limit', async () => {
    const call = fc.record({ gapMs: fc.nat(40_000), tookMs: fc.nat(30_000), isStated: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 20, maxLength: 60 }), async (calls) => {
        const fixture = new Fixture({ limits: [limit({ calls: 10, per: '1h' })], maxInFlight: 100 });
        const counted: number[] = [];
        for (const { gapMs, tookMs, isStated } of calls) {
          await fixture.clock.advance(gapMs);
          const permit = tryTake(fixture);
          if (permit === undefined) continue;
          const now = fixture.clock.now();
          counted.push(now);
          const remaining = 10 - counted.filter((at) => now - at < HOUR_MS).length;
          const quotas = isStated ? [{ quota: 10, windowMs: HOUR_MS, remaining }] : [];
          const hint = { status: 200, statedWaitMs: undefined, remaining, resetInMs: undefined, quotas };
          fixture.clock.after(tookMs, () => {
            permit.report({ kind: 'accepted', hint });
            permit.release();
          });
        }
        for (const [index, at] of counted.entries())
          expect(counted.slice(index).filter((later) => later - at < HOUR_MS).length).toBeLessThanOrEqual(10);
      }),
      { numRuns: 100 },
    );
  });

  it('of another limit than the declared one lowers no count, and of nonsense changes none', () => {
    const limits = create(limit({ calls: 100, per: '1d', window: 'calendar' }));
    for (let call = 0; call < 60; call++) limits.forAll.take(0);
    for (const [quota, remaining] of [
      [500, 480],
      [100, 1e12],
      [100, -1],
      [100, NaN],
    ] as const)
      limits.correct(10, 0, [{ quota, windowMs: DAY_MS, remaining }], 0);
    expect(limits.state(10)[0]?.used).toBe(60);
    limits.correct(10, 0, [{ quota: 50, windowMs: DAY_MS, remaining: 20 }], 0);
    expect(limits.state(10)[0]?.used).toBe(80);
  });

  it('with nothing remaining holds until the reset that it states', () => {
    const limits = create(limit({ calls: 100, per: '1d', window: 'calendar' }));
    limits.correct(10, 0, [{ quota: 100, windowMs: DAY_MS, remaining: 0, resetInMs: 1_800_000 }], 0);
    expect(limits.forAll.isOpen(1_800_000, true)).toBe(false);
    expect(limits.forAll.isOpen(1_803_000, true)).toBe(true);
  });

  it('counts for all replicas, and changes no part of one', () => {
    const part = { parts: 4, index: 3 };
    const limits = new DeclaredLimits({
      ...{ limits: [limit({ calls: 100, per: '1d', window: 'calendar' })], part },
      toEpoch: (now) => START + now,
    });
    limits.correct(10, 0, [{ quota: 25, windowMs: DAY_MS, remaining: 20 }], 0);
    expect(limits.forAll.available(10, true)).toBe(25);
  });
});

describe('a wall clock that is set', () => {
  it.each([-DAY_MS, -30_000, 30_000, DAY_MS])('by %i ms changes nothing for a sliding window', (stepMs) => {
    let offsetMs = START;
    const limits = new DeclaredLimits({ limits: [limit({})], toEpoch: (now) => offsetMs + now });
    expect(takeAll(limits, 0)).toBe(10);
    offsetMs += stepMs;
    expect(takeAll(limits, 5000)).toBe(0);
    expect(takeAll(limits, 10_700)).toBe(10);
  });

  it('back by a month keeps no calendar day for longer than its next one', () => {
    let offsetMs = START;
    const limits = new DeclaredLimits({
      ...{ limits: [limit({ per: '1d', window: 'calendar' })] },
      toEpoch: (now) => offsetMs + now,
    });
    takeAll(limits, 0);
    offsetMs -= 30 * DAY_MS;
    expect(limits.forAll.nthAt(0, 0, false)).toBeLessThanOrEqual(2 * DAY_MS);
  });
});

it('calls that wait for a connection count from when they are sent', async () => {
  const fixture = new Fixture({ limits: [limit({ calls: 3, per: '1s' })] });
  const permits = [1, 2, 3].map(() => tryTake(fixture));
  await fixture.clock.advance(900);
  for (const permit of permits) permit?.markSent();
  await fixture.clock.advance(10);
  for (const permit of permits) {
    permit?.report(ACCEPTED);
    permit?.release();
  }
  await fixture.clock.advance(900);
  expect(tryTake(fixture)).toBeUndefined();
  await fixture.clock.advance(120);
  expect(tryTake(fixture)).toBeDefined();
});

it('responses that come late before there is a usual time count from when they come', () => {
  const limits = create(limit({ calls: 3, per: '1s' }));
  const taken = [1, 2, 3].map(() => limits.forAll.take(0));
  for (const one of taken) limits.settle(900, grantOf(0, one), ACCEPTED_RESULT);
  expect(limits.forAll.isOpen(1500, false)).toBe(false);
  expect(limits.forAll.isOpen(1920, false)).toBe(true);
});

it('high priority uses its reserve whatever an even spread says to others', () => {
  const limits = create(limit({ calls: 100, per: '1d', window: 'calendar', reserve: 99, spread: 'even' }));
  limits.forAll.take(0);
  expect([limits.forAll.isOpen(1, false), limits.forAll.isOpen(1, true)]).toEqual([false, true]);
});

it('a permit that is given back holds up no call of an even spread', () => {
  const limits = create(limit({ calls: 5, per: '1mo', window: 'calendar', spread: 'even' }));
  limits.giveBack(1, grantOf(0, limits.forAll.take(0)));
  expect(limits.forAll.isOpen(2, false)).toBe(true);
});

it('windows whose ends move keep few entries, and lose no call', () => {
  const limits = create(limit({ calls: 1000, per: '1d', window: 'calendar' }));
  for (let call = 0; call < 600; call++) {
    limits.forAll.take(call * 1000);
    const resetInMs = 30_000_000 + ((call * 7919) % 600_000);
    limits.correct(
      call * 1000,
      call * 1000,
      [{ quota: 1000, windowMs: DAY_MS, remaining: 1000 - call, resetInMs }],
      10,
    );
  }
  const [saved] = limits.save(600_000);
  expect(saved?.counts.length).toBeLessThanOrEqual(200);
  expect(limits.state(600_000)[0]?.used).toBeGreaterThanOrEqual(600);
});
