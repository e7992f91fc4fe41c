/** What was learned is given up when other limits explain the refusals; the calls count on, and so do those in flight. */
import { expect, it } from 'vitest';
import { ANY_CALL, type PermitGrant } from '../../../src/throttle/pacing/gate.ts';
import { Governor } from '../../../src/throttle/pacing/governor.ts';

const LIMIT = { kind: 'window', windowMs: 1000, limit: 5, rate: 5, margin: 1, used: 0 };

/** Takes one permit after the other as soon as it may, until one exceeds the limit. */
function takeUntilProbe(governor: Governor, from: number): { readonly probe: PermitGrant; readonly at: number } {
  for (let now = from; now < from + 60_000; now += 10) {
    governor.recordHeld(now);
    const grant = governor.tryTake(now, true, ANY_CALL);
    if (grant === undefined) continue;
    if (grant.isLimitProbe) return { probe: grant, at: now };
    governor.settle(now, grant, { kind: 'accepted' });
    governor.freeSlot();
  }
  throw new Error('the limit was not probed');
}

it('a probe in flight when a limit is forgotten does not hold up the probes of the next limit', () => {
  const terms = { rate: 'auto', burst: 1, maxInFlight: 64, maxStreams: 100, maxPauseMs: 300_000 } as const;
  const governor = new Governor({ ...terms, random: () => 0.5 });
  governor.restore(0, LIMIT, 0);
  const first = takeUntilProbe(governor, 0);
  governor.forgetLearned(first.at);
  expect(governor.ratePolicy.rate).toBe(Infinity);
  governor.settle(first.at + 10, first.probe, { kind: 'accepted' });
  governor.freeSlot();
  governor.restore(first.at + 10, LIMIT, 0);
  const second = takeUntilProbe(governor, first.at + 20);
  governor.settle(second.at + 10, second.probe, { kind: 'accepted' });
  governor.freeSlot();
  expect(takeUntilProbe(governor, second.at + 20).at - second.at).toBeLessThan(1000);
});
