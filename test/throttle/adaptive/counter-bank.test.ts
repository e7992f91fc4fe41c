/** What the counters hold before a call, beside counting by hand. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallLog } from '../../../src/throttle/adaptive/call-log.ts';
import { COUNTER_KINDS, CounterBank, WINDOW_TOLERANCE } from '../../../src/throttle/adaptive/counter-bank.ts';

interface Step {
  readonly apartMs: number;
  readonly isCounted: boolean;
}

/** Calls in bursts, steadily and after quiet times. */
const STEPS: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    apartMs: fc.oneof(fc.constantFrom(0, 1, 10, 250, 1000), fc.integer({ min: 0, max: 100_000 })),
    isCounted: fc.boolean(),
  }),
  { minLength: 1, maxLength: 150 },
);

const JITTER_MS = fc.constantFrom(2, 10, 40, 100);

interface Count {
  readonly at: number;
  /** Instants of the calls before. */
  readonly before: readonly number[];
  readonly bank: CounterBank;
}

/** Logs the calls and asks before some of them. */
function play(steps: readonly Step[], onCount: (count: Count) => void): void {
  const calls = new CallLog(100_000, 1e9);
  const bank = new CounterBank(COUNTER_KINDS, calls);
  const before: number[] = [];
  let at = 0;
  for (const { apartMs, isCounted } of steps) {
    at += apartMs;
    if (isCounted) onCount({ at, before, bank });
    calls.add(at);
    before.push(at);
  }
}

describe('a window', () => {
  it('holds at most the calls within its length, slightly extended, and the call’s own instant', () => {
    const property = fc.property(STEPS, (steps) => {
      play(steps, ({ at, before, bank }) => {
        const counts = bank.countMost({ at, inFlight: 0 }, 10);
        for (const [index, counter] of bank.counters.entries()) {
          if (counter.kind !== 'window') continue;
          const beginsAt = at - counter.windowMs * (1 + WINDOW_TOLERANCE);
          expect(counts[index]).toBe(before.filter((instant) => instant >= beginsAt).length);
        }
      });
    });
    fc.assert(property, { numRuns: 30 });
  });

  it('holds at least the calls within its length, slightly shortened, that cannot have been overtaken', () => {
    const property = fc.property(STEPS, JITTER_MS, (steps, jitterMs) => {
      play(steps, ({ at, before, bank }) => {
        const counts = bank.countLeast({ at, inFlight: 0 }, jitterMs);
        for (const [index, counter] of bank.counters.entries()) {
          if (counter.kind !== 'window') continue;
          const beginsAt = at - counter.windowMs * (1 - WINDOW_TOLERANCE);
          expect(counts[index]).toBe(before.filter((instant) => instant >= beginsAt && instant < at - jitterMs).length);
        }
      });
    });
    fc.assert(property, { numRuns: 30 });
  });
});

describe('a bucket', () => {
  it('holds what has not leaked away since the earlier calls', () => {
    const property = fc.property(STEPS, (steps) => {
      play(steps, ({ at, before, bank }) => {
        const counts = bank.countMost({ at, inFlight: 0 }, 10);
        for (const [index, counter] of bank.counters.entries()) {
          if (counter.kind !== 'bucket' || index % 10 !== 0) continue;
          let [level, levelAt] = [0, 0];
          for (const instant of before.filter((earlier) => earlier < at)) {
            level = Math.max(0, level - counter.leakPerMs * (instant - levelAt)) + 1;
            levelAt = instant;
          }
          const left = Math.max(0, level - counter.leakPerMs * (at - levelAt));
          expect(Math.abs((counts[index] ?? NaN) - left)).toBeLessThanOrEqual(1e-4 * Math.max(1, left));
        }
      });
    });
    fc.assert(property, { numRuns: 30 });
  });
});

it('calls in flight are counted as they are, and at least as some of them', () => {
  const bank = new CounterBank(['concurrency'], new CallLog(100, 1e9));
  expect([...bank.countMost({ at: 0, inFlight: 10 }, 10)]).toEqual([10]);
  const [least = NaN] = bank.countLeast({ at: 0, inFlight: 10 }, 2);
  expect(least).toBeGreaterThan(5);
  expect(least).toBeLessThan(10);
});

it('no counter holds at least more than it holds at most', () => {
  const property = fc.property(STEPS, JITTER_MS, fc.nat(64), (steps, jitterMs, inFlight) => {
    play(steps, ({ at, bank }) => {
      const least = bank.countLeast({ at, inFlight }, jitterMs);
      const most = bank.countMost({ at, inFlight }, 10);
      expect(least.every((count, index) => count <= (most[index] ?? NaN))).toBe(true);
    });
  });
  fc.assert(property, { numRuns: 50 });
});

describe('the bank', () => {
  const bank = new CounterBank(COUNTER_KINDS, new CallLog(100, 1e9));
  const windowsMs = bank.counters.flatMap((counter) => (counter.kind === 'window' ? [counter.windowMs] : []));
  const leaksPerMs = bank.counters.flatMap((counter) => (counter.kind === 'bucket' ? [counter.leakPerMs] : []));
  /** Evenly over the powers of ten. */
  const between = (least: number, most: number): fc.Arbitrary<number> =>
    fc.double({ min: Math.log(least), max: Math.log(most), noNaN: true }).map(Math.exp);

  it('has a window within 1.5 % of any length from 0.3 s to a day', () => {
    const property = fc.property(between(300, 86_400_000), (length) => {
      const nearest = Math.min(...windowsMs.map((windowMs) => Math.abs(windowMs / length - 1)));
      expect(nearest).toBeLessThan(0.015);
    });
    fc.assert(property, { numRuns: 1000 });
  });

  it('has a leak within 1.5 % of any rate from one in 50 s to 1000 a second', () => {
    const property = fc.property(between(2e-5, 1), (rate) => {
      expect(Math.min(...leaksPerMs.map((leakPerMs) => Math.abs(leakPerMs / rate - 1)))).toBeLessThan(0.015);
    });
    fc.assert(property, { numRuns: 1000 });
  });

  it('has the usual lengths exactly', () => {
    expect(windowsMs).toEqual(expect.arrayContaining([1000, 10_000, 15_000, 60_000, 300_000, 3_600_000, 86_400_000]));
  });

  it('has only counters of the given kinds, and few enough to ask all of them', () => {
    expect(bank.counters.length).toBeLessThan(2000);
    for (const kind of COUNTER_KINDS) {
      const one = new CounterBank([kind], new CallLog(100, 1e9));
      expect(new Set(one.counters.map((counter) => counter.kind))).toEqual(new Set([kind]));
      expect(one.countMost({ at: 0, inFlight: 0 }, 10)).toHaveLength(one.counters.length);
    }
  });
});
