/** Limiter models, fed with the calls of a simulated client: the model of the true limiter stays consistent, the others do not. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createModelSelector } from '../../../src/throttle/adaptive/model-selector.ts';
import { BucketModel } from '../../../src/throttle/adaptive/bucket-model.ts';
import { DEFAULT_LEARNING } from '../../../src/throttle/adaptive/learning-parameters.ts';
import { ConcurrencyModel } from '../../../src/throttle/adaptive/concurrency-model.ts';
import type { LimiterModel } from '../../../src/throttle/adaptive/limiter-model.ts';
import { WindowModel, type WindowKind } from '../../../src/throttle/adaptive/window-model.ts';
import type { LimiterRule } from '../../bench/governor/limiters.ts';
import { seeded } from '../simulation.ts';
import { callLimiter } from './truthful-limiter.ts';

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

/** The model explains every call so far, and its bounds contain the true capacity within the tolerances. */
function expectBoundsAround(model: LimiterModel, lowest: number, highest: number): void {
  expect(model.isConsistent).toBe(true);
  expect(model.bounds.lower).toBeLessThanOrEqual(highest);
  expect(model.bounds.upper).toBeGreaterThanOrEqual(lowest);
}

describe('the model of the true limiter stays consistent, and its bounds contain the limit', () => {
  it.each(KINDS)('%s', (kind, server) => {
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
        // Of calls within the jitter around the end of a window, the model cannot know which one opened the next window.
        const isFirstCall = kind === 'first-call-window';
        const leastApartMs = isFirstCall ? 2.5 * jitterMs : 0;
        const limiter: LimiterRule =
          server === 'fixed-window' ? { kind: server, calls, windowMs, phaseMs } : { kind: server, calls, windowMs };
        callLimiter({
          limiter,
          departures: departuresOf(gaps, windowMs / calls).map((at, index) => at + index * leastApartMs),
          flightMs: 20,
          jitterMs,
          random: seeded(seed),
          createModels: ({ accepted }) => [new WindowModel(kind, windowMs, accepted, DEFAULT_LEARNING)],
          // One call may have overtaken the start of its fixed window: isConsistent allows for that.
          onResponse: ([model]) => expectBoundsAround(model, calls, calls + (kind === 'fixed-window' ? 1 : 0)),
        });
      },
    );
    fc.assert(property, { numRuns: 100, seed: 1 });
  });

  it('bucket', () => {
    const property = fc.property(
      fc.record({
        perSecond: fc.constantFrom(0.5, 2, 10, 50),
        burst: fc.integer({ min: 1, max: 30 }),
        jitterMs: fc.constantFrom(2, 10, 40),
        gaps: GAPS,
        seed: fc.nat(),
      }),
      ({ perSecond, burst, jitterMs, gaps, seed }) => {
        const perMs = perSecond / 1000;
        callLimiter({
          limiter: { kind: 'token-bucket', perSecond, burst },
          departures: departuresOf(gaps, 1 / perMs),
          flightMs: 20,
          jitterMs,
          random: seeded(seed),
          createModels: ({ accepted }) => [new BucketModel(accepted)],
          onResponse: ([model]) => expectBoundsAround(model, perMs * 0.995, perMs * 1.005),
        });
      },
    );
    fc.assert(property, { numRuns: 100 });
  });

  it('concurrency', () => {
    const property = fc.property(
      fc.record({ calls: fc.integer({ min: 3, max: 30 }), gaps: GAPS, seed: fc.nat() }),
      ({ calls, gaps, seed }) => {
        const serviceMs = 3000;
        // The response to a refused call arrives before the next call is sent.
        const departures = departuresOf(gaps, serviceMs / calls).map((at, index) => at + index * 70);
        callLimiter({
          limiter: { kind: 'concurrency', calls },
          departures,
          flightMs: 20,
          jitterMs: 10,
          serviceMs,
          random: seeded(seed),
          createModels: ({ sent }) => [new ConcurrencyModel(sent)],
          onResponse: ([model]) => expectBoundsAround(model, calls, calls),
        });
      },
    );
    fc.assert(property, { numRuns: 100 });
  });
});

/** For five minutes: stretches of up to 23 s at 2 to 32 calls a second, and quiet times between some of them. */
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

describe('of all models only the true one stays consistent, is selected and trusted, and has the limit', () => {
  const cases: [LimiterRule, string, number, number][] = [
    [{ kind: 'sliding-log', calls: 100, windowMs: 10_000 }, 'sliding-window', 10_000, 100],
    [{ kind: 'fixed-window', calls: 100, windowMs: 10_000, phaseMs: 3000 }, 'fixed-window', 10_000, 100],
    [{ kind: 'first-call-window', calls: 100, windowMs: 10_000 }, 'first-call-window', 10_000, 100],
    [{ kind: 'token-bucket', perSecond: 10, burst: 20 }, 'bucket', 2000, 20],
    [{ kind: 'concurrency', calls: 8 }, 'concurrency', 0, 8],
  ];
  it.each(cases)('%j', (limiter, kind, windowMs, limit) => {
    const random = seeded(1);
    const selector = callLimiter({
      limiter,
      departures: variedDepartures(random),
      flightMs: 20,
      jitterMs: 10,
      serviceMs: limiter.kind === 'concurrency' ? 500 : 0,
      random,
      createModels: ({ accepted, sent }) => createModelSelector(DEFAULT_LEARNING, accepted, sent).models,
    });
    const consistent = selector.models.filter((model) => model.isConsistent);
    expect(consistent.map((model) => model.kind)).toEqual([kind]);
    const selected = selector.selectBest(300_000, 0);
    expect(selected).toBe(consistent[0]);
    expect(Math.abs((selected?.windowMs ?? 0) - windowMs)).toBeLessThanOrEqual(0.05 * windowMs);
    expect(Math.abs((selected?.limit ?? 0) - limit)).toBeLessThanOrEqual(1);
    expect(selected?.isTrusted).toBe(true);
  });
});
