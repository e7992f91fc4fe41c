/** Which closures show that each refusal closes the limit for a fixed time, and how long the next call waits then. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Penalty, type Span } from '../../../src/throttle/adaptive/penalty.ts';
import { play } from './auto-world.ts';

/** As probes see it: refused until shortly before its end, accepted shortly after it. */
function around(ms: number, share = 0.1): Span {
  return { leastMs: ms * (1 - share), mostMs: ms * (1 + share) };
}

function record(...closures: (readonly [closedMs: number, cycleMs: number])[]): Penalty {
  const penalty = new Penalty();
  for (const [closedMs, cycleMs] of closures) penalty.record(around(closedMs), around(cycleMs, 0.02));
  return penalty;
}

describe('a penalty', () => {
  it('is known after three closures of the same time that follow different times in which the limit was open', () => {
    const property = fc.property(
      fc.integer({ min: 1000, max: 60_000 }),
      fc.array(fc.integer({ min: 2, max: 20 }), { minLength: 3, maxLength: 4 }),
      (penaltyMs, factors) => {
        const cycles = factors.map((factor) => penaltyMs * factor);
        const { known } = record(...cycles.map((cycleMs) => [penaltyMs, cycleMs] as const));
        const differ = Math.max(...cycles) > 1.05 * Math.min(...cycles);
        expect(known).toEqual(differ ? around(penaltyMs) : undefined);
      },
    );
    fc.assert(property);
  });

  it('is not known when the limit opens in equal cycles, when closures differ, are short or few', () => {
    expect(record([5000, 20_000], [5000, 20_000], [5000, 20_000]).known).toBeUndefined();
    expect(record([5000, 20_000], [3000, 40_000], [5000, 60_000]).known).toBeUndefined();
    expect(record([500, 20_000], [500, 40_000], [500, 60_000]).known).toBeUndefined();
    expect(record([5000, 20_000], [5000, 40_000]).known).toBeUndefined();
  });

  it('is not known from one closure that was probed and others that may have been short', () => {
    const penalty = new Penalty();
    const unprobed = { leastMs: 0, mostMs: 6000 };
    penalty.record(around(5000), around(20_000));
    penalty.record(unprobed, around(40_000));
    penalty.record(unprobed, around(60_000));
    expect(penalty.known).toBeUndefined();
  });

  it('is tested: the first call after it goes early, and a shorter closure refutes it', () => {
    const penalty = record([5000, 20_000], [5000, 40_000], [5000, 60_000]);
    expect(penalty.expectedMs).toBeLessThan(4500);
    penalty.record({ leastMs: 0, mostMs: 3600 }, around(10_000));
    expect(penalty.known).toBeUndefined();
  });

  it('is waited for when it was confirmed, and known the better the more closures it explains', () => {
    const penalty = record([5000, 20_000], [5000, 40_000], [5000, 60_000]);
    penalty.record({ leastMs: 4700, mostMs: 5300 }, around(10_000));
    expect(penalty.known).toEqual({ leastMs: 4700, mostMs: 5300 });
    expect(penalty.expectedMs).toBe(5000);
    penalty.record(around(15_000), around(30_000));
    expect(penalty.known).toEqual({ leastMs: 4700, mostMs: 5300 });
  });
});

describe('a limit that each refusal closes for 5 s', () => {
  it('is learned from the first refusals of closures, and hardly ever exceeded', async () => {
    const limiter = {
      kind: 'ban' as const,
      limiter: { kind: 'token-bucket' as const, perSecond: 5, burst: 10 },
      refusals: 1,
      withinMs: 1,
      banMs: 5000,
    };
    const { goodput, refusedShare } = await play({ limiter, durationMs: 1_800_000 });
    expect(goodput).toBeGreaterThan(0.9);
    expect(refusedShare).toBeLessThan(0.01);
  });
});
