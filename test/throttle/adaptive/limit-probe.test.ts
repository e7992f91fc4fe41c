import { describe, expect, it } from 'vitest';
import {
  LimitProbe,
  PROBE_GAIN,
  PROBE_INTERVAL_CALLS,
  PROBE_INTERVAL_CALLS_AFTER_CHANGE,
  PROBE_INTERVAL_MS,
  UNTRUSTED_PROBE_CALLS,
  UNTRUSTED_PROBE_MS,
} from '../../../src/throttle/adaptive/limit-probe.ts';

/** Accepted calls, `apartMs` apart; `isLimitProbe`: beyond the limit. */
function accept(probe: LimitProbe, calls: number, { apartMs = 100, isLimitProbe = false } = {}): void {
  for (let call = 1; call <= calls; call++) {
    if (isLimitProbe) probe.recordLimitProbeSent(call * apartMs - 1);
    probe.recordAccepted(call * apartMs, isLimitProbe, true, false);
    if (isLimitProbe) probe.recordLimitProbeEnded();
  }
}

it('grows to twice the learned rate at most, until the limit is known to be raised', () => {
  const probe = new LimitProbe();
  probe.start(10, 10, 0);
  accept(probe, 10_000, { isLimitProbe: true });
  expect(probe.rate).toBe(20);
  probe.continueFrom(20);
  for (let call = 1; call <= 20; call++) probe.recordAccepted(1_000_000 + call * 100, true, true, true);
  expect(probe.rate).toBeGreaterThan(40);
});

it('grows beyond the limit also when it begins at a small share of it', () => {
  const probe = new LimitProbe();
  probe.start(1, 100, 0);
  accept(probe, 10_000, { isLimitProbe: true });
  expect(probe.rate).toBe(200);
});

describe('the next probe', () => {
  it('is not due before the first refusal', () => {
    expect(new LimitProbe().dueAt).toBe(Infinity);
  });

  it('is due once enough time has passed and enough calls were sent since the last refusal', () => {
    const probe = new LimitProbe();
    probe.scheduleAfterRefusal(1000);
    for (let call = 0; call < PROBE_INTERVAL_CALLS; call++) probe.countCall(2000, true);
    expect(probe.dueAt).toBe(Infinity);
    probe.countCall(2000, true);
    expect(probe.dueAt).toBe(1000 + PROBE_INTERVAL_MS);
    probe.scheduleAfterRefusal(3000);
    expect(probe.dueAt).toBe(Infinity);
    for (let call = 0; call <= PROBE_INTERVAL_CALLS; call++) probe.countCall(90_000, true);
    expect(probe.dueAt).toBe(90_000);
  });

  it('is due after as many times more time, and after the same number of calls, where a refusal costs more', () => {
    const probe = new LimitProbe();
    probe.scheduleAfterRefusal(0, 3);
    for (let call = 0; call < PROBE_INTERVAL_CALLS; call++) probe.countCall(1000, true);
    expect(probe.dueAt).toBe(Infinity);
    probe.countCall(1000, true);
    expect(probe.dueAt).toBe(3 * PROBE_INTERVAL_MS);
  });

  it('is due after fewer calls for a while after the limit changed', () => {
    const callsUntilDue = (hasChanged: boolean): number => {
      const probe = new LimitProbe();
      probe.scheduleAfterRefusal(0);
      if (hasChanged) probe.recordLimitChange(0);
      let calls = 0;
      while (probe.dueAt > PROBE_INTERVAL_MS) {
        probe.countCall(1000, true);
        calls++;
      }
      return calls;
    };
    expect([callsUntilDue(true), callsUntilDue(false)]).toEqual([
      PROBE_INTERVAL_CALLS_AFTER_CHANGE + 1,
      PROBE_INTERVAL_CALLS + 1,
    ]);
  });

  it.each([
    ['after this time at a low rate', 1, UNTRUSTED_PROBE_MS],
    ['after this number of calls at a high rate', UNTRUSTED_PROBE_CALLS + 1, 10],
  ])('is due in a fleet that does not trust its limit %s', (_, calls, at) => {
    const [untrusted, trusted] = [new LimitProbe(true), new LimitProbe(true)];
    for (const probe of [untrusted, trusted]) {
      probe.scheduleAfterRefusal(0);
      for (let call = 1; call < calls; call++) probe.countCall(10, probe === trusted);
      probe.countCall(at - 1, probe === trusted);
    }
    expect(calls > 1 ? untrusted.dueAt <= at : untrusted.dueAt === Infinity).toBe(true);
    untrusted.countCall(at, false);
    trusted.countCall(at, true);
    expect([untrusted.dueAt <= at, trusted.dueAt]).toEqual([true, Infinity]);
  });

  it('is due after the given delay for a restored limit', () => {
    const probe = new LimitProbe();
    probe.scheduleFirst(1000, 5000);
    expect(probe.dueAt).toBe(6000);
  });
});

describe('a probe', () => {
  it('begins above the learned rate, and grows with accepted calls', () => {
    const probe = new LimitProbe();
    probe.start(10, 10, 0);
    expect(probe.rate).toBe(10 * PROBE_GAIN);
    accept(probe, 20);
    expect(probe.rate).toBeGreaterThan(10 * PROBE_GAIN);
    expect(probe.rate).toBeLessThan(20);
  });

  it('does not grow while the application does not use it', () => {
    const probe = new LimitProbe();
    probe.start(10, 10, 0);
    for (let now = 100; now < 5000; now += 100) probe.recordAccepted(now, false, false, false);
    expect(probe.rate).toBe(10 * PROBE_GAIN);
  });

  it('sends one call beyond the limit at a time, and more of them once some were accepted', () => {
    const probe = new LimitProbe();
    probe.start(10, 10, 0);
    expect(probe.openAt(0)).toBe(-Infinity);
    probe.recordLimitProbeSent(0);
    expect(probe.openAt(10)).toBeGreaterThan(10);
    probe.recordLimitProbeEnded();
    expect(probe.openAt(20)).toBe(-Infinity);
    accept(probe, 4, { isLimitProbe: true });
    probe.recordLimitProbeSent(1000);
    expect(probe.openAt(1001)).toBe(-Infinity);
    probe.recordLimitProbeSent(1001);
    expect(probe.openAt(1002)).toBeGreaterThan(1002);
  });

  it('continues after a time-out when a call gets no response', () => {
    const probe = new LimitProbe();
    probe.start(10, 10, 0);
    probe.recordLimitProbeSent(0);
    expect(probe.openAt(probe.openAt(1))).toBe(-Infinity);
  });

  it('sends no more at a time while the accepted calls can have been saved up', () => {
    const probe = new LimitProbe();
    probe.start(10, 10, 20);
    accept(probe, 20, { isLimitProbe: true });
    probe.recordLimitProbeSent(3000);
    expect(probe.openAt(3001)).toBeGreaterThan(3001);
    probe.recordLimitProbeEnded();
    accept(probe, 4, { isLimitProbe: true });
    probe.recordLimitProbeSent(4000);
    expect(probe.openAt(4001)).toBe(-Infinity);
  });

  it('doubles its rate each second while no limit is known', () => {
    const unlimited = new LimitProbe();
    unlimited.continueFrom(10);
    for (let now = 100; now <= 2000; now += 100) unlimited.recordAccepted(now, false, true, true);
    expect(unlimited.rate).toBeGreaterThan(35);
  });

  it('begins slower after a probe that was refused at once, and faster after one that was refused late', () => {
    const probe = new LimitProbe();
    probe.start(10, 10, 0);
    probe.end();
    probe.start(10, 10, 0);
    const afterEarlyEnd = probe.rate;
    expect(afterEarlyEnd).toBeLessThan(10 * PROBE_GAIN);
    for (let times = 0; times < 20; times++) {
      probe.start(10, 10, 0);
      probe.end();
    }
    probe.start(10, 10, 0);
    expect(probe.rate).toBeGreaterThan(10);
    for (let times = 0; times < 20; times++) {
      probe.start(10, 10, 0);
      accept(probe, 12);
      probe.end();
    }
    probe.start(10, 10, 0);
    expect(probe.rate).toBeCloseTo(10 * PROBE_GAIN);
  });
});
