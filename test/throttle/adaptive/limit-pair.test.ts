/** Two limits that hold at once: both are learned, the slower one is described, and both are kept over a restart. */
import { describe, expect, it } from 'vitest';
import type { Closure } from '../../../src/throttle/adaptive/closure-history.ts';
import type { Counter } from '../../../src/throttle/adaptive/counter-bank.ts';
import { type ChosenLimit, choosePair } from '../../../src/throttle/adaptive/limit-choice.ts';
import { Governor } from '../../../src/throttle/pacing/governor.ts';
import type { LimiterRule } from '../../bench/governor/limiters.ts';
import { play } from './auto-world.ts';

const PER_SECOND: LimiterRule = { kind: 'fixed-window', calls: 5, windowMs: 1000 };
const PER_MINUTE: LimiterRule = { kind: 'fixed-window', calls: 200, windowMs: 60_000 };

function restored(now: number, snapshot: unknown): Governor {
  const terms = { rate: 'auto', burst: 1, maxInFlight: 64, maxPauseMs: 300_000 } as const;
  const governor = new Governor({ maxStreams: 100, ...terms, random: () => 0.5 });
  governor.restore(now, snapshot, 0);
  return governor;
}

describe('two limits at once', () => {
  it('are both learned, and the slower one is described', async () => {
    for (const seed of [2, 3]) {
      const limiter: LimiterRule = { kind: 'all-of', limiters: [PER_SECOND, PER_MINUTE] };
      const { goodput, refusedShare, throttles } = await play({ limiter, seed, durationMs: 1_200_000 });
      expect(goodput).toBeGreaterThan(0.97);
      expect(refusedShare).toBeLessThan(0.015);
      const { learned, usage } = throttles[0]?.state() ?? {};
      expect(learned).toMatchObject({ kind: 'window', limit: 200, confidence: 'high' });
      expect(usage).toMatchObject({ limit: 200, windowMs: learned?.windowMs });
      expect(throttles[0]?.snapshot()?.governor).toMatchObject({ second: { kind: 'window', limit: 200 } });
    }
  });

  it('are both kept over a restart', () => {
    // All were made within the last tenth: spread over the window, some would soon be over.
    const usedInTenths = Array.from({ length: 9 }, () => 150);
    const second = { kind: 'window', windowMs: 60_000, limit: 200, rate: 200 / 60, margin: 1, used: 150, usedInTenths };
    const first = { kind: 'window', windowMs: 1000, limit: 5, rate: 5, margin: 1, used: 2 };
    for (const snapshot of [
      { ...first, second },
      { ...second, second: first },
    ]) {
      const governor = restored(1000, JSON.parse(JSON.stringify(snapshot)));
      expect(governor.ratePolicy.rate).toBeCloseTo(200 / 60, 0);
      expect(governor.ratePolicy.burst).toBe(1);
      expect(governor.ratePolicy.learner?.learned((at) => at)).toMatchObject({ kind: 'window', limit: 200 });
      expect(governor.ratePolicy.learner?.countUsed(1001)).toMatchObject({ used: 150, limit: 200 });
      expect(governor.ratePolicy.learner?.snapshot(1001)).toMatchObject({
        limit: snapshot.limit,
        second: { limit: snapshot.second.limit },
      });
      for (let call = 0; call < 50; call++) governor.take(1010, true);
      expect(governor.openAt(1020)).toBeGreaterThan(5000);
    }
  });
});

it('only calls beyond the slower of two limits are probe calls, and the faster one is kept to', () => {
  const slower = { kind: 'window', windowMs: 10_000, limit: 100, rate: 10, margin: 1, used: 0 };
  const faster = { kind: 'bucket', windowMs: 0, limit: 2, rate: 20, margin: 1, used: 0 };
  for (const snapshot of [
    { ...slower, second: faster },
    { ...faster, second: slower },
  ]) {
    const governor = restored(0, snapshot);
    const probeCalls: number[] = [];
    for (let now = 6000; probeCalls.length === 0; now = Math.max(now + 1, governor.openAt(now))) {
      const grant = governor.take(now, true);
      if (grant.isLimitProbe) probeCalls.push(now);
    }
    // Two at once, 20/s, until the window is used up.
    expect(probeCalls[0]).toBeGreaterThan(6000 + 97 * 50);
    expect(probeCalls[0]).toBeLessThan(6000 + 103 * 50);
  }
});

describe('the choice of an additional limit', () => {
  const SHORT: Counter = { kind: 'window', windowMs: 1000 };
  const LONG: Counter = { kind: 'window', windowMs: 60_000 };
  const trusted: ChosenLimit = { index: 0, counter: SHORT, capacity: 10, rate: 10, isContradicted: false };
  /** @param counts of the short window, then of the long one */
  const closures = (...counts: [number, number][]): Closure[] =>
    counts.map((refused) => ({ refused: Float32Array.from(refused), accepted: new Float32Array(2) }));
  const used = closures([10, 100], [11, 150], [10, 200]);
  const unused = closures([4, 300], [5, 310]);
  const choose = (all: readonly Closure[], limit?: ChosenLimit): ReturnType<typeof choosePair> =>
    choosePair([SHORT, LONG], all, limit, 20);

  it('explains the refusals that come long before the trusted limit is used up', () => {
    const pair = choose([...used, ...unused], trusted);
    expect(pair).toMatchObject({
      main: { counter: SHORT, capacity: 10 },
      additional: { counter: LONG, capacity: 300 },
    });
    expect(pair?.unexplained).toEqual(unused);
  });

  it('needs two refusals if it is slower', () => {
    const [one = unused[0]] = unused;
    expect(choose([...used, ...(one ? [one] : [])], trusted)).toMatchObject({
      main: { capacity: 10 },
      additional: undefined,
    });
  });

  it.each([
    ['no limit is trusted', [...used, ...unused], undefined],
    ['the trusted limit explains too few', [...used.slice(1), ...unused], trusted],
    ['the unexplained refusals are too many', [...used, ...unused, ...unused, ...unused, ...unused], trusted],
  ])('is not made when %s: one limit explains all', (_, all, limit) => {
    expect(choose(all, limit)).toMatchObject({ additional: undefined, unexplained: [], trusted: undefined });
    expect(choose(all, limit)?.main.rate).toBeLessThan(6);
  });
});
