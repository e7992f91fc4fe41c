import { describe, expect, it } from 'vitest';
import { DEFAULT_LEARNING } from '../../../src/throttle/adaptive/learning-parameters.ts';
import { LimitProbe } from '../../../src/throttle/adaptive/limit-probe.ts';

const { firstProbeDelayMs, probeIntervalMs, probeIntervalCalls, probeGain, probeIntervalCallsAfterChange } =
  DEFAULT_LEARNING;

/** Accepted calls, `apartMs` apart; `isProbeCall`: beyond the limit. */
function accept(probe: LimitProbe, calls: number, { apartMs = 100, isProbeCall = false } = {}): void {
  for (let call = 1; call <= calls; call++) {
    if (isProbeCall) probe.recordProbeCallSent(call * apartMs - 1);
    probe.recordAccepted(call * apartMs, isProbeCall, true, false);
    if (isProbeCall) probe.recordProbeCallEnded();
  }
}

describe('the next probe', () => {
  it('is not due before the first refusal', () => {
    expect(new LimitProbe(DEFAULT_LEARNING).dueAt).toBe(Infinity);
  });

  it('is due soon after an unexpected refusal, and after twice the time with each expected one', () => {
    const probe = new LimitProbe(DEFAULT_LEARNING);
    const gaps = [true, false, false, false].map((isUnexpected) => {
      probe.scheduleAfterRefusal(1000, isUnexpected);
      return probe.dueAt - 1000;
    });
    expect(gaps).toEqual([1, 2, 4, 8].map((times) => times * firstProbeDelayMs));
  });

  it('is due after the usual interval once enough calls were sent, however often it was refused', () => {
    const probe = new LimitProbe(DEFAULT_LEARNING);
    for (let refusal = 0; refusal < 20; refusal++) probe.scheduleAfterRefusal(0, false);
    expect(probe.dueAt).toBeGreaterThan(100 * probeIntervalMs);
    for (let call = 0; call <= probeIntervalCalls; call++) probe.countCall(1000);
    expect(probe.dueAt).toBe(probeIntervalMs);
  });

  it('is due after fewer calls for a while after the limit changed', () => {
    const callsUntilDue = (hasChanged: boolean): number => {
      const probe = new LimitProbe(DEFAULT_LEARNING);
      for (let refusal = 0; refusal < 20; refusal++) probe.scheduleAfterRefusal(0, false);
      if (hasChanged) probe.recordLimitChange(0);
      let calls = 0;
      while (probe.dueAt > probeIntervalMs) {
        probe.countCall(1000);
        calls++;
      }
      return calls;
    };
    expect([callsUntilDue(true), callsUntilDue(false)]).toEqual([
      probeIntervalCallsAfterChange + 1,
      probeIntervalCalls + 1,
    ]);
  });

  it('is due after the given delay for a restored limit', () => {
    const probe = new LimitProbe(DEFAULT_LEARNING);
    probe.scheduleFirst(1000, 5000);
    expect(probe.dueAt).toBe(6000);
  });
});

describe('a probe', () => {
  it('begins above the learned rate, and grows with accepted calls', () => {
    const probe = new LimitProbe(DEFAULT_LEARNING);
    probe.start(10);
    expect(probe.rate).toBe(10 * probeGain);
    accept(probe, 20);
    expect(probe.rate).toBeGreaterThan(10 * probeGain);
    expect(probe.rate).toBeLessThan(20);
  });

  it('does not grow while the application does not use it', () => {
    const probe = new LimitProbe(DEFAULT_LEARNING);
    probe.start(10);
    for (let now = 100; now < 5000; now += 100) probe.recordAccepted(now, false, false, false);
    expect(probe.rate).toBe(10 * probeGain);
  });

  it('sends one call beyond the limit at a time, and more of them once some were accepted', () => {
    const probe = new LimitProbe(DEFAULT_LEARNING);
    probe.start(10);
    expect(probe.openAt(0)).toBe(-Infinity);
    probe.recordProbeCallSent(0);
    expect(probe.openAt(10)).toBeGreaterThan(10);
    probe.recordProbeCallEnded();
    expect(probe.openAt(20)).toBe(-Infinity);
    accept(probe, 4, { isProbeCall: true });
    probe.recordProbeCallSent(1000);
    expect(probe.openAt(1001)).toBe(-Infinity);
    probe.recordProbeCallSent(1001);
    expect(probe.openAt(1002)).toBeGreaterThan(1002);
  });

  it('continues after a time-out when a call gets no response', () => {
    const probe = new LimitProbe(DEFAULT_LEARNING);
    probe.start(10);
    probe.recordProbeCallSent(0);
    expect(probe.openAt(probe.openAt(1))).toBe(-Infinity);
  });

  it('doubles its rate each second after several accepted calls beyond the limit, or without a model', () => {
    const successful = new LimitProbe(DEFAULT_LEARNING);
    successful.start(10);
    accept(successful, 40, { isProbeCall: true });
    expect(successful.rate).toBeGreaterThan(40);
    const unlimited = new LimitProbe(DEFAULT_LEARNING);
    unlimited.continueFrom(10);
    for (let now = 100; now <= 2000; now += 100) unlimited.recordAccepted(now, false, true, true);
    expect(unlimited.rate).toBeGreaterThan(35);
  });

  it('begins slower after a probe that was refused at once, and faster after one that was refused late', () => {
    const probe = new LimitProbe(DEFAULT_LEARNING);
    probe.start(10);
    probe.end();
    probe.start(10);
    const afterEarlyEnd = probe.rate;
    expect(afterEarlyEnd).toBeLessThan(10 * probeGain);
    for (let times = 0; times < 20; times++) {
      probe.start(10);
      probe.end();
    }
    probe.start(10);
    expect(probe.rate).toBeGreaterThan(10);
    for (let times = 0; times < 20; times++) {
      probe.start(10);
      accept(probe, 12);
      probe.end();
    }
    probe.start(10);
    expect(probe.rate).toBeCloseTo(10 * probeGain);
  });
});
