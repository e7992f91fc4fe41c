/** Stated remainders: calls never exceed them, and wait as little as possible. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallLog } from '../../../src/throttle/adaptive/call-log.ts';
import type { CallResult, PermitGrant } from '../../../src/throttle/pacing/gate.ts';
import { StatedAllowance } from '../../../src/throttle/pacing/stated-allowance.ts';
import type { StatedQuota } from '../../../src/platform/rate-limit-fields/stated-quota.ts';

const WINDOW_MS = 10_000;
const RESULT: CallResult = { kind: 'accepted', isCurrent: true, quotas: [], laterCalls: 0 };

/** Sends calls and receives their responses one by one. */
class Caller {
  readonly #inFlight = new CallLog(65_536, 86_400_000);
  #lastSentAt = -Infinity;
  readonly allowance = new StatedAllowance({
    maxPauseMs: () => 300_000,
    inFlightCalls: this.#inFlight,
    lastSentAt: () => this.#lastSentAt,
  });
  #serial = 0;

  send(at: number): PermitGrant {
    this.allowance.take(at);
    this.#lastSentAt = at;
    this.#inFlight.add(at);
    this.#serial++;
    return {
      at,
      serial: this.#serial,
      epoch: 0,
      rate: Infinity,
      isPauseProbe: false,
      isWaitedFor: false,
      isLimitProbe: false,
      inFlight: 0,
    };
  }

  /** Its response is here, or will not come. */
  end(call: PermitGrant): PermitGrant {
    this.#inFlight.remove(call.at);
    return call;
  }

  receive(now: number, call: PermitGrant, ...quotas: StatedQuota[]): void {
    this.allowance.settle(now, this.end(call), { ...RESULT, quotas });
  }

  /** A call with its response in the same instant. */
  call(at: number, ...quotas: StatedQuota[]): void {
    this.receive(at, this.send(at), ...quotas);
  }

  isOpen(now: number): boolean {
    return this.allowance.nextAt(now) <= now;
  }

  /** How many calls could be sent at this instant, without responses; at most 1000. */
  countOpen(now: number): number {
    let count = 0;
    while (count < 1000 && this.isOpen(now)) {
      this.send(now);
      count++;
    }
    return count;
  }
}

function left(remaining: number, resetInMs = WINDOW_MS, quota = 100): StatedQuota {
  return { quota, remaining, resetInMs };
}

describe('the stated remainder', () => {
  it('is unlimited until a response states one', () => {
    const caller = new Caller();
    caller.call(0);
    expect([caller.allowance.nextAt(0), caller.countOpen(0)]).toEqual([-Infinity, 1000]);
  });

  it('is never exceeded by calls that no response has counted yet', () => {
    const caller = new Caller();
    caller.call(0, left(90));
    expect(caller.countOpen(0)).toBe(66);
    expect(caller.allowance.nthAt(0)).toBe(-Infinity);
    const few = new Caller();
    few.call(0, left(4, WINDOW_MS, 5));
    expect(few.countOpen(0)).toBe(3);
  });

  it('closes when it is used up, and reopens with one probe', () => {
    const caller = new Caller();
    caller.call(0, left(0, 4000));
    expect([caller.allowance.nextAt(1), caller.allowance.nthAt(1)]).toEqual([4000, 4000]);
    expect([caller.allowance.isResetProbeDue(3999), caller.allowance.isResetProbeDue(4000)]).toEqual([false, true]);
  });

  it('is probed again after maxPauseMs', () => {
    const caller = new Caller();
    caller.call(0, left(0, 86_400_000));
    expect(caller.allowance.nextAt(1)).toBe(300_000);
    expect(caller.allowance.isResetProbeDue(300_000)).toBe(true);
    caller.send(300_000);
    expect(caller.allowance.nextAt(300_001)).toBe(600_000);
  });

  it('is tracked for every quota; the tightest decides', () => {
    const caller = new Caller();
    const perSecond = { quota: 4, windowMs: 1000, remaining: 2, resetInMs: 1000 };
    const perMinute = { quota: 4, windowMs: 60_000, remaining: 3, resetInMs: 60_000 };
    caller.call(0, perSecond, perMinute);
    expect(caller.countOpen(0)).toBe(2);
    expect(caller.allowance.nextAt(500)).toBe(1000);
    caller.receive(
      500,
      caller.send(500),
      { ...perSecond, remaining: 0, resetInMs: 500 },
      { ...perMinute, remaining: 0 },
    );
    expect(caller.allowance.nextAt(1500)).toBe(60_000);
  });

  it('allows three quarters at once, and spreads the last one over the time until the reset', () => {
    const caller = new Caller();
    let remaining = 100;
    const sentAt: number[] = [];
    for (let now = 0; now < WINDOW_MS; now++)
      while (caller.isOpen(now)) {
        sentAt.push(now);
        caller.call(now, left(--remaining, WINDOW_MS - now));
      }
    expect(sentAt).toHaveLength(100);
    expect(sentAt.filter((at) => at === 0).length).toBe(76);
    const spread = sentAt.slice(76);
    const gaps = spread.map((at, index) => at - (spread[index - 1] ?? 0));
    expect(Math.max(...gaps)).toBeLessThan(2 * Math.min(...gaps));
    expect(spread.at(-1)).toBeGreaterThan(0.85 * WINDOW_MS);
  });

  it('is never spread with gaps above 10 s', () => {
    const caller = new Caller();
    caller.call(0, left(100, 80_000_000, 1000));
    expect(caller.allowance.nextAt(0)).toBe(10_000);
  });

  it('does not rise with a response that others overtook', () => {
    const caller = new Caller();
    const [early, late] = [caller.send(0), caller.send(10)];
    caller.receive(50, late, left(2, 5000, 10));
    caller.receive(60, early, left(9, 5000, 10));
    expect(caller.countOpen(60)).toBeLessThanOrEqual(2);
  });

  it('rises with the response to a later call', () => {
    const caller = new Caller();
    caller.call(0, left(1, 5000, 10));
    caller.call(1000, left(9, 9000, 10));
    expect(caller.countOpen(1000)).toBeGreaterThanOrEqual(7);
  });

  it('falls with calls that ended without a response, and not with calls that were never made', () => {
    const caller = new Caller();
    caller.call(0, left(3, 5000, 3));
    caller.allowance.settle(1, caller.end(caller.send(1)), { ...RESULT, kind: 'ended' });
    caller.end(caller.send(2));
    expect(caller.countOpen(3)).toBe(2);
  });

  it('falls with accepted calls whose responses do not state it', () => {
    const caller = new Caller();
    caller.call(0, left(3, 5000, 3));
    caller.call(1);
    caller.call(2);
    expect(caller.countOpen(3)).toBe(1);
  });
});

describe('the reset', () => {
  it('stated repeatedly and rounded up is at the earliest instant stated', () => {
    const caller = new Caller();
    // The window ends at 1000: every response states a second or less.
    for (let count = 1; count <= 5; count++) caller.call(count * 100, left(5 - count, 1000, 5));
    expect(caller.allowance.nextAt(600)).toBe(1100);
  });

  it('that moves while calls are added is not taken for the previous one', () => {
    const caller = new Caller();
    caller.call(0, left(5, 1000, 100));
    caller.call(500, left(5, 1000, 100));
    caller.call(900, left(0, 1000, 100));
    expect(caller.allowance.nextAt(901)).toBe(1500);
  });

  it('that has passed adds calls at the stated rate until a response states the remainder', () => {
    const caller = new Caller();
    caller.call(0, { quota: 100, windowMs: WINDOW_MS, remaining: 0, resetInMs: 1000 });
    expect(caller.countOpen(1000)).toBe(1);
    expect(caller.allowance.nextAt(1001)).toBeLessThan(2000);
    caller.call(1100, { quota: 100, windowMs: WINDOW_MS, remaining: 99, resetInMs: WINDOW_MS });
    expect(caller.countOpen(1200)).toBeGreaterThan(60);
  });

  it('that is followed by a refusal is waited for one second longer the next time', () => {
    const caller = new Caller();
    caller.call(0, left(0, 1000));
    caller.allowance.settle(1000, caller.end(caller.send(1000)), { ...RESULT, kind: 'refused' });
    caller.call(5000, left(0, 1000));
    expect(caller.allowance.nextAt(5001)).toBe(7000);
  });

  it('that passed before its response came leaves the remainder, and no long wait', () => {
    const caller = new Caller();
    caller.call(0, left(7, 5000, 10));
    const call = caller.send(5000);
    caller.receive(5010, call, { quota: 10, remaining: 6 });
    expect(caller.countOpen(5011)).toBe(4);
  });

  it('that passes twice without a statement ends the tracking', () => {
    const caller = new Caller();
    caller.call(0, left(1, 1000, 2));
    caller.call(1000);
    expect(caller.countOpen(1001)).toBe(1);
    caller.send(3000);
    expect(caller.countOpen(3001)).toBe(1000);
  });
});

describe('a partly stated quota', () => {
  it('is counted here when only the policy is stated', () => {
    const caller = new Caller();
    const policy = { quota: 4, windowMs: 1000 };
    for (let count = 0; count < 4; count++) {
      expect(caller.isOpen(count)).toBe(true);
      caller.call(count, policy);
    }
    expect(caller.allowance.nextAt(4)).toBe(1000);
    expect(caller.isOpen(1000)).toBe(true);
  });

  it('resets within its window when no reset is stated', () => {
    const caller = new Caller();
    caller.call(0, { quota: 10, windowMs: 1000, remaining: 1 });
    caller.call(400, { quota: 10, windowMs: 1000, remaining: 0 });
    expect(caller.allowance.nextAt(401)).toBe(1000);
  });

  it('may be only the number of calls left', () => {
    const caller = new Caller();
    caller.call(0, { remaining: 2, resetInMs: 1000 });
    expect(caller.countOpen(1)).toBe(2);
  });

  it.each([
    { remaining: 0 },
    { quota: 5 },
    { resetInMs: 1000 },
    { windowMs: 1000 },
    { windowMs: 1000, resetInMs: 5 },
    {},
  ])('is ignored: %o', (stated) => {
    const caller = new Caller();
    caller.call(0, stated);
    expect(caller.countOpen(0)).toBe(1000);
  });
});

it('is bounded, never throws and always opens in the end, for any statements', () => {
  const part = (max: number) => fc.option(fc.double({ min: 0, max, noNaN: true }), { nil: undefined });
  const quota = fc.record({ quota: part(1e6), windowMs: part(1e9), remaining: part(1e6), resetInMs: part(1e9) });
  const step = fc.record({
    waitMs: fc.double({ min: 0, max: 1e6, noNaN: true }),
    quotas: fc.array(quota, { maxLength: 8 }),
    end: fc.constantFrom(
      'accepted' as const,
      'accepted' as const,
      'accepted' as const,
      'refused' as const,
      'ended' as const,
      'unused' as const,
      'never' as const,
    ),
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 60 }), (steps) => {
      const caller = new Caller();
      const { allowance } = caller;
      let now = 0;
      for (const { waitMs, quotas, end } of steps) {
        now = Math.max(now + waitMs, allowance.nextAt(now));
        expect(now).toBeLessThan(1e12);
        const call = caller.send(now);
        if (end === 'accepted') caller.receive(now + 1, call, ...quotas);
        else if (end !== 'never') caller.end(call);
        if (end === 'refused' || end === 'ended') allowance.settle(now, call, { ...RESULT, kind: end });
        expect(allowance.nextAt(now)).not.toBeNaN();
        expect(allowance.nthAt(now)).toBeLessThanOrEqual(now + 300_001);
      }
    }),
  );
});
