/** A learned limit as it is kept to: no window and no bucket ever holds more than its capacity, and hardly anything is wasted. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallLog } from '../../../src/throttle/adaptive/call-log.ts';
import type { Counter } from '../../../src/throttle/adaptive/counter-bank.ts';
import { LimitInUse } from '../../../src/throttle/adaptive/limit-in-use.ts';

interface Limit {
  readonly counter: Counter;
  readonly capacity: number;
}

const WINDOW: fc.Arbitrary<Limit> = fc.record({
  counter: fc.record({ kind: fc.constant('window' as const), windowMs: fc.integer({ min: 300, max: 100_000 }) }),
  capacity: fc.integer({ min: 1, max: 300 }),
});
/** A call is refused when the level has reached the capacity, so that a burst holds up to one more. */
const BUCKET: fc.Arbitrary<Limit> = fc.record({
  counter: fc.record({
    kind: fc.constant('bucket' as const),
    leakPerMs: fc.double({ min: 1e-4, max: 0.5, noNaN: true }),
  }),
  capacity: fc.double({ min: 0.1, max: 100, noNaN: true }),
});
/** Times that the application leaves unused, as a share of the mean gap between calls. */
const GAPS = fc.array(fc.oneof(fc.constant(0), fc.double({ min: 0, max: 50, noNaN: true })), {
  minLength: 300,
  maxLength: 900,
});

function perMsOf({ counter, capacity }: Limit): number {
  if (counter.kind === 'concurrency') return Infinity;
  return counter.kind === 'bucket' ? counter.leakPerMs : capacity / counter.windowMs;
}

function use(limit: Limit, calls: CallLog): LimitInUse {
  const choice = { ...limit, index: 0, rate: perMsOf(limit) * 1000, isContradicted: false };
  return new LimitInUse(choice, calls, new CallLog(100, 1e9));
}

/** Calls as soon as the limit allows it, apart from the gaps. @returns the instants */
function callAll(limit: Limit, gaps: readonly number[], earlier = 0): number[] {
  const calls = new CallLog(100_000, 1e9);
  const instants: number[] = [];
  for (let call = 0; call < earlier; call++) calls.add(instants[instants.push(call) - 1] ?? 0);
  const inUse = use(limit, calls);
  let now = earlier;
  for (const gap of gaps) {
    now = Math.max(now + gap / perMsOf(limit), inUse.openAt());
    calls.add(now);
    inUse.recordGrant(now);
    instants.push(now);
  }
  return instants;
}

describe('what is used of a limit', () => {
  it('is never more than the limit, and rises by each call that a window counts', () => {
    const property = fc.property(fc.oneof(WINDOW, BUCKET), GAPS, (limit, gaps) => {
      const calls = new CallLog(100_000, 1e9);
      const inUse = use(limit, calls);
      const instants: number[] = [];
      let now = 0;
      for (const gap of gaps.slice(0, 100)) {
        now = Math.max(now + gap / perMsOf(limit), inUse.openAt());
        instants.push(now);
        calls.add(now);
        inUse.recordGrant(now);
        const { used, limit: most, windowMs } = inUse.countUsed(now);
        expect(used).toBeLessThanOrEqual(most);
        expect(used).toBeGreaterThan(0);
        if (windowMs !== undefined) expect(used).toBe(instants.filter((at) => at >= now - windowMs).length);
      }
      expect(inUse.countUsed(now + 1e9).used).toBeLessThan(1);
    });
    fc.assert(property);
  });
});

describe('a window', () => {
  it('never holds more than its capacity, at any use by the application', () => {
    const property = fc.property(WINDOW, GAPS, (limit, gaps) => {
      const { counter, capacity } = limit;
      const windowMs = counter.kind === 'window' ? counter.windowMs : NaN;
      const instants = callAll(limit, gaps);
      for (const [index, at] of instants.entries())
        expect((instants[index + capacity] ?? Infinity) - at).toBeGreaterThan(windowMs);
    });
    fc.assert(property);
  });

  it('stays closed for the calls that were made before it was learned', () => {
    const limit: Limit = { counter: { kind: 'window', windowMs: 1000 }, capacity: 5 };
    const [next = NaN] = callAll(limit, [0], 20).slice(-1);
    expect(next).toBeGreaterThan(15 + 1000);
    expect(next).toBeLessThan(15 + 1005);
  });
});

describe('a bucket', () => {
  it('never holds more than its capacity and the call itself', () => {
    const property = fc.property(BUCKET, GAPS, (limit, gaps) => {
      const leakPerMs = perMsOf(limit);
      let [level, levelAt] = [0, 0];
      for (const at of callAll(limit, gaps)) {
        level = Math.max(0, level - leakPerMs * (at - levelAt)) + 1;
        levelAt = at;
        expect(level).toBeLessThanOrEqual(limit.capacity + 1 + 1e-6);
      }
    });
    fc.assert(property);
  });

  it('is full, and not more, after the calls that were made before it was learned', () => {
    const limit: Limit = { counter: { kind: 'bucket', leakPerMs: 0.01 }, capacity: 4 };
    const [next = NaN] = callAll(limit, [0], 20).slice(-1);
    // The twenty calls were made within 19 ms; of a full bucket one call has to leak away, at ten a second.
    expect(Math.abs(next - 119)).toBeLessThan(2);
  });
});

it('at least 99 % of the rate is allowed to an application that always has calls', () => {
  const property = fc.property(fc.oneof(WINDOW, BUCKET), (limit) => {
    const calls = 20 * Math.ceil(limit.capacity) + 100;
    const instants = callAll(
      limit,
      Array.from({ length: calls }, () => 0),
    );
    const perMs = (calls - 1) / ((instants.at(-1) ?? NaN) - (instants[0] ?? NaN));
    // Whole calls: a part of one may be missing at either end.
    expect(perMs * (1 + 1 / calls)).toBeGreaterThan(0.99 * perMsOf(limit));
  });
  fc.assert(property);
});

it('a limit on calls in flight never closes', () => {
  const inUse = use({ counter: { kind: 'concurrency' }, capacity: 3 }, new CallLog(100, 1e9));
  for (let call = 0; call < 100; call++) inUse.recordGrant(0);
  expect([inUse.openAt(), inUse.wouldRefuse(0), inUse.rate, inUse.burst(1)]).toEqual([-Infinity, false, Infinity, 3]);
});

describe('while more is tried', () => {
  const limits: Limit[] = [
    { counter: { kind: 'window', windowMs: 1000 }, capacity: 20 },
    { counter: { kind: 'bucket', leakPerMs: 0.02 }, capacity: 19 },
  ];
  it.each(limits)('calls beyond what %j can have allowed show that it was raised', (limit) => {
    const calls = new CallLog(1000, 1e9);
    const inUse = use(limit, calls);
    inUse.startLimitProbe(0);
    const call = (now: number): boolean => {
      calls.add(now);
      inUse.recordGrant(now);
      return inUse.isExceeded(now, 0);
    };
    // A full bucket, or two parts of windows, allow twenty at once; twenty a second follow.
    const allowed = [...Array.from({ length: 20 }, () => 0), ...Array.from({ length: 100 }, (_, index) => index * 50)];
    expect(allowed.map(call)).not.toContain(true);
    expect(inUse.wouldRefuse(4960)).toBe(true);
    expect(Array.from({ length: 10 }, () => call(4960)).at(-1)).toBe(true);
  });

  it('calls in flight beyond the limit show it as well', () => {
    const inUse = use({ counter: { kind: 'concurrency' }, capacity: 8 }, new CallLog(100, 1e9));
    expect([inUse.isExceeded(0, 9), inUse.isExceeded(0, 11)]).toEqual([false, true]);
  });
});
