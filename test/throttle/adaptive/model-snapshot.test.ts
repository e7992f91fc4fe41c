/** Snapshots of a learned limit: restored as they were, and anything else is ignored. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createGovernor } from '../../../src/throttle/pacing/governor.ts';
import type { Governor } from '../../../src/throttle/pacing/governor-contract.ts';
import { parseModelSnapshot } from '../../../src/throttle/adaptive/model-snapshot.ts';
import type { LearnedState } from '../../../src/throttle/throttle.ts';
import type { LimiterRule } from '../../bench/governor/limiters.ts';
import { play } from './auto-world.ts';

function governor(): Governor {
  return createGovernor({ rate: 'auto', burst: 1, maxInFlight: 64, maxPauseMs: 300_000, random: () => 0.5 });
}

function restored(snapshot: unknown, ageMs = 0): Governor {
  const created = governor();
  created.restore(1000, snapshot, ageMs);
  return created;
}

const SNAPSHOT = { kind: 'sliding-window', windowMs: 10_000, limit: 100, rate: 10, margin: 1, used: 0 };

describe('a restored limit', () => {
  const limiters: [string, LimiterRule][] = [
    ['sliding window', { kind: 'sliding-log', calls: 100, windowMs: 10_000 }],
    ['fixed window', { kind: 'fixed-window', calls: 100, windowMs: 10_000 }],
    ['bucket', { kind: 'token-bucket', perSecond: 10, burst: 20 }],
    ['calls in flight', { kind: 'concurrency', calls: 8 }],
  ];
  it.each(limiters)('has the same limit and window after JSON: %s', async (_, limiter) => {
    const serviceMs = { base: limiter.kind === 'concurrency' ? 400 : 10, jitter: 0 };
    const played = await play({ limiter, serviceMs });
    const [throttle] = played.throttles;
    const text = JSON.stringify(throttle?.snapshot());
    const state = JSON.parse(text) as LearnedState;
    const governorAgain = restored(state.governor);
    const before = throttle?.state().learned;
    const after = governorAgain.learned((at) => at);
    expect(after?.kind.endsWith('window')).toBe(before?.kind.endsWith('window'));
    expect(after?.limit).toBe(before?.limit);
    expect(after?.windowMs).toBe(before?.windowMs);
    expect(Math.min(after?.rate ?? 0, 1e6)).toBeGreaterThan(0);
    const kept = JSON.parse(JSON.stringify(governorAgain.snapshot(1000))) as object;
    expect(kept).toMatchObject({ limit: before?.limit });
    expect(JSON.stringify(restored(kept).snapshot(1000))).toBe(JSON.stringify(kept));
  });

  it('is used from the first call on, with maxInFlight calls in flight', () => {
    const auto = restored(SNAPSHOT);
    expect(auto.ratePolicy.rate).toBeCloseTo(10, 0);
    expect([auto.ratePolicy.inFlightLimit, auto.ratePolicy.isConfident]).toEqual([64, false]);
    expect(auto.learned((at) => at)).toMatchObject({ kind: 'sliding-window', limit: 100, windowMs: 10_000 });
  });

  it('counts calls that were sent shortly before the snapshot, until their window is over', () => {
    const used = { ...SNAPSHOT, used: 100 };
    expect(restored(used, 2000).openAt(1001)).toBeGreaterThan(1001);
    expect(restored(used, 12_000).openAt(1001)).toBeLessThanOrEqual(1001);
  });

  it('does not exist before the first refusal', () => {
    const auto = governor();
    auto.recordResult(5, auto.recordGrant(0, false), { kind: 'accepted' });
    expect([auto.snapshot(5), auto.learned((at) => at)]).toEqual([undefined, undefined]);
  });
});

describe('restoring', () => {
  it('never throws, and leaves a governor that works', () => {
    const similar = fc.record(
      {
        kind: fc.oneof(fc.constantFrom('sliding-window', 'fixed-window', 'bucket', 'concurrency'), fc.string()),
        windowMs: fc.oneof(fc.constantFrom(10_000, 1000), fc.double(), fc.anything()),
        limit: fc.oneof(fc.nat(), fc.double(), fc.anything()),
        rate: fc.oneof(fc.double(), fc.anything()),
        margin: fc.oneof(fc.double({ min: 0.5, max: 1 }), fc.anything()),
        used: fc.oneof(fc.nat(), fc.anything()),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(fc.anything(), similar), fc.double({ min: 0, max: 1e9, noNaN: true }), (value, ageMs) => {
        const auto = restored(value, ageMs);
        expect(auto.ratePolicy.rate).toBeGreaterThan(0);
        expect(auto.ratePolicy.burst).toBeGreaterThanOrEqual(1);
        expect(auto.ratePolicy.inFlightLimit).toBeGreaterThanOrEqual(1);
        expect(auto.openAt(1001)).not.toBeNaN();
        const grant = auto.recordGrant(2000, false);
        auto.recordResult(2010, grant, { kind: 'accepted' });
        expect(auto.ratePolicy.rate).toBeGreaterThan(0);
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    undefined,
    null,
    7,
    'x',
    [],
    {},
    { ...SNAPSHOT, kind: 'leaky' },
    { ...SNAPSHOT, windowMs: -1 },
    { ...SNAPSHOT, limit: 0.5 },
    { ...SNAPSHOT, limit: NaN },
    { ...SNAPSHOT, rate: 0 },
    { ...SNAPSHOT, rate: Infinity },
    { ...SNAPSHOT, margin: 2 },
    { ...SNAPSHOT, used: -1 },
    { ...SNAPSHOT, limit: 1e9, used: 1e9 },
  ])('ignores %j', (value) => {
    expect(parseModelSnapshot(value)).toBeUndefined();
    expect(restored(value).ratePolicy.rate).toBe(Infinity);
  });

  it('ignores a window length that is not modelled', () => {
    expect(restored({ ...SNAPSHOT, windowMs: 7777 }).ratePolicy.rate).toBe(Infinity);
  });
});
