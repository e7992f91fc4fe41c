/** Settings that change while requests wait and calls are under way. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Permit, ThrottleTerms } from '../../src/throttle/throttle.ts';
import { ACCEPTED, type Asking, Fixture, rateLimited, type Settings } from './fixture.ts';

const DAY_MS = 86_400_000;
const BEFORE = { rate: 5, burst: 1, maxInFlight: 64, maxStreams: 100, maxPauseMs: 300_000 } as const;

function terms({ queueMax = 1000, timeoutMs = 30_000, ...throttle }: Settings & { maxRate?: number }): ThrottleTerms {
  return { throttle: { ...BEFORE, ...throttle }, queue: { max: queueMax, timeoutMs } };
}

/** Asks for so many permits; each is given back at once. @returns the instants at which they were granted */
function askFor(fixture: Fixture, count: number): number[] {
  const grantedAt: number[] = [];
  for (let index = 0; index < count; index++) {
    const asking = fixture.ask(DAY_MS);
    void asking.settled.then(() => {
      if (asking.permit === undefined) return;
      grantedAt.push(fixture.clock.now());
      asking.permit.markSent();
      asking.permit.report(ACCEPTED);
      asking.permit.release();
    });
  }
  return grantedAt;
}

/** Asks until nothing is granted any more. */
async function takeAll(fixture: Fixture, count: number): Promise<Permit[]> {
  const askings = Array.from({ length: count }, () => fixture.ask());
  await fixture.clock.advance(0);
  return askings.flatMap(({ permit }) => (permit === undefined ? [] : [permit]));
}

function outcomes(askings: readonly Asking[]): string {
  return askings.map(({ outcome }) => outcome[0]).join('');
}

describe('a configured rate', () => {
  it('invariant 2: applies a raise from 5 to 50 with burst 20 at once, without a burst', async () => {
    const fixture = new Fixture({ rate: 5 });
    const grantedAt = askFor(fixture, 40);
    await fixture.clock.advance(1000);
    expect(grantedAt).toEqual([0, 200, 400, 600, 800, 1000]);
    fixture.throttle.reconfigure(terms({ rate: 50, burst: 20 }));
    await fixture.clock.advance(200);
    expect(grantedAt.slice(6)).toEqual([1020, 1040, 1060, 1080, 1100, 1120, 1140, 1160, 1180, 1200]);
    expect(fixture.throttle.state()).toMatchObject({ rate: 50, queued: 24, inFlight: 0 });
  });

  it('slows requests that wait already when it falls from 50 to 5', async () => {
    const fixture = new Fixture({ rate: 50 });
    const grantedAt = askFor(fixture, 20);
    await fixture.clock.advance(100);
    fixture.throttle.reconfigure(terms({ rate: 5 }));
    await fixture.clock.advance(500);
    expect(grantedAt.slice(6)).toEqual([300, 500]);
  });

  it('invariant 2: never exceeds its rates and one burst in any interval, for any changes', async () => {
    const step = fc.record({
      afterMs: fc.integer({ min: 1, max: 400 }),
      rate: fc.integer({ min: 1, max: 100 }),
      burst: fc.integer({ min: 1, max: 8 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), async (steps) => {
        const fixture = new Fixture({ rate: 5, timeoutMs: DAY_MS });
        const grantedAt = askFor(fixture, 300);
        const settings = [{ from: 0, rate: 5, burst: 1 }];
        for (const { afterMs, rate, burst } of steps) {
          await fixture.clock.advance(afterMs);
          fixture.throttle.reconfigure(terms({ rate, burst }));
          settings.push({ from: fixture.clock.now(), rate, burst });
        }
        await fixture.clock.advance(300);
        expect(worstExcess(grantedAt, settings)).toBeLessThan(1e-6);
      }),
      { numRuns: 40 },
    );
  });
});

/** By how many permits the fullest interval exceeds what its rates and the burst at its start, or a later one, allow. */
function worstExcess(
  grantedAt: readonly number[],
  settings: readonly { from: number; rate: number; burst: number }[],
): number {
  let worst = -Infinity;
  for (const [first, from] of grantedAt.entries()) {
    for (const [last, to] of grantedAt.entries()) {
      if (last < first) continue;
      const inForce = settings.map((setting, index) => {
        const [begin, end] = [Math.max(setting.from, from), Math.min(settings[index + 1]?.from ?? Infinity, to)];
        return { ...setting, ms: end - begin };
      });
      const allowed = inForce.reduce((sum, { rate, ms }) => sum + (rate * Math.max(0, ms)) / 1000, 0);
      const burst = Math.max(...inForce.filter(({ ms }) => ms >= 0).map((setting) => setting.burst));
      worst = Math.max(worst, last - first + 1 - (allowed + burst));
    }
  }
  return worst;
}

describe('between a number and auto', () => {
  it('paces at once from an empty bucket after auto changes to a number', async () => {
    const fixture = new Fixture({ rate: 'auto' });
    await takeAll(fixture, 4);
    fixture.throttle.reconfigure(terms({ rate: 10, burst: 5 }));
    const grantedAt = askFor(fixture, 5);
    await fixture.clock.advance(300);
    expect(grantedAt).toEqual([100, 200, 300]);
    expect(fixture.throttle.state()).toMatchObject({ mode: 'static', rate: 10, learned: undefined });
  });

  it('starts to learn with 4 in flight after a number changes to auto', async () => {
    const fixture = new Fixture({ rate: 5 });
    const askings = Array.from({ length: 10 }, () => fixture.ask());
    fixture.throttle.reconfigure(terms({ rate: 'auto' }));
    await fixture.clock.advance(0);
    expect(outcomes(askings)).toBe('ggggwwwwww');
    expect(fixture.throttle.state()).toMatchObject({ mode: 'auto', rate: Infinity, inFlightLimit: 4 });
  });

  it('pauses after a refusal of an earlier call, and learns no rate from it', async () => {
    const fixture = new Fixture({ rate: 5 });
    const [old] = await takeAll(fixture, 1);
    fixture.throttle.reconfigure(terms({ rate: 'auto' }));
    old?.report(rateLimited('2'));
    old?.release();
    expect(fixture.throttle.state()).toMatchObject({ pausedMs: 2000, rate: Infinity, learned: undefined });
  });

  it('keeps a pause in both directions', async () => {
    for (const rate of [5, 'auto'] as const) {
      const fixture = new Fixture({ rate });
      const [permit] = await takeAll(fixture, 1);
      permit?.report(rateLimited('2'));
      permit?.release();
      fixture.throttle.reconfigure(terms({ rate: rate === 5 ? 'auto' : 5 }));
      const asking = fixture.ask();
      await fixture.clock.advance(1999);
      expect(asking.outcome).toBe('waits');
      await fixture.clock.advance(1);
      expect(asking.outcome).toBe('granted');
    }
  });

  it('keeps to stated remainders only under auto', async () => {
    const fixture = new Fixture({ rate: 'auto' });
    const [permit] = await takeAll(fixture, 1);
    const stated = rateLimited('9');
    if (stated.kind === 'rate-limited' && permit !== undefined)
      permit.report({ kind: 'accepted', hint: { ...stated.signal, quotas: [USED_UP] } });
    permit?.release();
    const asking = fixture.ask();
    await fixture.clock.advance(10);
    expect(asking.outcome).toBe('waits');
    fixture.throttle.reconfigure(terms({ rate: 5 }));
    await fixture.clock.advance(200);
    expect(asking.outcome).toBe('granted');
  });

  it('keeps what auto has learned, within the new bounds', async () => {
    const fixture = new Fixture({ rate: 'auto' });
    const [permit] = await takeAll(fixture, 1);
    permit?.report(rateLimited('1'));
    permit?.release();
    const { learned } = fixture.throttle.state();
    expect(learned?.rate).toBeGreaterThan(1);
    fixture.throttle.reconfigure(terms({ rate: 'auto', maxInFlight: 3 }));
    expect(fixture.throttle.state()).toMatchObject({ learned, inFlightLimit: 3 });
    fixture.throttle.reconfigure(terms({ rate: 'auto', maxRate: 0.5 }));
    expect(fixture.throttle.state()).toMatchObject({ rate: 0.5 });
  });
});

const USED_UP = { quota: 10, windowMs: 5000, remaining: 0, resetInMs: 5000 };

describe('the queue', () => {
  it('keeps all waiting requests when queue.max falls below their number, and rejects new ones', async () => {
    const fixture = new Fixture({ rate: 5, queueMax: 10 });
    const askings = Array.from({ length: 6 }, () => fixture.ask());
    fixture.throttle.reconfigure(terms({ queueMax: 2 }));
    expect(() => fixture.enter()).toThrow(/queue is full/);
    await fixture.clock.advance(1000);
    expect(outcomes(askings)).toBe('gggggg');
    expect(fixture.rejections).toEqual(['full']);
  });

  it('applies a new time-out only to later requests', async () => {
    const fixture = new Fixture({ rate: 1, timeoutMs: 30_000 });
    const before = Array.from({ length: 4 }, () => fixture.ask());
    fixture.throttle.reconfigure(terms({ rate: 1, timeoutMs: 2500 }));
    expect(() => fixture.enter()).toThrow(/longer than it may/);
    await fixture.clock.advance(3000);
    expect(outcomes(before)).toBe('gggg');
  });
});

describe('bodies', () => {
  it('are read by waiting requests when there are more slots, low priority within its share', async () => {
    const fixture = new Fixture({ rate: 1, maxInFlight: 4 });
    let [normal, low] = [0, 0];
    for (let index = 0; index < 20; index++) {
      void fixture
        .enter(DAY_MS, { priority: 'low', caller: '' })
        .waitForBodySlot()
        .then(() => low++);
    }
    await fixture.clock.advance(0);
    expect(low).toBe(3);
    fixture.throttle.reconfigure(terms({ rate: 1, maxInFlight: 8 }));
    await fixture.clock.advance(0);
    expect(low).toBe(6);
    for (let index = 0; index < 4; index++)
      void fixture
        .enter(DAY_MS)
        .waitForBodySlot()
        .then(() => normal++);
    await fixture.clock.advance(0);
    expect(normal).toBe(2);
  });

  it('keep their slots when there are fewer, and the next one waits', async () => {
    const fixture = new Fixture({ rate: 1, maxInFlight: 4 });
    const first = Array.from({ length: 4 }, () => fixture.enter(DAY_MS));
    fixture.throttle.reconfigure(terms({ rate: 1, maxInFlight: 2 }));
    let admitted = 0;
    void fixture
      .enter(DAY_MS)
      .waitForBodySlot()
      .then(() => admitted++);
    for (const ticket of first.slice(0, 2)) ticket.leave();
    await fixture.clock.advance(0);
    expect(admitted).toBe(0);
    first[2]?.leave();
    await fixture.clock.advance(0);
    expect(admitted).toBe(1);
  });
});

describe('calls in flight', () => {
  it('go at once when maxInFlight rises', async () => {
    const fixture = new Fixture({ rate: 1000, burst: 100, maxInFlight: 2 });
    const askings = Array.from({ length: 5 }, () => fixture.ask());
    await fixture.clock.advance(0);
    expect(outcomes(askings)).toBe('ggwww');
    fixture.throttle.reconfigure(terms({ rate: 1000, burst: 100, maxInFlight: 4 }));
    await fixture.clock.advance(0);
    expect(outcomes(askings)).toBe('ggggw');
  });

  it('stay when maxInFlight falls, and the next one waits until enough have ended', async () => {
    const fixture = new Fixture({ rate: 1000, burst: 100, maxInFlight: 4 });
    const permits = await takeAll(fixture, 4);
    fixture.throttle.reconfigure(terms({ rate: 1000, burst: 100, maxInFlight: 2 }));
    const asking = fixture.ask();
    for (const permit of permits.slice(0, 2)) permit.release();
    await fixture.clock.advance(10);
    expect(asking.outcome).toBe('waits');
    permits[2]?.release();
    await fixture.clock.advance(0);
    expect(asking.outcome).toBe('granted');
  });

  it('keep open streams when maxStreams falls, and no further one opens', async () => {
    const fixture = new Fixture({ rate: 1000, burst: 100, maxStreams: 2 });
    const [one, other] = await takeAll(fixture, 2);
    expect(one?.becomeStream()).toBe(true);
    fixture.throttle.reconfigure(terms({ rate: 1000, burst: 100, maxStreams: 1 }));
    expect(other?.becomeStream()).toBe(false);
    expect(fixture.throttle.state()).toMatchObject({ streams: 1, inFlight: 1 });
  });
});

it('applies a shorter maxPauseMs to a pause that has begun', async () => {
  const fixture = new Fixture({ rate: 5 });
  const [permit] = await takeAll(fixture, 1);
  permit?.report(rateLimited('200'));
  permit?.release();
  fixture.throttle.reconfigure(terms({ maxPauseMs: 1000 }));
  expect(() => fixture.enter()).toThrow(/longer than it may/);
  await fixture.clock.advance(1000);
  const probe = fixture.ask(300_000);
  await fixture.clock.advance(0);
  expect(probe.outcome).toBe('granted');
});

it('applies a shorter maxPauseMs to quotas stated from then on', async () => {
  const fixture = new Fixture({ rate: 'auto' });
  for (const remaining of [5, 0]) {
    const [permit] = await takeAll(fixture, 1);
    const stated = rateLimited('9');
    const quota = { quota: 10, windowMs: 25_000, remaining, resetInMs: 25_000 };
    if (stated.kind === 'rate-limited')
      permit?.report({ kind: 'accepted', hint: { ...stated.signal, quotas: [quota] } });
    permit?.release();
    fixture.throttle.reconfigure(terms({ rate: 'auto', maxPauseMs: 1000 }));
  }
  const asking = fixture.ask();
  await fixture.clock.advance(999);
  expect(asking.outcome).toBe('waits');
  await fixture.clock.advance(1);
  expect(asking.outcome).toBe('granted');
});

it('learns nothing from calls that were granted at a configured rate', async () => {
  const fixture = new Fixture({ rate: 1000, burst: 50 });
  const permits = await takeAll(fixture, 50);
  expect(permits).toHaveLength(50);
  fixture.throttle.reconfigure(terms({ rate: 'auto' }));
  for (const permit of permits) {
    permit.report(ACCEPTED);
    permit.release();
  }
  expect(fixture.throttle.state().inFlightLimit).toBe(4);
});
