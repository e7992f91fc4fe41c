/** Refusals that are not one operation's: a limit for all, and refusals at random. Both leave no operation behind. */
import { describe, expect, it } from 'vitest';
import type { ReceivedCall } from '../../../src/throttle/declared/call-match.ts';
import { ACCEPTED, rateLimited } from '../fixture.ts';
import { bucketLimiter, seeded } from '../simulation.ts';
import { finish, GET, LaneWorld, POST, PUT } from './lane-world.ts';

describe('a limit for all operations', () => {
  it('pauses all of them from the third refused operation on, and no lane is left', async () => {
    const world = new LaneWorld({ restored: undefined });
    await world.warmUp();
    const inFlight = [await world.asks(POST), await world.asks(GET), await world.asks(PUT)];
    await world.clock.advance(10);
    for (const asking of inFlight.slice(0, 2)) finish(asking, rateLimited('5'));
    expect(world.throttle.state().pausedMs).toBe(0);
    expect(world.lanes.map(({ operation }) => operation)).toEqual(['POST /policies', 'GET /quotes']);
    for (const asking of inFlight.slice(2)) finish(asking, rateLimited('5'));
    expect(world.lanes).toEqual([]);
    expect(world.throttle.state().pausedMs).toBeGreaterThan(4_900);
    expect(world.throttle.state().learned).toMatchObject({
      kind: expect.stringMatching(/^(window|bucket)$/) as unknown,
    });
    for (const call of [POST, GET, PUT]) expect((await world.asks(call)).outcome).toBe('waits');
  });

  it('lets requests that waited for a lane go with the others when the lane ends', async () => {
    const world = new LaneWorld({ restored: undefined });
    await world.warmUp();
    const inFlight = [await world.asks(POST), await world.asks(GET), await world.asks(PUT)];
    await world.clock.advance(10);
    if (inFlight[0] !== undefined) finish(inFlight[0], rateLimited('2'));
    const waiting = await world.asks(POST);
    for (const asking of inFlight.slice(1)) finish(asking, rateLimited('2'));
    expect(world.lanes).toEqual([]);
    await world.clock.advance(20_000);
    expect(waiting.outcome).toBe('granted');
    expect(world.throttle.state().queued).toBe(0);
  });

  it("stays the route's after a long pause, when no call of another operation was accepted of late", async () => {
    const world = new LaneWorld({ restored: undefined });
    await world.warmUp();
    for (const call of [POST, GET, PUT]) (await world.asks(call)).permit?.report(rateLimited('20'));
    const learned = world.throttle.state().learned;
    expect(learned).toBeDefined();
    await world.clock.advance(21_000);
    await world.responds(POST, rateLimited('1'));
    await world.clock.advance(10_000);
    await world.responds(GET, ACCEPTED);
    expect(world.lanes).toEqual([]);
    expect(world.throttle.state().learned?.kind).toBe(learned?.kind);
  });

  // A lane too many costs an operation a part of its share, and no calls of the limit.
  it('is used in the long run, and starves no operation', async () => {
    const limiter = bucketLimiter(5, 5);
    const served = await play((at) => limiter(at).accepted, [POST, GET, PUT]);
    const total = served.reduce((sum, count) => sum + count, 0);
    expect(total).toBeGreaterThan(0.85 * 5 * SECONDS);
    expect(Math.min(...served)).toBeGreaterThan(total / 10);
  });
});

describe('refusals at random, of one call in ten', () => {
  it('starve no operation', async () => {
    const random = seeded(7);
    const served = await play(() => random() > 0.1, [POST, GET, PUT]);
    for (const count of served) expect(count).toBeGreaterThan(0.2 * OFFERED);
  });
});

const SECONDS = 120;
/** Of each operation. */
const OFFERED = 3 * SECONDS;

/** Three calls a second of each operation for two minutes. @returns accepted calls by operation */
async function play(accepts: (at: number) => boolean, calls: readonly ReceivedCall[]): Promise<number[]> {
  const world = new LaneWorld({ restored: undefined });
  const random = seeded(1);
  const served = calls.map(() => 0);
  const make = async (call: ReceivedCall, index: number): Promise<void> => {
    const ticket = world.enter(5_000, undefined, call);
    try {
      await ticket.waitForBodySlot();
      for (let attempt = 0; attempt < 5; attempt++) {
        const permit = await ticket.waitForPermit();
        permit.markSent();
        await world.sleep(5 + 5 * random());
        const isAccepted = accepts(world.clock.now());
        await world.sleep(5 + 5 * random());
        permit.report(isAccepted ? ACCEPTED : rateLimited());
        permit.release();
        if (!isAccepted) continue;
        served[index] = (served[index] ?? 0) + 1;
        return;
      }
    } finally {
      ticket.leave();
    }
  };
  for (let step = 0; step < OFFERED; step++) {
    for (const [index, call] of calls.entries()) {
      world.clock.after(random() * 333, () => {
        make(call, index).catch(() => undefined);
      });
    }
    await world.clock.advance(333);
  }
  await world.clock.advance(10_000);
  return served;
}
