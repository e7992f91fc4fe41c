/** A limit that was learned for one operation, through the door of the throttle. */
import { describe, expect, it } from 'vitest';
import { ACCEPTED, rateLimited } from '../fixture.ts';
import { finish, GET, LaneWorld, POST, PUT } from './lane-world.ts';

describe('a refused operation', () => {
  it('pauses no other one', async () => {
    const world = new LaneWorld();
    await world.warmUp();
    await world.responds(POST, rateLimited('5'));
    expect(world.lanes).toMatchObject([{ operation: 'POST /policies', isConfirmed: false, refused: 1 }]);
    expect(world.lanes[0]?.pausedMs).toBeGreaterThan(4_900);
    expect(world.throttle.state().pausedMs).toBe(0);
    await world.clock.advance(20);
    for (let count = 0; count < 10; count++) expect((await world.responds(GET, ACCEPTED)).ticket.waitedMs).toBe(0);
    expect((await world.asks(POST)).outcome).toBe('waits');
    expect(world.lanes).toMatchObject([{ queued: 1 }]);
  });

  it('is confirmed by an accepted call of another one', async () => {
    const world = new LaneWorld();
    await world.warmUp();
    await world.responds(POST, rateLimited('5'));
    expect(world.lanes).toMatchObject([{ isConfirmed: false }]);
    await world.clock.advance(20);
    await world.responds(GET, ACCEPTED);
    expect(world.lanes).toMatchObject([{ operation: 'POST /policies', isConfirmed: true }]);
    expect(world.throttle.state()).toMatchObject({ learned: undefined, pausedMs: 0 });
  });

  it('ends its pause with one probe', async () => {
    const world = new LaneWorld();
    await world.close('5');
    const waiting = [await world.asks(POST), await world.asks(POST), await world.asks(POST)];
    expect(waiting.map(({ outcome }) => outcome)).toEqual(['waits', 'waits', 'waits']);
    await world.clock.advance(5_200);
    expect(waiting.map(({ outcome }) => outcome)).toEqual(['granted', 'waits', 'waits']);
    expect((await world.responds(GET, ACCEPTED)).ticket.waitedMs).toBe(0);
    if (waiting[0] !== undefined) finish(waiting[0], ACCEPTED);
    await world.clock.advance(30_000);
    for (const asking of waiting) finish(asking, ACCEPTED);
    await world.clock.advance(30_000);
    expect(waiting.map(({ outcome }) => outcome)).toEqual(['granted', 'granted', 'granted']);
  });
});

describe('in a lane', () => {
  it('a retry goes first', async () => {
    const world = new LaneWorld({ timeoutMs: 600_000 });
    await world.close('1');
    await world.clock.advance(60_000);
    const refused = await world.asks(POST);
    finish(refused, rateLimited('1'));
    const later = await world.asks(POST, 600_000);
    const order: string[] = [];
    void later.settled.then(() => order.push('later'));
    const retry = refused.ticket.waitForPermit().then((permit) => {
      order.push('retry');
      return permit;
    });
    for (let second = 0; order.length === 0 && second < 60; second++) await world.clock.advance(1_000);
    expect(order).toEqual(['retry']);
    const permit = await retry;
    permit.report(ACCEPTED);
    permit.release();
    await world.clock.advance(60_000);
    expect(order).toEqual(['retry', 'later']);
  });

  it('a request whose deadline passes is rejected then, and others not', async () => {
    const world = new LaneWorld();
    await world.close();
    const [short, long] = [await world.asks(POST, 100), await world.asks(POST)];
    await world.clock.advance(101);
    expect([short.outcome, long.outcome]).toEqual(['refused', 'waits']);
    expect(short.error).toMatchObject({ code: 'QUEUE_TIMEOUT' });
  });

  it('high priority goes before normal, and callers take turns', async () => {
    const world = new LaneWorld({ timeoutMs: 600_000 });
    await world.close('2');
    const normal = (caller: string) => world.asks(POST, 600_000, { priority: 'normal', caller });
    const waiting = {
      a1: await normal('a'),
      a2: await normal('a'),
      b1: await normal('b'),
      high: await world.asks(POST, 600_000, { priority: 'high', caller: 'c' }),
    };
    const order: string[] = [];
    for (const [name, { settled }] of Object.entries(waiting)) void settled.then(() => order.push(name));
    for (let step = 0; step < 40; step++) {
      await world.clock.advance(2_000);
      for (const asking of Object.values(waiting)) finish(asking, ACCEPTED);
    }
    expect(order).toEqual(['high', 'a1', 'b1', 'a2']);
  });

  it('a request that leaves gives its turn to the next', async () => {
    const world = new LaneWorld();
    await world.close('2');
    const [first, second] = [await world.asks(POST), await world.asks(POST)];
    first.ticket.leave(new Error('gone'));
    await world.clock.advance(2_300);
    expect([first.outcome, second.outcome]).toEqual(['refused', 'granted']);
    expect(world.rejections).toEqual(['client_left']);
    expect(world.throttle.state().queued).toBe(0);
  });

  it('all requests are rejected when the throttle shuts down', async () => {
    const world = new LaneWorld();
    await world.close('20');
    const waiting = [await world.asks(POST), await world.asks(POST)];
    world.throttle.shutDown();
    await world.clock.advance(0);
    for (const { error } of waiting) expect(error).toMatchObject({ code: 'DRAINING' });
    expect((await world.asks(GET).catch((error: unknown) => ({ error }))).error).toMatchObject({ code: 'DRAINING' });
    expect(world.throttle.state().queued).toBe(0);
  });

  it('a permit that is given back and taken again costs no turn, as for a response of 401', async () => {
    const world = new LaneWorld();
    await world.close('1');
    await world.clock.advance(60_000);
    const first = await world.asks(POST);
    first.permit?.cancel();
    const again = first.ticket.tryTakePermit();
    expect(again).toBeDefined();
    again?.markSent();
    again?.report(ACCEPTED);
    again?.release();
    const second = first.ticket.waitForPermit();
    await world.clock.advance(10_000);
    (await second).report(ACCEPTED);
    (await second).release();
    first.ticket.leave();
    expect(world.throttle.state()).toMatchObject({ inFlight: 0, queued: 0 });
    await world.clock.advance(60_000);
    expect((await world.responds(POST, ACCEPTED)).outcome).toBe('granted');
  });
});

describe('settings that change', () => {
  const QUEUE = { max: 1000, timeoutMs: 30_000 };
  const AUTO = { burst: 1, maxInFlight: 64, maxStreams: 1, lanes: true };

  it('leave a lane with its pause', async () => {
    const world = new LaneWorld();
    await world.close('20');
    const waiting = await world.asks(POST);
    world.throttle.reconfigure({ throttle: { ...AUTO, rate: 'auto', maxPauseMs: 300_000 }, queue: QUEUE });
    await world.clock.advance(1_000);
    expect(waiting.outcome).toBe('waits');
    expect(world.lanes).toMatchObject([{ queued: 1 }]);
  });

  it('bound the pause of a lane', async () => {
    const world = new LaneWorld();
    await world.close('20');
    const waiting = await world.asks(POST);
    world.throttle.reconfigure({ throttle: { ...AUTO, rate: 'auto', maxPauseMs: 2_000 }, queue: QUEUE });
    await world.clock.advance(3_000);
    expect(waiting.outcome).toBe('granted');
  });

  it('end all lanes where the rate is configured', async () => {
    const world = new LaneWorld();
    await world.close('20');
    const waiting = await world.asks(POST);
    world.throttle.reconfigure({ throttle: { ...AUTO, rate: 100, maxPauseMs: 300_000 }, queue: QUEUE });
    await world.clock.advance(100);
    expect(waiting.outcome).toBe('granted');
    expect(world.lanes).toEqual([]);
    finish(waiting, ACCEPTED);
    await world.clock.advance(100);
    expect((await world.responds(PUT, ACCEPTED)).outcome).toBe('granted');
  });
});

describe('a witness without a response that says anything', () => {
  it.each(['release', 'cancel', 'unknown', 'suspect'] as const)('holds up no other operation (%s)', async (end) => {
    const world = new LaneWorld({ restored: undefined });
    await world.warmUp();
    await world.responds(POST, rateLimited());
    const witness = await world.asks(GET);
    const next = await world.asks(PUT);
    expect([witness.outcome, next.outcome]).toEqual(['granted', 'waits']);
    if (end !== 'cancel') witness.permit?.markSent();
    if (end === 'unknown') witness.permit?.report({ kind: end });
    else if (end === 'suspect') witness.permit?.report({ kind: end, status: 503 });
    else witness.permit?.[end]();
    await world.clock.advance(0);
    expect(next.outcome).toBe('granted');
  });
});
