/** Which limit is chosen for what was refused: one that would have avoided every refusal, and in use the true one. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Closure } from '../../../src/throttle/adaptive/closure-history.ts';
import { WINDOW_TOLERANCE, type Counter } from '../../../src/throttle/adaptive/counter-bank.ts';
import { type ChosenLimit, choosePair } from '../../../src/throttle/adaptive/limit-choice.ts';
import type { LimiterRule } from '../../bench/governor/limiters.ts';
import { roundsOf } from '../../support/rounds.ts';
import { seeded } from '../simulation.ts';
import { play } from './auto-world.ts';
import { observe } from './truthful-limiter.ts';

/** The only limit, while no other one is trusted. */
function chooseLimit(...[counters, closures, roundTripMs]: [Counters, Closures, number]): ChosenLimit | undefined {
  return choosePair(counters, closures, undefined, roundTripMs)?.main;
}

type Counters = Parameters<typeof choosePair>[0];
type Closures = Parameters<typeof choosePair>[1];

/** Calls sent so close together may have arrived in either order. */
const SAME_INSTANT_MS = 0.01;

/** Evenly over the powers of ten. */
function between(least: number, most: number): fc.Arbitrary<number> {
  return fc.double({ min: Math.log(least), max: Math.log(most), noNaN: true }).map(Math.exp);
}

interface Limited {
  readonly limiter: LimiterRule;
  readonly perSecond: number;
  /** The time after which it has forgotten its calls. */
  readonly memoryMs: number;
}

const WINDOWS: fc.Arbitrary<Limited> = fc
  .record({
    kind: fc.constantFrom('sliding-log' as const, 'fixed-window' as const, 'first-call-window' as const),
    calls: fc.integer({ min: 3, max: 100 }),
    windowMs: between(1000, 300_000).map(Math.round),
  })
  .map((limiter) => ({ limiter, perSecond: (limiter.calls * 1000) / limiter.windowMs, memoryMs: limiter.windowMs }));

const BUCKETS: fc.Arbitrary<Limited> = fc
  .record({
    kind: fc.constantFrom('token-bucket' as const, 'gcra' as const),
    perSecond: between(0.2, 50),
    burst: fc.integer({ min: 2, max: 60 }),
  })
  .map(({ kind, perSecond, burst }) => {
    const limiter: LimiterRule = kind === 'gcra' ? { kind, perSecond, burst, stepMs: 0 } : { kind, perSecond, burst };
    return { limiter, perSecond, memoryMs: (burst * 1000) / perSecond };
  });

/** What a window held before a call, counted by hand. */
function countBefore(windowMs: number, at: number, calls: readonly number[]): number {
  const beginsAt = at - windowMs * (1 + WINDOW_TOLERANCE);
  return calls.filter((instant) => instant >= beginsAt && instant < at + SAME_INSTANT_MS).length;
}

it('staying below the capacity of the chosen window would have avoided every kept refusal', () => {
  const property = fc.property(
    fc.oneof(WINDOWS, BUCKETS),
    fc.constantFrom(2, 10, 40),
    fc.integer({ min: 1, max: 18 }),
    fc.nat(),
    ({ limiter, perSecond, memoryMs }, jitterMs, closures, seed) => {
      const traffic = { limiter, perSecond, quietSeconds: memoryMs / 500, kinds: ['window'] as const };
      const observed = observe({ ...traffic, jitterMs, closures, random: seeded(seed) });
      // Closures that are equally long by chance look like penalties, which explain refusals without a count.
      fc.pre(observed.history.penaltyMs === 0);
      const choice = chooseLimit(observed.bank.counters, observed.history.closures, observed.roundTripMs);
      if (choice?.counter.kind !== 'window') throw new Error('no window explains the refusals');
      for (const { call, callsBefore } of observed.refusals)
        expect(countBefore(choice.counter.windowMs, call.at, callsBefore)).toBeGreaterThanOrEqual(choice.capacity);
    },
  );
  fc.assert(property, { numRuns: 100 });
});

describe('the limit that is found in use', () => {
  /** After sixty windows, or five minutes. */
  async function learn({ limiter, memoryMs }: Limited, seed: number) {
    const durationMs = Math.max(300_000, 60 * memoryMs);
    const [throttle] = (await play({ limiter, seed, durationMs })).throttles;
    return throttle?.state().learned;
  }

  it.each([1000, 3700, 10_000, 23_400, 60_000, 77_000])('has the length of a window of %d ms', async (windowMs) => {
    for (const kind of ['sliding-log', 'fixed-window', 'first-call-window'] as const) {
      const limiter: LimiterRule = { kind, calls: 40, windowMs };
      const learned = await learn({ limiter, perSecond: 40_000 / windowMs, memoryMs: windowMs }, 2);
      expect(learned?.kind).toBe('window');
      expect(Math.abs((learned?.windowMs ?? 0) / windowMs - 1)).toBeLessThan(0.05);
      expect(Math.abs((learned?.limit ?? 0) - 40)).toBeLessThanOrEqual(2);
    }
  });

  it('has the rate of any window or bucket', async () => {
    const property = fc.asyncProperty(fc.oneof(WINDOWS, BUCKETS), fc.nat(1000), async (limited, seed) => {
      const learned = await learn(limited, seed);
      expect(Math.abs((learned?.rate ?? 0) / limited.perSecond - 1)).toBeLessThan(0.06);
    });
    await fc.assert(property, { numRuns: roundsOf({ check: 5, soak: 15 }), seed: 1 });
  });
});

describe('no limit is chosen', () => {
  const counters: readonly Counter[] = [{ kind: 'window', windowMs: 1000 }, { kind: 'concurrency' }];
  const closure = (...refused: number[]): Closure => {
    return { refused: Float32Array.from(refused), accepted: new Float32Array(refused.length) };
  };

  it('before the first refusal', () => {
    expect(chooseLimit(counters, [], 50)).toBeUndefined();
  });

  it('on calls in flight before the third closure', () => {
    const choices = [1, 2, 3].map((count) =>
      chooseLimit(
        counters,
        Array.from({ length: count }, () => closure(0, 8)),
        50,
      ),
    );
    expect(choices.map((choice) => choice?.counter.kind)).toEqual([undefined, undefined, 'concurrency']);
    expect(choices[2]?.capacity).toBe(8);
  });
});

describe('a limit in flight', () => {
  const choose = (counts: readonly number[]): number | undefined => {
    const closures = counts.map((count) => ({ refused: Float32Array.of(count), accepted: new Float32Array(1) }));
    return chooseLimit([{ kind: 'concurrency' }], closures, 50)?.capacity;
  };

  it('is the number at which nearly all closures refused, whichever the others are', () => {
    const property = fc.property(
      fc.integer({ min: 5, max: 40 }),
      fc.integer({ min: 5, max: 12 }),
      fc.integer({ min: 0, max: 39 }),
      fc.nat(11),
      (limit, closures, other, position) => {
        const counts = Array.from({ length: closures }, () => limit);
        counts.splice(position, 0, Math.min(other, limit - 1));
        expect(choose(counts)).toBe(limit);
      },
    );
    fc.assert(property);
  });

  it('is the lowest number when the closures differ, as those of a rate do', () => {
    expect(choose([14, 7, 10, 12, 15, 15, 14, 13, 12, 12])).toBe(7);
    expect(choose([8, 7, 6, 6, 5, 9])).toBe(5);
  });
});
