import { describe, expect, it } from 'vitest';
import { DEFAULT_LEARNING } from '../../../src/throttle/adaptive/learning-parameters.ts';
import { LimitProbe } from '../../../src/throttle/adaptive/limit-probe.ts';

const { firstProbeDelayMs, probeIntervalMs, probeIntervalCalls, probeGain, probeIntervalCallsAfterChange } =
  DEFAULT_LEARNING;

/** Calls that were accepted `apartMs` apart, none of them beyond what is believed. */
function accept(trial: LimitProbe, calls: number, { apartMs = 100, from = 0, beyond = false } = {}): void {
  for (let call = 1; call <= calls; call++) {
    if (beyond) trial.recordProbeCallSent(from + call * apartMs - 1);
    trial.recordAccepted(from + call * apartMs, beyond, true, false);
    if (beyond) trial.recordProbeCallEnded();
  }
}

describe('when to try for more', () => {
  it('is never, while nothing was refused', () => {
    expect(new LimitProbe(DEFAULT_LEARNING).dueAt).toBe(Infinity);
  });

  it('is soon after the first refusal, and twice as long after each foreseen one', () => {
    const trial = new LimitProbe(DEFAULT_LEARNING);
    const gaps = [true, false, false, false].map((surprised) => {
      trial.scheduleAfterRefusal(1000, surprised);
      return trial.dueAt - 1000;
    });
    expect(gaps).toEqual([1, 2, 4, 8].map((times) => times * firstProbeDelayMs));
  });

  it('is after the usual time once enough calls were made within the limit, however often it was refused', () => {
    const trial = new LimitProbe(DEFAULT_LEARNING);
    for (let refusal = 0; refusal < 20; refusal++) trial.scheduleAfterRefusal(0, false);
    expect(trial.dueAt).toBeGreaterThan(100 * probeIntervalMs);
    for (let call = 0; call <= probeIntervalCalls; call++) trial.countCall(1000);
    expect(trial.dueAt).toBe(probeIntervalMs);
  });

  it('is after fewer calls for a while when the limit has changed', () => {
    const callsUntilDue = (unsettled: boolean): number => {
      const trial = new LimitProbe(DEFAULT_LEARNING);
      for (let refusal = 0; refusal < 20; refusal++) trial.scheduleAfterRefusal(0, false);
      if (unsettled) trial.recordLimitChange(0);
      let calls = 0;
      while (trial.dueAt > probeIntervalMs) {
        trial.countCall(1000);
        calls++;
      }
      return calls;
    };
    expect([callsUntilDue(true), callsUntilDue(false)]).toEqual([
      probeIntervalCallsAfterChange + 1,
      probeIntervalCalls + 1,
    ]);
  });

  it('is once after a time that is handed in', () => {
    const trial = new LimitProbe(DEFAULT_LEARNING);
    trial.scheduleFirst(1000, 5000);
    expect(trial.dueAt).toBe(6000);
  });
});

describe('trying for more', () => {
  it('begins a little above the known rate, and grows with what is accepted', () => {
    const trial = new LimitProbe(DEFAULT_LEARNING);
    trial.start(10);
    expect(trial.rate).toBe(10 * probeGain);
    accept(trial, 20);
    expect(trial.rate).toBeGreaterThan(10 * probeGain);
    expect(trial.rate).toBeLessThan(20);
  });

  it('does not grow while the application does not use it', () => {
    const trial = new LimitProbe(DEFAULT_LEARNING);
    trial.start(10);
    for (let now = 100; now < 5000; now += 100) trial.recordAccepted(now, false, false, false);
    expect(trial.rate).toBe(10 * probeGain);
  });

  it('sends one call beyond the limit at a time, and more of them once some were accepted', () => {
    const trial = new LimitProbe(DEFAULT_LEARNING);
    trial.start(10);
    expect(trial.openAt(0)).toBe(-Infinity);
    trial.recordProbeCallSent(0);
    expect(trial.openAt(10)).toBeGreaterThan(10);
    trial.recordProbeCallEnded();
    expect(trial.openAt(20)).toBe(-Infinity);
    accept(trial, 4, { beyond: true });
    trial.recordProbeCallSent(1000);
    expect(trial.openAt(1001)).toBe(-Infinity);
    trial.recordProbeCallSent(1001);
    expect(trial.openAt(1002)).toBeGreaterThan(1002);
  });

  it('is not held up for ever by a call without an answer', () => {
    const trial = new LimitProbe(DEFAULT_LEARNING);
    trial.start(10);
    trial.recordProbeCallSent(0);
    expect(trial.openAt(trial.openAt(1))).toBe(-Infinity);
  });

  it('doubles each second once calls beyond the limit are accepted again and again, or no limit is known', () => {
    const beyond = new LimitProbe(DEFAULT_LEARNING);
    beyond.start(10);
    accept(beyond, 40, { beyond: true });
    expect(beyond.rate).toBeGreaterThan(40);
    const unlimited = new LimitProbe(DEFAULT_LEARNING);
    unlimited.continueFrom(10);
    for (let now = 100; now <= 2000; now += 100) unlimited.recordAccepted(now, false, true, true);
    expect(unlimited.rate).toBeGreaterThan(35);
  });

  it('is bolder or more timid the next time, as this one ended late or at once', () => {
    const trial = new LimitProbe(DEFAULT_LEARNING);
    trial.start(10);
    trial.end();
    trial.start(10);
    const afterEarlyEnd = trial.rate;
    expect(afterEarlyEnd).toBeLessThan(10 * probeGain);
    for (let times = 0; times < 20; times++) {
      trial.start(10);
      trial.end();
    }
    trial.start(10);
    expect(trial.rate).toBeGreaterThan(10);
    for (let times = 0; times < 20; times++) {
      trial.start(10);
      accept(trial, 12);
      trial.end();
    }
    trial.start(10);
    expect(trial.rate).toBeCloseTo(10 * probeGain);
  });
});
