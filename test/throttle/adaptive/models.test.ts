/** Ideas of a limiter: the true one stands whatever is seen, and says the truth; false ones fall. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createModelSelector } from '../../../src/throttle/adaptive/model-selector.ts';
import { BucketModel } from '../../../src/throttle/adaptive/bucket-model.ts';
import { DEFAULT_LEARNING } from '../../../src/throttle/adaptive/learning-parameters.ts';
import { ConcurrencyModel } from '../../../src/throttle/adaptive/concurrency-model.ts';
import { WindowModel, type WindowKind } from '../../../src/throttle/adaptive/window-model.ts';
import type { LimiterRule } from '../../bench/governor/limiters.ts';
import { seeded } from '../simulation.ts';
import { ask } from './truthful-limiter.ts';

/** Lets the bounds be seen. */
class OpenWindow extends WindowModel {
  get bounds(): [number, number] {
    return [this.lowerBound, this.upperBound];
  }
}
class OpenBucket extends BucketModel {
  get bounds(): [number, number] {
    return [this.lowerBound, this.upperBound];
  }
}
class OpenSlots extends ConcurrencyModel {
  get bounds(): [number, number] {
    return [this.lowerBound, this.upperBound];
  }
}

const KINDS: readonly [WindowKind, 'sliding-log' | 'fixed-window' | 'first-call-window'][] = [
  ['sliding-window', 'sliding-log'],
  ['fixed-window', 'fixed-window'],
  ['first-call-window', 'first-call-window'],
];

/** Bursts, trickles and quiet times, in multiples of the mean gap between calls at the limit. */
const GAPS = fc.array(
  fc.record({
    calls: fc.integer({ min: 1, max: 40 }),
    apart: fc.constantFrom(0, 0.05, 0.3, 0.7, 1, 1.5),
    quiet: fc.constantFrom(0, 0, 1, 10, 60),
  }),
  { minLength: 5, maxLength: 40 },
);

function departuresOf(gaps: readonly { calls: number; apart: number; quiet: number }[], meanGapMs: number): number[] {
  let now = 0;
  return gaps.flatMap(({ calls, apart, quiet }) => {
    now += quiet * meanGapMs;
    return Array.from({ length: calls }, () => (now += apart * meanGapMs));
  });
}

describe('an idea that is true', () => {
  it.each(KINDS)('stands, and its bounds hold the truth: %s', (kind, server) => {
    const property = fc.property(
      fc.record({
        calls: fc.integer({ min: 1, max: 60 }),
        windowMs: fc.constantFrom(1000, 5000, 10_000),
        phaseMs: fc.integer({ min: 0, max: 9999 }),
        jitterMs: fc.constantFrom(2, 10, 40),
        gaps: GAPS,
        seed: fc.nat(),
      }),
      ({ calls, windowMs, phaseMs, jitterMs, gaps, seed }) => {
        // Which of several calls has opened a window is not asked when they were sent within the jitter of its end.
        const isFirstCall = kind === 'first-call-window';
        const leastApartMs = isFirstCall ? 2.5 * jitterMs : 0;
        const limiter: LimiterRule =
          server === 'fixed-window' ? { kind: server, calls, windowMs, phaseMs } : { kind: server, calls, windowMs };
        ask({
          limiter,
          departures: departuresOf(gaps, windowMs / calls).map((at, index) => at + index * leastApartMs),
          flightMs: 20,
          jitterMs,
          random: seeded(seed),
          createModels: ({ accepted }) => [new OpenWindow(kind, windowMs, accepted, DEFAULT_LEARNING)],
          look: (beliefs) => {
            const [model] = beliefs.models;
            if (!(model instanceof OpenWindow)) throw new Error('no such model');
            const [least, most] = model.bounds;
            expect(model.isConsistent).toBe(true);
            // One call may have overtaken the opening of its window: the idea allows for that in what it survives.
            expect(least).toBeLessThanOrEqual(calls + (kind === 'fixed-window' ? 1 : 0));
            expect(most).toBeGreaterThanOrEqual(calls);
          },
        });
      },
    );
    fc.assert(property, { numRuns: 100, seed: 1 });
  });

  it('stands, and its bounds hold the truth: bucket', () => {
    const property = fc.property(
      fc.record({
        perSecond: fc.constantFrom(0.5, 2, 10, 50),
        burst: fc.integer({ min: 1, max: 30 }),
        jitterMs: fc.constantFrom(2, 10, 40),
        gaps: GAPS,
        seed: fc.nat(),
      }),
      ({ perSecond, burst, jitterMs, gaps, seed }) => {
        ask({
          limiter: { kind: 'token-bucket', perSecond, burst },
          departures: departuresOf(gaps, 1000 / perSecond),
          flightMs: 20,
          jitterMs,
          random: seeded(seed),
          createModels: ({ accepted }) => [new OpenBucket(accepted)],
          look: (beliefs) => {
            const [model] = beliefs.models;
            if (!(model instanceof OpenBucket)) throw new Error('no such model');
            const [least, most] = model.bounds;
            expect(model.isConsistent).toBe(true);
            expect(least * 1000).toBeLessThanOrEqual(perSecond * 1.005);
            expect(most * 1000).toBeGreaterThanOrEqual(perSecond * 0.995);
          },
        });
      },
    );
    fc.assert(property, { numRuns: 100 });
  });

  it('stands, and its bounds hold the truth: calls at the same time', () => {
    const property = fc.property(
      fc.record({ calls: fc.integer({ min: 3, max: 30 }), gaps: GAPS, seed: fc.nat() }),
      ({ calls, gaps, seed }) => {
        const serviceMs = 3000;
        // A refusal is back before the next call goes out.
        const departures = departuresOf(gaps, serviceMs / calls).map((at, index) => at + index * 70);
        ask({
          limiter: { kind: 'concurrency', calls },
          departures,
          flightMs: 20,
          jitterMs: 10,
          serviceMs,
          random: seeded(seed),
          createModels: ({ sent }) => [new OpenSlots(sent)],
          look: (beliefs) => {
            const [model] = beliefs.models;
            if (!(model instanceof OpenSlots)) throw new Error('no such model');
            const [least, most] = model.bounds;
            expect(model.isConsistent).toBe(true);
            expect(least).toBeLessThanOrEqual(calls);
            expect(most).toBeGreaterThanOrEqual(calls);
          },
        });
      },
    );
    fc.assert(property, { numRuns: 100 });
  });
});

/** For five minutes: stretches of up to 23 s at 2 to 32 calls a second, and quiet times between some. */
function variedDepartures(random: () => number): number[] {
  const departures: number[] = [];
  let now = 0;
  while (now < 300_000) {
    const endsAt = now + 3000 + random() * 20_000;
    const perMs = (2 + random() * 30) / 1000;
    while (now < endsAt) departures.push((now += -Math.log(1 - random()) / perMs));
    if (random() < 0.5) now += random() * 15_000;
  }
  return departures;
}

describe('of all ideas only the true one is left, and knows the limit', () => {
  const cases: [LimiterRule, string, number, number][] = [
    [{ kind: 'sliding-log', calls: 100, windowMs: 10_000 }, 'sliding-window', 10_000, 100],
    [{ kind: 'fixed-window', calls: 100, windowMs: 10_000, phaseMs: 3000 }, 'fixed-window', 10_000, 100],
    [{ kind: 'first-call-window', calls: 100, windowMs: 10_000 }, 'first-call-window', 10_000, 100],
    [{ kind: 'token-bucket', perSecond: 10, burst: 20 }, 'bucket', 2000, 20],
    [{ kind: 'concurrency', calls: 8 }, 'concurrency', 0, 8],
  ];
  it.each(cases)('%j', (limiter, kind, windowMs, limit) => {
    const random = seeded(1);
    const beliefs = ask({
      limiter,
      departures: variedDepartures(random),
      flightMs: 20,
      jitterMs: 10,
      serviceMs: limiter.kind === 'concurrency' ? 500 : 0,
      random,
      createModels: ({ accepted, sent }) => [...createModelSelector(DEFAULT_LEARNING, accepted, sent).models],
    });
    const standing = beliefs.models.filter((model) => model.isConsistent);
    expect(standing.map((model) => model.kind)).toEqual([kind]);
    const [model] = standing;
    expect(Math.abs((model?.windowMs ?? 0) - windowMs)).toBeLessThanOrEqual(0.05 * windowMs);
    expect(Math.abs((model?.limit ?? 0) - limit)).toBeLessThanOrEqual(1);
    expect(beliefs.selectBest(300_000, 0)).toBe(model);
    expect(model?.isTrusted).toBe(true);
  });
});
