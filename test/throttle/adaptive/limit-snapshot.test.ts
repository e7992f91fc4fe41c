/** Snapshots of a learned limit: restored as they were, and anything else is ignored. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Governor } from '../../../src/throttle/pacing/governor.ts';
import { parseLimitSnapshot } from '../../../src/throttle/adaptive/limit-snapshot.ts';
import type { LearnedState } from '../../../src/throttle/throttle.ts';
import type { LimiterRule } from '../../bench/governor/limiters.ts';
import { play } from './auto-world.ts';

function governor(): Governor {
  return new Governor({
    maxStreams: 100,
    rate: 'auto',
    burst: 1,
    maxInFlight: 64,
    maxPauseMs: 300_000,
    random: () => 0.5,
  });
}

function restored(snapshot: unknown, ageMs = 0): Governor {
  const created = governor();
  created.restore(1000, snapshot, ageMs);
  return created;
}

const SNAPSHOT = { kind: 'window', windowMs: 10_000, limit: 100, rate: 10, margin: 1, used: 0 };

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
    const after = governorAgain.ratePolicy.learner?.learned((at) => at);
    expect(before?.kind).toBeDefined();
    expect(after).toMatchObject({ kind: before?.kind, limit: before?.limit });
    expect(before?.windowMs === undefined).toBe(after?.windowMs === undefined);
    expect(Math.abs((after?.windowMs ?? 1) / (before?.windowMs ?? 1) - 1)).toBeLessThan(0.015);
    expect(Math.min(after?.rate ?? 0, 1e6)).toBeGreaterThan(0);
    const kept = JSON.parse(JSON.stringify(governorAgain.ratePolicy.learner?.snapshot(1000))) as object;
    expect(kept).toMatchObject({ limit: before?.limit });
    expect(JSON.stringify(restored(kept).ratePolicy.learner?.snapshot(1000))).toBe(JSON.stringify(kept));
  });

  it('is used from the first call on, with maxInFlight calls in flight', () => {
    const auto = restored(SNAPSHOT);
    expect(auto.ratePolicy.rate).toBeCloseTo(10, 0);
    expect([auto.ratePolicy.inFlightLimit, auto.ratePolicy.isConfident]).toEqual([64, false]);
    expect(auto.ratePolicy.learner?.learned((at) => at)).toMatchObject({ kind: 'window', limit: 100 });
  });

  it('counts calls until their window is over: those of each tenth are spread in it, and those of a former file in the window', () => {
    const used = { ...SNAPSHOT, used: 100 };
    const inLastTenth = { ...used, usedInTenths: Array.from({ length: 9 }, () => 100) };
    // A restored limit is probed after five seconds.
    expect(restored(inLastTenth, 2000).openAt(1001) - 1001).toBeGreaterThan(4900);
    expect(restored(inLastTenth, 12_000).openAt(1001)).toBeLessThanOrEqual(1001);
    expect(restored(used, 0).openAt(1001) - 1001).toBeLessThan(400);
    const spread = restored(used, 0);
    for (let call = 0; call < 10; call++) spread.take(1001, false);
    expect(spread.openAt(1001) - 1001).toBeGreaterThan(1000);
  });

  it('does not exist before the first refusal', () => {
    const auto = governor();
    auto.settle(5, auto.take(0, false), { kind: 'accepted' });
    expect([auto.ratePolicy.learner?.snapshot(5), auto.ratePolicy.learner?.learned((at) => at)]).toEqual([
      undefined,
      undefined,
    ]);
  });
});

describe('restoring', () => {
  it('never throws, and leaves a governor that works', () => {
    const similar = fc.record(
      {
        kind: fc.oneof(fc.constantFrom('window', 'fixed-window', 'bucket', 'concurrency'), fc.string()),
        windowMs: fc.oneof(fc.constantFrom(10_000, 1000), fc.double(), fc.anything()),
        limit: fc.oneof(fc.nat(), fc.double(), fc.anything()),
        rate: fc.oneof(fc.double(), fc.anything()),
        margin: fc.oneof(fc.double({ min: 0.5, max: 1 }), fc.anything()),
        used: fc.oneof(fc.nat(), fc.anything()),
        usedInTenths: fc.oneof(fc.array(fc.nat(), { minLength: 9, maxLength: 9 }), fc.anything()),
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
        const grant = auto.take(2000, false);
        auto.settle(2010, grant, { kind: 'accepted' });
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
    expect(parseLimitSnapshot(value)).toBeUndefined();
    expect(restored(value).ratePolicy.rate).toBe(Infinity);
  });

  it('keeps a window of any length, or one that is up to 2.1 % longer, with its limit', () => {
    const window = fc.record({
      // Evenly over the powers of ten; the longest step of the bank, to a day, is 2 %.
      windowMs: fc
        .double({ min: Math.log(300), max: Math.log(84_000_000), noNaN: true })
        .map((log) => Math.ceil(Math.exp(log))),
      limit: fc.integer({ min: 1, max: 10_000 }),
    });
    fc.assert(
      fc.property(window, ({ windowMs, limit }) => {
        const rate = (limit * 1000) / windowMs;
        const learned = restored({ ...SNAPSHOT, windowMs, limit, rate }).ratePolicy.learner?.learned((at) => at);
        expect(learned).toMatchObject({ kind: 'window', limit });
        const ratio = (learned?.windowMs ?? 0) / windowMs;
        expect(ratio).toBeGreaterThanOrEqual(1);
        // A step of 1.5 %, and a window that is up to 0.5 % longer and explains as much.
        expect(ratio).toBeLessThan(1.021);
      }),
      { examples: [[{ windowMs: 1_765_323, limit: 1 }]] },
    );
  });

  it('keeps a bucket of any burst, and its rate to within 3 %', () => {
    const bucket = fc.record({
      perSecond: fc.double({ min: 0.05, max: 900, noNaN: true }),
      limit: fc.integer({ min: 1, max: 1000 }),
    });
    fc.assert(
      fc.property(bucket, ({ perSecond, limit }) => {
        const auto = restored({ ...SNAPSHOT, kind: 'bucket', windowMs: 0, limit, rate: perSecond });
        expect(auto.ratePolicy.learner?.learned((at) => at)).toMatchObject({ kind: 'bucket', limit });
        expect(Math.abs(auto.ratePolicy.rate / perSecond - 1)).toBeLessThan(0.03);
      }),
      { examples: [[{ perSecond: 40, limit: 1 }]] },
    );
  });

  it.each(['sliding-window', 'fixed-window', 'first-call-window'])('reads the former kind %s as a window', (kind) => {
    expect(parseLimitSnapshot({ ...SNAPSHOT, kind })).toEqual(SNAPSHOT);
    expect(restored({ ...SNAPSHOT, kind }).ratePolicy.learner?.learned((at) => at)).toMatchObject({
      kind: 'window',
      limit: 100,
    });
  });
});

it('a second limit in a second limit is not read, however deep they are', () => {
  const limit = { kind: 'window', windowMs: 1000, limit: 10, rate: 10, margin: 1, used: 0 };
  let nested: object = limit;
  for (let depth = 0; depth < 100_000; depth++) nested = { ...limit, second: nested };
  expect(parseLimitSnapshot(nested)).toEqual({ ...limit, second: limit });
});

it('a window that is longer than a day is not read', () => {
  const limit = { kind: 'window', windowMs: 86_400_001, limit: 10, rate: 10, margin: 1, used: 0 };
  expect(parseLimitSnapshot(limit)).toBeUndefined();
});
