/** What a closed lane may take of the queue: its own requests wait, and no others. */
import { describe, expect, it } from 'vitest';
import type { DeclaredLimit } from '../../../src/throttle/declared/declared-limit.ts';
import { ACCEPTED, Asking, Fixture, rateLimited } from '../fixture.ts';
import { finish, GET, LaneWorld, POST, PUT } from './lane-world.ts';

const CALLER = { priority: 'normal', caller: 'flood' } as const;
const OTHER = { priority: 'normal', caller: 'other' } as const;

/** Reasons of rejection, by request. */
async function flood(world: LaneWorld, count: number): Promise<{ waiting: Asking[]; errors: unknown[] }> {
  const waiting: Asking[] = [];
  const errors: unknown[] = [];
  for (let index = 0; index < count; index++)
    try {
      waiting.push(world.ask(60_000, CALLER, POST));
    } catch (error) {
      errors.push(error);
    }
  await world.clock.advance(0);
  return { waiting, errors };
}

describe('a flood of 5 000 POSTs at a closed operation', () => {
  it('delays and rejects no GET', async () => {
    const world = new LaneWorld();
    await world.close('20');
    const { waiting, errors } = await flood(world, 5_000);
    expect(waiting.filter(({ outcome }) => outcome === 'waits')).toHaveLength(1_000);
    expect(errors).toHaveLength(4_000);
    for (const error of errors.slice(0, 10)) expect(error).toMatchObject({ code: 'QUEUE_FULL' });
    for (let count = 0; count < 200; count++) {
      const get = await world.responds(GET, ACCEPTED);
      expect([get.outcome, get.ticket.waitedMs]).toEqual(['granted', 0]);
    }
  });

  it('leaves half of the queue to others that have to wait, and evicts its youngest', async () => {
    const world = new LaneWorld({ maxInFlight: 4, queueMax: 100 });
    await world.close('20');
    const { waiting } = await flood(world, 100);
    const inFlight = await Promise.all(Array.from({ length: 4 }, () => world.asks(GET)));
    const gets: Asking[] = [];
    for (let count = 0; count < 50; count++) gets.push(await world.asks(GET, 60_000, OTHER));
    expect(inFlight.map(({ outcome }) => outcome)).not.toContain('waits');
    expect(gets.map(({ outcome }) => outcome)).not.toContain('refused');
    const outcomes = waiting.map(({ outcome }) => outcome);
    expect(outcomes.slice(0, 50)).not.toContain('refused');
    expect(outcomes.slice(50)).not.toContain('waits');
    expect(waiting.at(-1)?.error).toMatchObject({ code: 'QUEUE_FULL' });
    expect(world.lanes).toMatchObject([{ queued: 50 }]);
    // What the lane has no room for costs the others no place either.
    const { errors } = await flood(world, 20);
    expect(errors).toHaveLength(20);
    expect(gets.map(({ outcome }) => outcome)).not.toContain('refused');
    for (const get of inFlight) finish(get, ACCEPTED);
  });

  it('evicts no request that was sent before', async () => {
    const world = new LaneWorld({ maxInFlight: 4, queueMax: 10 });
    await world.warmUp();
    const first = await world.asks(POST, 60_000, CALLER);
    await world.refuseFirst(first, '20');
    let isRejected = false;
    const retry = first.ticket.waitForPermit().catch(() => {
      isRejected = true;
    });
    const { waiting } = await flood(world, 9);
    await Promise.all(Array.from({ length: 4 }, () => world.asks(GET)));
    for (let count = 0; count < 5; count++) await world.asks(GET, 60_000, OTHER);
    expect(waiting.filter(({ outcome }) => outcome === 'refused')).toHaveLength(5);
    expect(isRejected).toBe(false);
    first.ticket.leave(new Error('gone'));
    await retry;
  });

  it('shares the queue where two operations are closed', async () => {
    const world = new Fixture({
      limits: [declared('POST'), declared('PUT')],
      maxInFlight: 4,
      queueMax: 90,
      timeoutMs: 1e6,
    });
    for (const call of [POST, PUT]) finish(await ask(world, call), ACCEPTED);
    for (let count = 0; count < 45; count++) for (const call of [POST, PUT]) await ask(world, call);
    for (let count = 0; count < 4; count++) await ask(world, GET);
    expect(world.throttle.state().queued).toBe(90);
    const gets: Asking[] = [];
    for (let count = 0; count < 30; count++) gets.push(await ask(world, GET));
    expect(gets.map(({ outcome }) => outcome)).not.toContain('refused');
  });
});

describe('body slots', () => {
  it('go to a lane by half at most', async () => {
    const world = new LaneWorld({ maxInFlight: 16 });
    await world.close('20');
    const { waiting } = await flood(world, 40);
    expect(waiting.filter(({ ticket }) => ticket.hasBodySlot)).toHaveLength(0);
    const put = world.enter(60_000, undefined, PUT);
    expect(put.hasBodySlot).toBe(true);
    const reading = Array.from({ length: 40 }, () => world.enter(60_000, CALLER, POST));
    expect(reading.filter(({ hasBodySlot }) => hasBodySlot)).toHaveLength(0);
    for (const { ticket } of waiting) ticket.leave(new Error('gone'));
    await world.clock.advance(0);
    for (const ticket of reading) void ticket.waitForBodySlot();
    await world.clock.advance(0);
    expect(reading.filter(({ hasBodySlot }) => hasBodySlot)).toHaveLength(8);
  });

  it('are left over where several lanes are closed', async () => {
    const methods = ['A', 'B', 'C', 'D'];
    const world = new Fixture({ limits: methods.map(declared), maxInFlight: 32, timeoutMs: 1e6 });
    for (const method of methods) finish(await ask(world, { method, target: '/policies' }), ACCEPTED);
    for (let count = 0; count < 32; count++)
      for (const method of methods) await ask(world, { method, target: '/policies' });
    expect(world.enter(60_000, undefined, PUT).hasBodySlot).toBe(true);
  });
});

describe('the stated pause of a lane', () => {
  it('rejects its own requests at once that cannot outlast it, and no others', async () => {
    const world = new LaneWorld({ maxInFlight: 2 });
    await world.warmUp();
    await world.refuseOnce('1');
    await world.clock.advance(60_000);
    const posted = await world.asks(POST);
    const [short, long] = [await world.asks(POST, 5_000), await world.asks(POST, 60_000)];
    await world.asks(GET);
    const get = await world.asks(GET, 5_000);
    await world.refuseFirst(posted, '10');
    expect([short.outcome, long.outcome, get.outcome]).toEqual(['refused', 'waits', 'granted']);
    expect(short.error).toMatchObject({ code: 'QUEUE_TIMEOUT' });
    const { retryAfterMs } = short.error as { retryAfterMs: number };
    expect(retryAfterMs).toBeGreaterThan(9_900);
    finish(get, ACCEPTED);
    expect(() => world.enter(5_000, undefined, POST)).toThrow('longer than it may');
    expect(() => world.enter(5_000, undefined, GET)).not.toThrow();
  });

  it('rejects also the one that waits for a free place only', async () => {
    const world = new LaneWorld({ maxInFlight: 2 });
    await world.warmUp();
    await world.refuseOnce('1');
    await world.clock.advance(60_000);
    await world.responds(POST, ACCEPTED);
    await world.clock.advance(60_000);
    const posted = await world.asks(POST);
    await world.asks(GET);
    const short = await world.asks(POST, 5_000);
    await world.clock.advance(2_000);
    posted.permit?.report(rateLimited('10'));
    await world.clock.advance(0);
    expect(short.outcome).toBe('refused');
  });
});

describe('a declared limit', () => {
  it('that is used up holds no other operation', async () => {
    const world = new Fixture({ limits: [declared('POST')] });
    finish(await ask(world, POST), ACCEPTED);
    expect((await ask(world, POST)).outcome).toBe('waits');
    expect((await ask(world, GET)).outcome).toBe('granted');
    expect((await ask(world, PUT)).outcome).toBe('granted');
  });

  it('with each holds no other tenant', async () => {
    const world = new Fixture({ limits: [{ ...declared('POST'), match: { path: '/tenants/*' }, each: true }] });
    const tenant = (name: string) => ask(world, { method: 'POST', target: `/tenants/${name}/quotes` });
    finish(await tenant('a'), ACCEPTED);
    const waiting = [await tenant('a'), await tenant('a')];
    expect((await tenant('b')).outcome).toBe('granted');
    expect((await tenant('c')).outcome).toBe('granted');
    expect(waiting.map(({ outcome }) => outcome)).toEqual(['waits', 'waits']);
  });
});

function declared(method: string): DeclaredLimit {
  return {
    name: method.toLowerCase(),
    calls: 1,
    per: '10s',
    window: 'sliding',
    timeZone: 'UTC',
    countsRefused: true,
    spread: 'none',
    reserve: 0,
    match: { methods: [method] },
  };
}

async function ask(world: Fixture, call: { method: string; target: string }): Promise<Asking> {
  const asking = new Asking(world.throttle.enter(world.clock.now() + 1e6, CALLER, true, '', world.clock.now(), call));
  await world.clock.advance(0);
  return asking;
}
