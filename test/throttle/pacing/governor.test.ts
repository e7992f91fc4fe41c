import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Governor, type GovernorOptions } from '../../../src/throttle/pacing/governor.ts';
import type { RateLimitSignal } from '../../../src/throttle/signals/rate-limit-signal.ts';
import type { PermitReport } from '../../../src/throttle/throttle.ts';
import {
  AUTO,
  bucketLimiter,
  type Limiter,
  seeded,
  simulate,
  type SimulationResult,
  strictLimiter,
  windowLimiter,
} from '../simulation.ts';

const ACCEPTED: PermitReport = { kind: 'accepted' };

function governor(part: Partial<GovernorOptions> = {}): Governor {
  return new Governor({
    maxStreams: 100,
    rate: 'auto',
    burst: 1,
    maxInFlight: 64,
    maxPauseMs: 300_000,
    random: () => 0.5,
    ...part,
  });
}

/** The pauses after refusals in a row, each by the probe of the last pause, without a stated wait. */
function pausesOf(tested: Governor, count: number): number[] {
  const pauses: number[] = [];
  let now = 0;
  while (pauses.length < count) {
    const decision = tested.settle(now, tested.take(now, true), refused());
    pauses.push(decision.kind === 'limited' ? decision.pauseMs : NaN);
    now += pauses.at(-1) ?? NaN;
  }
  return pauses;
}

const NOTHING_STATED = { statedWaitMs: undefined, remaining: undefined, resetInMs: undefined, quotas: [], fields: {} };

function refused(statedWaitMs?: number, status = 429): PermitReport {
  return { kind: 'rate-limited', signal: { ...NOTHING_STATED, status, statedWaitMs } };
}

/** An accepted response that states the remainder. */
function left(remaining: number, resetInMs: number): PermitReport {
  const hint: RateLimitSignal = { ...NOTHING_STATED, status: 200, quotas: [{ remaining, resetInMs }] };
  return { kind: 'accepted', hint };
}

it('extends a stated wait that is too short again and again, up to a bound', () => {
  const auto = governor({ random: () => 1 });
  let now = 0;
  for (let round = 0; round < 12; round++) {
    const grant = auto.take(now, false);
    const decision = auto.settle(now, grant, refused(1000));
    expect(decision).toMatchObject({ kind: 'limited' });
    const pausedMs = auto.pausedMs(now);
    expect(pausedMs).toBeGreaterThanOrEqual(1000);
    expect(pausedMs).toBeLessThanOrEqual(3000);
    now += pausedMs;
  }
});

describe('auto', () => {
  it('is unlimited with 4 in flight, and one more for each accepted response up to the cap', () => {
    const auto = governor();
    expect(auto.ratePolicy.inFlightLimit).toBe(4);
    expect(auto.ratePolicy.rate).toBe(Infinity);
    for (let count = 0; count < 100; count++) auto.settle(count, auto.take(count, false), ACCEPTED);
    expect(auto.ratePolicy.inFlightLimit).toBe(64);
    expect(auto.ratePolicy.rate).toBe(Infinity);
  });

  it('pauses at a refusal, then grants one probe, and the others when it is accepted', () => {
    const auto = governor();
    expect(auto.settle(0, auto.take(0, false), refused(1000))).toEqual({
      kind: 'limited',
      pauseMs: 1000,
      stated: true,
    });
    expect(auto.ratePolicy.rate).toBeLessThan(Infinity);
    expect(auto.openAt(10)).toBe(1000);
    const probe = auto.take(1000, true);
    expect(auto.openAt(1001)).toBeGreaterThan(1001);
    auto.settle(1005, probe, ACCEPTED);
    expect(auto.openAt(1005)).toBeLessThanOrEqual(1005);
  });

  it('lets the others go as well when the probe ends without a response', () => {
    const auto = governor();
    auto.settle(0, auto.take(0, false), refused(1000));
    auto.settleUnreported(1010, auto.take(1000, true), true);
    expect(auto.openAt(1010)).toBeLessThanOrEqual(1010);
  });

  it('sends another probe, and only that, when the first was never sent', () => {
    const auto = governor();
    auto.settle(0, auto.take(0, false), refused(1000));
    auto.giveBack(1010, auto.take(1000, true));
    expect(auto.openAt(1010)).toBe(1010);
    expect(auto.take(1010, true).isPauseProbe).toBe(true);
    expect(auto.openAt(1011)).toBeGreaterThan(1011);
  });

  it('sends another probe after 2 s without a response to the first', () => {
    const auto = governor();
    auto.settle(0, auto.take(0, false), refused(1000));
    auto.take(1000, true);
    expect(auto.openAt(1500)).toBe(3000);
  });

  it('under a limit in flight takes a probe as accepted that is silent for longer than refusals took', () => {
    const auto = governor({ random: () => 0 });
    auto.restore(0, { kind: 'concurrency', windowMs: 0, limit: 4, rate: 2, margin: 1, used: 0 }, 0);
    auto.settle(80, auto.take(0, true), refused());
    expect(auto.take(80, true).isPauseProbe).toBe(true);
    expect(auto.openAt(81)).toBe(240);
    expect(auto.take(240, true).isPauseProbe).toBe(false);
    expect(auto.pause.isClosed).toBe(false);
    expect(auto.openAt(240)).toBe(-Infinity);
  });

  it('under a limit in flight never takes a probe as accepted before the end of the pause', () => {
    const auto = governor({ maxPauseMs: 1000 });
    auto.restore(0, { kind: 'concurrency', windowMs: 0, limit: 4, rate: 2, margin: 1, used: 0 }, 0);
    auto.settle(10, auto.take(0, true), refused(5000));
    for (const at of [1010, 2010, 3010, 4010]) {
      expect(auto.openAt(at - 1)).toBe(at);
      expect(auto.take(at, true).isPauseProbe).toBe(true);
    }
  });

  it('probes a far reset again after maxPauseMs', () => {
    const auto = governor();
    auto.settle(0, auto.take(0, false), left(0, 86_400_000));
    expect(auto.openAt(1)).toBe(300_000);
    expect(auto.certainAt(1)).toBe(300_000);
    expect(auto.take(300_000, true).isPauseProbe).toBe(true);
    expect(auto.openAt(300_001)).toBeGreaterThan(300_001);
  });

  it('draws unstated pauses at random, wider with each refused probe', () => {
    const auto = governor({ random: () => 0.999 });
    expect(pausesOf(auto, 9).map(Math.round)).toEqual([200, 400, 799, 1598, 3197, 6394, 12_787, 25_574, 29_970]);
  });

  it('waits for a tenth of the closed time after ten probes in vain, between 30 s and maxPauseMs', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        fc.integer({ min: 1000, max: 3_600_000 }),
        (draw, maxPauseMs) => {
          const pauses = pausesOf(governor({ random: () => draw, maxPauseMs }), 80);
          let closedMs = 0;
          for (const [probesInVain, pauseMs] of pauses.entries()) {
            if (probesInVain >= 10)
              expect(pauseMs).toBeCloseTo(Math.min(maxPauseMs, Math.max(30_000, closedMs / 10)), 3);
            closedMs += pauseMs;
          }
        },
      ),
    );
  });

  it('asks a limit that is closed for an hour at most 50 times', () => {
    let closedMs = 0;
    const times = pausesOf(governor(), 100).filter((pauseMs) => (closedMs += pauseMs) < 3_600_000).length;
    expect(times).toBeLessThanOrEqual(50);
  });

  it('backs off also from a server that states a wait of 0 again and again', () => {
    const auto = governor();
    auto.settle(0, auto.take(0, false), refused(0));
    auto.settle(1, auto.take(1, true), refused(0));
    expect(auto.openAt(1)).toBeGreaterThan(100);
  });

  it('cuts the rate once for all attempts of one epoch, and keeps to the longest wait stated', () => {
    const auto = governor();
    const [first, second, third] = [auto.take(0, false), auto.take(0, false), auto.take(0, false)];
    auto.settle(5, first, refused(1000));
    const { rate } = auto.ratePolicy;
    auto.settle(6, second, refused());
    expect(auto.openAt(6)).toBe(1005);
    auto.settle(7, third, refused(4000));
    expect(auto.openAt(7)).toBe(4007);
    expect(auto.ratePolicy.rate).toBe(rate);
  });

  it('does not grow a rate that the app does not use', () => {
    const rateAfterUse = (waitedFor: boolean): number => {
      const auto = governor();
      for (let now = 0; now < 4000; now += 100) auto.settle(now + 5, auto.take(now, false), ACCEPTED);
      auto.settle(4005, auto.take(4000, false), refused(0));
      expect(auto.ratePolicy.rate).toBeCloseTo(10, 0);
      for (let now = 5000; now < 105_000; now += 200) auto.settle(now + 5, auto.take(now, waitedFor), ACCEPTED);
      return auto.ratePolicy.rate;
    };
    expect(rateAfterUse(false)).toBeCloseTo(10, 0);
    expect(rateAfterUse(true)).toBeGreaterThan(12);
  });

  it('never exceeds a configured maximum, neither before the first refusal nor after', () => {
    const auto = governor({ maxRate: 3 });
    expect(auto.ratePolicy.rate).toBe(3);
    for (let now = 0; now < 4000; now += 100) auto.settle(now + 5, auto.take(now, false), ACCEPTED);
    auto.settle(4005, auto.take(4000, false), refused(0));
    expect(auto.ratePolicy.rate).toBe(3);
    expect(governor({ maxRate: 3, rate: 7 }).ratePolicy.rate).toBe(7);
  });

  it('keeps to the remainder that accepted responses state, and sends one call first after the reset', () => {
    const auto = governor();
    auto.settle(0, auto.take(0, false), left(3, 5000));
    for (let count = 0; count < 3; count++) {
      expect(auto.openAt(1)).toBeLessThanOrEqual(1);
      auto.settle(2, auto.take(1, false), left(2 - count, 5000));
    }
    expect(auto.certainAt(2)).toBe(5000);
    expect(auto.pausedMs(2)).toBe(4998);
    auto.take(5000, true);
    expect(auto.openAt(5001)).toBeGreaterThan(5001);
  });

  it('treats calls granted since as not counted by a response, and reports no pause for it', () => {
    const auto = governor();
    const first = auto.take(0, false);
    const underWay = auto.take(0, false);
    auto.settle(1, first, left(1, 5000));
    expect(auto.openAt(1)).toBe(5001);
    expect(auto.certainAt(1)).toBe(1);
    auto.giveBack(2, underWay);
    expect(auto.openAt(2)).toBeLessThanOrEqual(2);
  });

  it('does not change a configured rate for statements of the upstream', () => {
    const fixed = governor({ rate: 50 });
    fixed.settle(0, fixed.take(0, false), left(0, 5000));
    expect([fixed.openAt(1), fixed.ratePolicy.rate]).toEqual([-Infinity, 50]);
  });
});

describe('503 with Retry-After', () => {
  it('pauses only after two such responses in a row, and never cuts the rate', () => {
    const auto = governor();
    const grant = (): ReturnType<Governor['take']> => auto.take(0, false);
    expect(auto.settle(0, grant(), refused(1000, 503)).kind).toBe('unlimited');
    auto.settle(0, grant(), ACCEPTED);
    expect(auto.settle(0, grant(), refused(1000, 503)).kind).toBe('unlimited');
    expect(auto.settle(0, grant(), refused(1000, 503)).kind).toBe('limited');
    expect(auto.openAt(0)).toBe(1000);
    expect(auto.ratePolicy.rate).toBe(Infinity);
    expect(auto.ratePolicy.learner?.learned((at) => at)).toBeUndefined();
  });
});

describe('a 503 that the configuration calls a refusal', () => {
  it('pauses and cuts the rate as a 429 does, from the first one on', () => {
    const [configured, reference] = [governor(), governor()];
    const report = { ...refused(1000, 503), isConfigured: true };
    for (let at = 0; at < 20_000; at += 500) {
      const one = configured.settle(at, configured.take(at, false), at % 2000 === 0 ? report : ACCEPTED);
      const other = reference.settle(at, reference.take(at, false), at % 2000 === 0 ? refused(1000, 429) : ACCEPTED);
      expect(one).toEqual(other);
      expect(configured.ratePolicy.rate).toBe(reference.ratePolicy.rate);
    }
    expect(configured.ratePolicy.rate).toBeLessThan(Infinity);
  });
});

describe('a configured rate', () => {
  it('does not change after refusals, with all of maxInFlight from the start', () => {
    const fixed = governor({ rate: 50, burst: 5 });
    fixed.settle(0, fixed.take(0, false), refused(2000));
    expect([fixed.ratePolicy.rate, fixed.ratePolicy.burst, fixed.ratePolicy.inFlightLimit, fixed.openAt(0)]).toEqual([
      50, 5, 64, 2000,
    ]);
    expect([fixed.ratePolicy.isConfident, fixed.ratePolicy.learner?.snapshot(0)]).toEqual([true, undefined]);
    expect(fixed.ratePolicy.learner?.learned((at) => at)).toBeUndefined();
  });
});

describe('200 calls at once against a hidden limit', () => {
  const play = (limiter: Limiter, seed: number): Promise<SimulationResult> => simulate({ limiter, calls: 200, seed });
  const seeds = [1, 2, 3];

  it.each(seeds)('strict 10/s: nearly all served within 30 s, few 429s (seed %i)', async (seed) => {
    const result = await play(strictLimiter(10), seed);
    expect(result.served).toBeGreaterThanOrEqual(195);
    expect(result.refusals).toBeLessThan(20);
    expect(result.lastServedMs).toBeLessThan(31_000);
  });

  it.each(seeds)('strict 2/s: at least three quarters of what the limit allows (seed %i)', async (seed) => {
    const result = await play(strictLimiter(2), seed);
    expect(result.served).toBeGreaterThanOrEqual(45);
    expect(result.refusals).toBeLessThan(20);
  });

  it.each(seeds)('others: all served (seed %i)', async (seed) => {
    const limiters = [
      strictLimiter(50),
      strictLimiter(300),
      bucketLimiter(10, 20),
      windowLimiter(100, 10_000, true),
      windowLimiter(100, 10_000, false),
    ];
    for (const limiter of limiters) {
      const result = await play(limiter, seed);
      expect(result).toMatchObject({ served: 200, failed: 0 });
      expect(result.refusals).toBeLessThan(80);
    }
  });

  it('gives the same result for the same seed', async () => {
    expect(await play(strictLimiter(10), 7)).toEqual(await play(strictLimiter(10), 7));
    expect(seeded(7)()).not.toBe(seeded(8)());
    expect(AUTO.maxInFlight).toBe(64);
  });
});
