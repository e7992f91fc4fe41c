import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../support/manual-clock.ts';
import { createThrottle } from '../../../src/throttle/queue/queueing-throttle.ts';
import type { Cancel } from '../../../src/platform/clock.ts';
import { SidecarError } from '../../../src/platform/errors.ts';
import { ACCEPTED, type Asking, Fixture, rateLimited } from '../fixture.ts';

/** What `enter` threw. */
function refusalOf(enter: () => unknown): SidecarError {
  try {
    enter();
  } catch (error) {
    if (error instanceof SidecarError) return error;
    throw error;
  }
  throw new Error('the throttle let it in');
}

describe('rate 50, burst 1, 5 s time-out, 500 requests at once', () => {
  it('serves 250 in order, never above the rate, and rejects the others at once with Retry-After', async () => {
    const fixture = new Fixture({ rate: 50, timeoutMs: 5000 });
    const grantedAt: number[] = [];
    const order: number[] = [];
    const refusals: SidecarError[] = [];
    const all: Promise<unknown>[] = [];
    for (let index = 0; index < 500; index++) {
      try {
        const asking = fixture.ask();
        const served = asking.settled.then(() => {
          order.push(index);
          grantedAt.push(fixture.clock.now());
          asking.permit?.release();
        });
        all.push(served);
      } catch (error) {
        if (error instanceof SidecarError) refusals.push(error);
      }
    }
    expect(refusals).toHaveLength(250);
    await fixture.clock.advance(6000);
    await Promise.all(all);
    expect(order).toEqual(Array.from({ length: 250 }, (_, index) => index));
    for (const from of grantedAt)
      expect(grantedAt.filter((at) => at >= from && at < from + 500).length).toBeLessThanOrEqual(26);
    expect(new Set(refusals.map((error) => error.code))).toEqual(new Set(['QUEUE_TIMEOUT']));
    expect(refusals[0]?.retryAfterMs).toBe(5000);
    expect(fixture.rejections).toEqual(Array.from({ length: 250 }, () => 'expected_wait'));
    expect(fixture.throttle.state()).toMatchObject({ queued: 0, inFlight: 0 });
    expect(fixture.clock.pendingTimers).toBe(0);
  });
});

describe('entering', () => {
  it('is rejected when the queue is full, beyond those that could be granted at once', () => {
    const fixture = new Fixture({ queueMax: 2 });
    for (let count = 0; count < 6; count++) fixture.enter();
    const refusal = refusalOf(() => fixture.enter());
    expect(refusal.code).toBe('QUEUE_FULL');
    expect(refusal.retryAfterMs).toBeGreaterThanOrEqual(0);
    expect(fixture.rejections).toEqual(['full']);
  });

  it('is rejected only when the deadline comes before the turn', () => {
    const fixture = new Fixture({ rate: 10 });
    for (let count = 0; count < 5; count++) fixture.ask();
    expect(refusalOf(() => fixture.enter(500)).code).toBe('QUEUE_TIMEOUT');
    expect(fixture.enter(501).waitedMs).toBe(0);
  });

  it('is rejected after the deadline, even when a permit is available', () => {
    const fixture = new Fixture();
    expect(refusalOf(() => fixture.enter(0)).code).toBe('QUEUE_TIMEOUT');
    expect(fixture.rejections).toEqual(['expected_wait']);
  });

  it('with a time-out of 0 takes a permit that is available at once', async () => {
    const fixture = new Fixture({ rate: 10, timeoutMs: 0, queueMax: 0 });
    const asking = fixture.ask();
    await asking.settled;
    expect(asking.outcome).toBe('granted');
    expect(refusalOf(() => fixture.enter()).code).toMatch(/^QUEUE_/);
  });

  it('under auto is rejected for a stated pause that is too long, not for an estimated one', async () => {
    const stated = new Fixture({ timeoutMs: 5000 });
    const first = stated.ask();
    await first.settled;
    first.permit?.report(rateLimited('6'));
    expect(refusalOf(() => stated.enter()).retryAfterMs).toBeGreaterThanOrEqual(6000);
    await stated.clock.advance(1500);
    expect(stated.enter().retryWaitMs()).toBe(4500);

    const guessed = new Fixture({ timeoutMs: 50 });
    const second = guessed.ask();
    await second.settled;
    second.permit?.report(rateLimited());
    expect(guessed.throttle.state().pausedMs).toBe(100);
    expect(guessed.ask().outcome).toBe('waits');
  });
});

describe('the body', () => {
  it('is read by the first maxInFlight requests; a slot is free at once when one leaves', async () => {
    const fixture = new Fixture({ maxInFlight: 2 });
    const tickets = Array.from({ length: 4 }, () => fixture.enter());
    const admitted: number[] = [];
    tickets.forEach((ticket, index) => void ticket.waitForBodySlot().then(() => admitted.push(index)));
    await fixture.clock.advance(0);
    expect(admitted).toEqual([0, 1]);
    tickets[0]?.leave();
    await fixture.clock.advance(0);
    expect(admitted).toEqual([0, 1, 2]);
    const permit = await tickets[1]?.waitForPermit();
    await fixture.clock.advance(0);
    expect(admitted).toEqual([0, 1, 2, 3]);
    permit?.release();
  });

  it('that is slow does not hold up a younger request, and reading does not count as waiting', async () => {
    const fixture = new Fixture({ rate: 10, timeoutMs: 1000 });
    const slow = fixture.enter();
    await slow.waitForBodySlot();
    const quick = fixture.ask();
    await quick.settled;
    expect(quick.outcome).toBe('granted');
    await fixture.clock.advance(5000);
    expect(slow.waitedMs).toBe(0);
    expect((await slow.waitForPermit()).grantedAt).toBe(5000);
  });
});

describe('a pause', () => {
  it('holds for all requests and ends with a single probe; the retry goes first', async () => {
    const fixture = new Fixture({ rate: 100, burst: 10 });
    const refused = fixture.ask();
    await refused.settled;
    refused.permit?.report(rateLimited('2'));
    refused.permit?.release();
    const others = [fixture.ask(), fixture.ask(), fixture.ask()];
    expect(refused.ticket.retryWaitMs()).toBe(2000);
    const retry = refused.ticket.waitForPermit();
    await fixture.clock.advance(1999);
    expect(others.map((asking) => asking.outcome)).toEqual(['waits', 'waits', 'waits']);
    await fixture.clock.advance(1);
    const probe = await retry;
    expect(probe.grantedAt).toBe(2000);
    await fixture.clock.advance(10);
    expect(others.map((asking) => asking.outcome)).toEqual(['waits', 'waits', 'waits']);
    probe.report(ACCEPTED);
    await fixture.clock.advance(0);
    expect(others.map((asking) => asking.permit?.grantedAt)).toEqual([2010, 2010, 2010]);
    expect(fixture.events.find((event) => event.kind === 'rate-limited')).toEqual({
      kind: 'rate-limited',
      scope: 'route',
      route: 'default',
      status: 429,
      pauseMs: 2000,
      stated: true,
      fields: { 'retry-after': 2 },
    });
    expect(fixture.throttle.state().recentSignals).toHaveLength(1);
  });

  it('rejects requests that cannot outlast its stated end', async () => {
    const fixture = new Fixture({ maxInFlight: 1 });
    const first = fixture.ask();
    await first.settled;
    const [hasty, patient] = [fixture.ask(3000), fixture.ask(9000)];
    first.permit?.report(rateLimited('5'));
    await fixture.clock.advance(0);
    expect([hasty.outcome, patient.outcome]).toEqual(['refused', 'waits']);
    expect(fixture.rejections).toEqual(['expected_wait']);
    expect(first.ticket.retryWaitMs()).toBe(5000);
    await fixture.clock.advance(26_000);
    expect(first.ticket.retryWaitMs()).toBeLessThan(Infinity);
  });

  it('that is too long for a retry makes its wait Infinity', async () => {
    const fixture = new Fixture();
    const asking = fixture.ask(4000);
    await asking.settled;
    asking.permit?.report(rateLimited('5'));
    expect(asking.ticket.retryWaitMs()).toBe(Infinity);
  });

  it('is probed by another request once the refused one was refused as the probe twice in a row', async () => {
    const fixture = new Fixture();
    const refused = fixture.ask();
    await refused.settled;
    const other = fixture.ask();
    const order: string[] = ['refused'];
    void other.settled.then(() => order.push('other'));
    let permit = refused.permit;
    for (let attempt = 1; attempt <= 3; attempt++) {
      permit?.report(rateLimited('1'));
      permit?.release();
      const retry = refused.ticket.waitForPermit().then((next) => {
        order.push('refused');
        return next;
      });
      const isLast = attempt === 3;
      for (let step = 0; order.length === attempt && step < 100; step++) await fixture.clock.advance(100);
      if (!isLast) permit = await retry;
    }
    expect(order).toEqual(['refused', 'refused', 'refused', 'other']);
    // Once a probe is accepted, the refused one goes next.
    other.permit?.report(ACCEPTED);
    other.permit?.release();
    for (let step = 0; order.length === 4 && step < 100; step++) await fixture.clock.advance(100);
    expect(order.at(-1)).toBe('refused');
  });

  it('longer than maxPauseMs rejects all requests but one probe per interval', async () => {
    const fixture = new Fixture({ maxPauseMs: 10_000 });
    const first = fixture.ask();
    await first.settled;
    first.permit?.report(rateLimited('3600'));
    first.permit?.release();
    const refusal = refusalOf(() => fixture.enter());
    expect([refusal.code, refusal.retryAfterMs]).toEqual(['QUEUE_TIMEOUT', 10_000]);
    await fixture.clock.advance(10_000);
    const probe = fixture.ask();
    expect(refusalOf(() => fixture.enter()).code).toBe('QUEUE_TIMEOUT');
    await probe.settled;
    expect(refusalOf(() => fixture.enter()).code).toBe('QUEUE_TIMEOUT');
    probe.permit?.report(ACCEPTED);
    expect(fixture.throttle.state().pausedMs).toBe(0);
    expect(fixture.enter().waitedMs).toBe(0);
  });
});

describe('invariant 3: expired and aborted requests leave before a permit is spent on them', () => {
  it('holds for time-outs and deadlines', async () => {
    const fixture = new Fixture({ rate: 'auto', maxInFlight: 1, timeoutMs: 1000 });
    const first = fixture.ask();
    await first.settled;
    const [timedOut, overdue] = [fixture.ask(), fixture.ask(400)];
    await fixture.clock.advance(400);
    expect(overdue.error).toMatchObject({ code: 'QUEUE_TIMEOUT' });
    await fixture.clock.advance(599);
    const late = fixture.ask();
    await fixture.clock.advance(1);
    expect(timedOut.error).toMatchObject({ code: 'QUEUE_TIMEOUT' });
    first.permit?.release();
    await fixture.clock.advance(0);
    expect(late.outcome).toBe('granted');
    expect(fixture.rejections).toEqual(['timeout', 'timeout']);
    late.permit?.release();
    expect(fixture.events.filter((event) => event.kind === 'permit-granted')).toHaveLength(2);
  });

  it('holds over the sum of one request’s waits', async () => {
    const fixture = new Fixture({ rate: 10, timeoutMs: 150 });
    const [first, second] = [fixture.ask(), fixture.ask()];
    await fixture.clock.advance(100);
    expect(second.ticket.waitedMs).toBe(100);
    second.permit?.release();
    first.permit?.release();
    await expect(Promise.all([second.ticket.waitForPermit(), fixture.clock.advance(100)])).rejects.toMatchObject({
      code: 'QUEUE_TIMEOUT',
    });
    expect(second.ticket.waitedMs).toBe(150);
  });

  it('rejects the wait of a request that leaves with its reason, and counts it', async () => {
    const fixture = new Fixture({ maxInFlight: 1 });
    const first = fixture.ask();
    await first.settled;
    const gone = fixture.ask();
    const outside = fixture.enter();
    await fixture.clock.advance(0);
    const reason = new Error('client gone');
    gone.ticket.leave(reason);
    gone.ticket.leave();
    outside.leave();
    await gone.settled;
    expect(gone.error).toBe(reason);
    expect(fixture.rejections).toEqual(['client_left']);
    await expect(outside.waitForPermit()).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('rejects the wait of a request that failed on its own, and does not count it as left', async () => {
    const fixture = new Fixture({ maxInFlight: 1 });
    const first = fixture.ask();
    await first.settled;
    const waiting = fixture.ask();
    await fixture.clock.advance(0);
    const fault = new SidecarError('BAD_REQUEST', 'broken framing');
    waiting.ticket.leave(fault);
    await waiting.settled;
    expect(waiting.error).toBe(fault);
    expect(fixture.rejections).toEqual([]);
    expect(fixture.throttle.state().queued).toBe(0);
  });
});

describe('a permit', () => {
  it('is given back unspent, never above the burst', async () => {
    const fixture = new Fixture({ rate: 1 });
    const [first, second, third] = [fixture.ask(), fixture.ask(), fixture.ask()];
    await first.settled;
    first.permit?.cancel();
    first.permit?.cancel();
    await second.settled;
    await fixture.clock.advance(999);
    expect([second.permit?.grantedAt, third.outcome]).toEqual([0, 'waits']);
    expect(fixture.throttle.state().inFlight).toBe(1);
  });

  it('is spent once its attempt has a response, even when it is cancelled then', async () => {
    const fixture = new Fixture({ rate: 1 });
    const [first, second] = [fixture.ask(), fixture.ask()];
    await first.settled;
    first.permit?.report(ACCEPTED);
    first.permit?.cancel();
    first.permit?.release();
    first.permit?.report(rateLimited('9'));
    await fixture.clock.advance(999);
    expect([second.outcome, fixture.throttle.state().pausedMs]).toEqual(['waits', 0]);
    expect(fixture.throttle.state().inFlight).toBe(0);
  });

  it('of a stream leaves maxInFlight and counts against maxStreams', async () => {
    const fixture = new Fixture({ maxInFlight: 1, maxStreams: 1 });
    const [first, second] = [fixture.ask(), fixture.ask()];
    await first.settled;
    expect(second.outcome).toBe('waits');
    expect(first.permit?.becomeStream()).toBe(true);
    await second.settled;
    expect(fixture.throttle.state()).toMatchObject({ inFlight: 1, streams: 1 });
    expect(second.permit?.becomeStream()).toBe(false);
    first.permit?.release();
    expect(second.permit?.becomeStream()).toBe(true);
    second.permit?.release();
    expect(fixture.throttle.state()).toMatchObject({ inFlight: 0, streams: 0 });
  });

  it('granted without contention sets no timer and reports a wait of 0', async () => {
    const fixture = new Fixture();
    const asking = fixture.ask();
    await asking.settled;
    expect(fixture.clock.pendingTimers).toBe(0);
    asking.permit?.markSent();
    asking.permit?.release();
    expect(fixture.events).toEqual([{ kind: 'permit-granted', route: 'default', waitedMs: 0 }]);
  });

  it('granted while no request waits costs its class and caller no turn', async () => {
    const fixture = new Fixture({ rate: 10, burst: 20 });
    const low = { priority: 'low', caller: 'a' } as const;
    for (let call = 0; call < 20; call++) {
      const ticket = fixture.throttle.enter(fixture.clock.now() + 1000, low, false);
      ticket.tryTakePermit()?.release();
      ticket.leave();
    }
    const other = fixture.ask(60_000, { priority: 'low', caller: 'b' });
    const first = fixture.ask(60_000, low);
    await fixture.clock.advance(200);
    expect([other.outcome, first.outcome]).toEqual(['granted', 'granted']);
  });

  it('granted to a request without a body counts no request as queued', () => {
    const fixture = new Fixture();
    const ticket = fixture.throttle.enter(1000, undefined, false);
    expect(fixture.throttle.state()).toMatchObject({ queued: 0, readingBodies: 0, inFlight: 0 });
    const permit = ticket.tryTakePermit();
    expect(fixture.throttle.state()).toMatchObject({ queued: 0, readingBodies: 0, inFlight: 1 });
    permit?.release();
    ticket.leave();
    expect(fixture.throttle.state()).toMatchObject({ queued: 0, inFlight: 0 });
  });

  it('granted to a request whose body is there, while the queue is full of bodies that are being read', async () => {
    const fixture = new Fixture({ rate: 10, burst: 1, queueMax: 1 });
    fixture.enter();
    fixture.enter();
    expect(() => fixture.enter()).toThrow(expect.objectContaining({ code: 'QUEUE_FULL' }));
    const enter = () => fixture.throttle.enter(60_000, undefined, false);
    expect(enter().tryTakePermit()).toBeDefined();
    await expect(enter().waitForPermit()).rejects.toMatchObject({ code: 'QUEUE_FULL' });
    expect(fixture.rejections).toEqual(['full', 'full']);
  });

  it('given back unspent emits no event', async () => {
    const fixture = new Fixture();
    const asking = fixture.ask();
    await asking.settled;
    asking.permit?.cancel();
    asking.permit?.release();
    expect(fixture.events).toEqual([]);
  });
});

describe('shutting down', () => {
  it('rejects all waits for body slots and permits at once, and later retries', async () => {
    const fixture = new Fixture({ maxInFlight: 1 });
    const holder = fixture.ask();
    await holder.settled;
    const waiting: Asking[] = [fixture.ask(), fixture.ask()];
    await fixture.clock.advance(0);
    fixture.throttle.shutDown();
    expect(refusalOf(() => fixture.enter()).code).toBe('DRAINING');
    await Promise.all(waiting.map((asking) => asking.settled));
    expect(waiting.map((asking) => asking.error)).toMatchObject([{ code: 'DRAINING' }, { code: 'DRAINING' }]);
    holder.permit?.report(rateLimited('1'));
    holder.permit?.release();
    await expect(holder.ticket.waitForPermit()).rejects.toMatchObject({ code: 'DRAINING' });
    expect(fixture.throttle.state()).toMatchObject({ queued: 0, inFlight: 0 });
    expect(fixture.clock.pendingTimers).toBe(0);
  });
});

it('a request whose time-out is noticed late ends as one that waited too long', async () => {
  class LateClock extends ManualClock {
    override after(delayMs: number, run: () => void): Cancel {
      return super.after(delayMs + 5, run);
    }
  }
  const clock = new LateClock();
  const reasons: string[] = [];
  const throttle = createThrottle({
    route: 'default',
    throttle: { rate: 'auto', burst: 1, maxInFlight: 1, maxStreams: 1, maxPauseMs: 300_000 },
    queue: { max: 10, timeoutMs: 1000 },
    ...{ clock, random: () => 0.5 },
    observe: (event) => event.kind === 'queue-rejected' && reasons.push(event.reason),
  });
  throttle.enter(60_000, undefined, false).tryTakePermit();
  const waiting = throttle.enter(60_000, undefined, false).waitForPermit();
  const outcome = expect(waiting).rejects.toMatchObject({ code: 'QUEUE_TIMEOUT' });
  await clock.advance(1100);
  await outcome;
  expect(reasons).toEqual(['timeout']);
});
