import { describe, expect, it } from 'vitest';
import { createThrottle } from '../../../src/throttle/queue/queueing-throttle.ts';
import { SidecarError } from '../../../src/platform/errors.ts';
import type { Priority, QueueClass } from '../../../src/throttle/throttle.ts';
import { ACCEPTED, type Asking, Fixture, rateLimited } from '../fixture.ts';
import { seeded } from '../simulation.ts';
import { SteppingClock } from '../stepping-clock.ts';

const HIGH: QueueClass = { priority: 'high', caller: '' };
const NORMAL: QueueClass = { priority: 'normal', caller: '' };
const LOW: QueueClass = { priority: 'low', caller: '' };

function by(caller: string, priority: Priority = 'normal'): QueueClass {
  return { priority, caller };
}

function askMany(fixture: Fixture, count: number, queueClass: QueueClass): Asking[] {
  return Array.from({ length: count }, () => fixture.ask(60_000, queueClass));
}

/** The code with which `ask` is refused on arrival, or what has become of it. */
async function outcomeOf(fixture: Fixture, withinMs: number, queueClass: QueueClass): Promise<string> {
  try {
    const asking = fixture.ask(withinMs, queueClass);
    await fixture.clock.advance(0);
    return asking.outcome;
  } catch (error) {
    if (error instanceof SidecarError) return error.code;
    throw error;
  }
}

async function codesOf(askings: readonly Asking[]): Promise<string[]> {
  await Promise.resolve();
  return askings.map(({ outcome, error }) => (error instanceof SidecarError ? error.code : outcome));
}

describe('an expected wait', () => {
  it.each([
    ['of another caller', by('single'), by('batch')],
    ['of a higher class', NORMAL, LOW],
  ])('counts only requests that go first: a request %s', async (_, queueClass, crowd) => {
    const fixture = new Fixture({ rate: 10 });
    askMany(fixture, 20, crowd);
    await fixture.clock.advance(0);
    expect(await outcomeOf(fixture, 100, queueClass)).toBe('QUEUE_TIMEOUT');
    const asking = fixture.ask(201, queueClass);
    await fixture.clock.advance(200);
    expect(asking.outcome).toBe('granted');
  });

  it('is as long as the queue of its own caller', async () => {
    const fixture = new Fixture({ rate: 10 });
    askMany(fixture, 6, by('batch'));
    askMany(fixture, 6, by('other'));
    await fixture.clock.advance(0);
    expect(await outcomeOf(fixture, 1000, by('batch'))).toBe('QUEUE_TIMEOUT');
    expect(await outcomeOf(fixture, 1300, by('batch'))).toBe('waits');
  });
});

describe('a full queue', () => {
  const FULL = { rate: 1, maxInFlight: 2, queueMax: 10 };

  /** One has the permit, ten wait. */
  async function fill(queueClass: QueueClass, settings = FULL): Promise<{ fixture: Fixture; waiting: Asking[] }> {
    const fixture = new Fixture(settings);
    const [, ...waiting] = askMany(fixture, 11, queueClass);
    await fixture.clock.advance(0);
    return { fixture, waiting };
  }

  it('evicts the youngest request of a lower priority for one of a higher', async () => {
    const { fixture, waiting } = await fill(LOW);
    expect(await outcomeOf(fixture, 60_000, LOW)).toBe('QUEUE_FULL');
    expect(await outcomeOf(fixture, 60_000, NORMAL)).toBe('waits');
    expect(await outcomeOf(fixture, 60_000, HIGH)).toBe('waits');
    expect(await codesOf(waiting)).toEqual([...Array<string>(8).fill('waits'), 'QUEUE_FULL', 'QUEUE_FULL']);
    expect((waiting[9]?.error as SidecarError).retryAfterMs).toBeGreaterThan(0);
    expect(fixture.rejections).toEqual(['full', 'full', 'full']);
    expect(fixture.throttle.state()).toMatchObject({ queued: 10, queuedByPriority: { high: 1, normal: 1, low: 8 } });
  });

  it('leaves a lower priority its share by weight, at least one request', async () => {
    const { fixture } = await fill(LOW);
    for (let count = 0; count < 12; count++) await outcomeOf(fixture, 60_000, HIGH);
    expect(fixture.throttle.state().queuedByPriority).toEqual({ high: 9, normal: 0, low: 1 });
    expect(await outcomeOf(fixture, 60_000, HIGH)).toBe('QUEUE_FULL');
  });

  it('evicts the youngest request of the longest queue for a caller that has at least two fewer', async () => {
    const { fixture, waiting } = await fill(by('batch'));
    for (let count = 0; count < 5; count++) expect(await outcomeOf(fixture, 60_000, by('other'))).toBe('waits');
    expect(await outcomeOf(fixture, 60_000, by('other'))).toBe('QUEUE_FULL');
    expect(await outcomeOf(fixture, 60_000, by('batch'))).toBe('QUEUE_FULL');
    expect(await codesOf(waiting)).toEqual([...Array<string>(5).fill('waits'), ...Array<string>(5).fill('QUEUE_FULL')]);
  });

  it.each([
    [10, 5],
    [11, 5],
    [12, 6],
  ])('of %i has %i places for a second caller, and evicts none of them again', async (queueMax, places) => {
    const fixture = new Fixture({ ...FULL, queueMax });
    askMany(fixture, queueMax + 1, by('batch'));
    await fixture.clock.advance(0);
    for (let count = 0; count < places; count++) expect(await outcomeOf(fixture, 60_000, by('other'))).toBe('waits');
    expect(await outcomeOf(fixture, 60_000, by('other'))).toBe('QUEUE_FULL');
  });

  it('evicts no request for one that will not be served in time, and gives that one a Retry-After', async () => {
    const { fixture, waiting } = await fill(LOW);
    const refusal = (): unknown => fixture.ask(900, HIGH);
    expect(refusal).toThrow(expect.objectContaining({ code: 'QUEUE_TIMEOUT', retryAfterMs: 1000 }));
    expect(await codesOf(waiting)).toEqual(Array<string>(10).fill('waits'));
  });

  it('evicts no request that has not begun to wait', () => {
    const fixture = new Fixture(FULL);
    for (let count = 0; count < 11; count++) fixture.enter(60_000, LOW);
    expect(() => fixture.enter(60_000, HIGH)).toThrow(expect.objectContaining({ code: 'QUEUE_FULL' }));
    expect(fixture.throttle.state().queued).toBe(11);
  });

  it('gives the body slot of an evicted request to the next in order', async () => {
    const fixture = new Fixture({ rate: 1, maxInFlight: 4, queueMax: 5 });
    for (const count of [1, 3]) {
      askMany(fixture, count, LOW);
      await fixture.clock.advance(0);
    }
    const [, waiting] = [fixture.enter(60_000, HIGH), fixture.enter(60_000, HIGH)];
    let isBodySlotFree = false;
    void waiting.waitForBodySlot().then(() => (isBodySlotFree = true));
    await fixture.clock.advance(0);
    expect(isBodySlotFree).toBe(false);
    fixture.enter(60_000, NORMAL);
    await fixture.clock.advance(0);
    expect(isBodySlotFree).toBe(true);
    expect(fixture.throttle.state().queuedByPriority).toEqual({ high: 2, normal: 1, low: 2 });
  });

  it('never evicts a retry', async () => {
    const { fixture, waiting } = await fill(LOW, { rate: 1, maxInFlight: 64, queueMax: 10 });
    const retrying = waiting[0]!;
    await fixture.clock.advance(1000);
    retrying.permit?.report(rateLimited('5'));
    retrying.permit?.release();
    const retry = retrying.ticket.waitForPermit();
    for (let count = 0; count < 12; count++) await outcomeOf(fixture, 60_000, HIGH);
    expect(fixture.throttle.state()).toMatchObject({ queued: 10, queuedByPriority: { high: 8, low: 2 } });
    await fixture.clock.advance(5000);
    expect((await retry).grantedAt).toBe(6000);
  });
});

describe('a retry', () => {
  it('of low priority goes before all requests without a permit', async () => {
    const fixture = new Fixture({ rate: 100, burst: 10 });
    const refused = fixture.ask(60_000, by('batch', 'low'));
    await refused.settled;
    refused.permit?.report(rateLimited('2'));
    refused.permit?.release();
    const others = [fixture.ask(60_000, HIGH), fixture.ask(60_000, NORMAL)];
    const retry = refused.ticket.waitForPermit();
    expect(refused.ticket.retryWaitMs()).toBe(2000);
    await fixture.clock.advance(2000);
    const probe = await retry;
    expect(others.map((asking) => asking.outcome)).toEqual(['waits', 'waits']);
    probe.report(ACCEPTED);
    await fixture.clock.advance(0);
    expect(others.map((asking) => asking.outcome)).toEqual(['granted', 'granted']);
  });
});

describe('retries', () => {
  it('count the older retries in their expected wait', async () => {
    const fixture = new Fixture({ rate: 1, burst: 3 });
    const retrying = askMany(fixture, 3, by('batch'));
    askMany(fixture, 5, HIGH);
    await fixture.clock.advance(0);
    const waits = retrying.map((asking) => {
      asking.permit?.release();
      const waitMs = asking.ticket.retryWaitMs();
      asking.ticket.waitForPermit().then(
        () => undefined,
        () => undefined,
      );
      return waitMs;
    });
    expect(waits).toEqual([1000, 2000, 3000]);
  });
});

describe('bodies', () => {
  it('are read in the order of the permits', async () => {
    const fixture = new Fixture({ maxInFlight: 1 });
    const holder = fixture.enter();
    const admitted: string[] = [];
    const names = ['low a', 'low a', 'normal a', 'normal a', 'normal b', 'high a'];
    const tickets = names.map((name) => {
      const [priority, caller = ''] = name.split(' ');
      const ticket = fixture.enter(60_000, { priority: priority as Priority, caller });
      void ticket.waitForBodySlot().then(() => admitted.push(name));
      return ticket;
    });
    for (const ticket of [holder, ...tickets]) {
      const first = ticket === holder ? holder : tickets[names.indexOf(admitted.at(-1) ?? '')]!;
      names[tickets.indexOf(first)] = '';
      (await first.waitForPermit()).release();
      await fixture.clock.advance(0);
    }
    expect(admitted).toEqual(['high a', 'normal a', 'normal b', 'normal a', 'low a', 'low a']);
  });

  it('of low priority leave a quarter of the slots to the others', async () => {
    const fixture = new Fixture({ maxInFlight: 8 });
    let lowOnes = 0;
    let normalOnes = 0;
    for (let count = 0; count < 20; count++)
      void fixture
        .enter(60_000, LOW)
        .waitForBodySlot()
        .then(() => lowOnes++);
    for (let count = 0; count < 20; count++)
      void fixture
        .enter(60_000, NORMAL)
        .waitForBodySlot()
        .then(() => normalOnes++);
    await fixture.clock.advance(0);
    expect([lowOnes, normalOnes]).toEqual([6, 2]);
  });
});

/** Ten minutes at 10 permits per second, each class with a load of its own; waits of the served, and how many were not. */
async function play(
  loads: Partial<Record<Priority, number>>,
): Promise<Record<Priority, { p50: number; lost: number }>> {
  const clock = new SteppingClock();
  const random = seeded(7);
  const throttle = createThrottle({
    route: 'default',
    throttle: { rate: 10, burst: 1, maxInFlight: 64, maxStreams: 100, maxPauseMs: 300_000 },
    queue: { max: 1000, timeoutMs: 30_000 },
    clock,
    random,
    observe: () => undefined,
  });
  const waits: Record<Priority, number[]> = { high: [], normal: [], low: [] };
  const lost = { high: 0, normal: 0, low: 0 };
  const call = async (priority: Priority): Promise<void> => {
    const ticket = throttle.enter(clock.now() + 60_000, { priority, caller: '' });
    await ticket.waitForBodySlot();
    const permit = await ticket.waitForPermit();
    waits[priority].push(ticket.waitedMs);
    await clock.sleep(50);
    permit.report(ACCEPTED);
    permit.release();
    ticket.leave();
  };
  const arrive = async (priority: Priority, load: number): Promise<void> => {
    while (clock.now() < 600_000) {
      await clock.sleep((-Math.log(1 - random()) * 100) / load);
      call(priority).catch(() => lost[priority]++);
    }
  };
  const sources = Object.entries(loads).map(([priority, load]) => arrive(priority as Priority, load));
  await clock.runUntilIdle();
  await Promise.all(sources);
  const summarize = (priority: Priority): { p50: number; lost: number } => {
    const sorted = waits[priority].sort((one, other) => one - other);
    return { p50: sorted[sorted.length >> 1] ?? 0, lost: lost[priority] };
  };
  return { high: summarize('high'), normal: summarize('normal'), low: summarize('low') };
}

describe('twice as much low work as the rate allows', () => {
  it.each([0.5, 0.85])('does not delay normal work at %d of the rate into time-outs', async (load) => {
    const alone = await play({ normal: load });
    const both = await play({ normal: load, low: 2 });
    expect(both.normal.lost).toBe(0);
    // Two permits' time.
    expect(both.normal.p50 - alone.normal.p50).toBeLessThan(200);
    expect(both.low.lost).toBeGreaterThan(0);
  });

  it('is slowed and still served beside more normal work than the rate allows', async () => {
    const { low, normal } = await play({ normal: 1.5, low: 2 });
    expect(normal.lost).toBeGreaterThan(0);
    expect(low.p50).toBeGreaterThan(0);
  });
});
