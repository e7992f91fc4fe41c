import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SidecarError } from '../../src/platform/errors.ts';
import { PermitBucket } from '../../src/throttle/pacing/permit-bucket.ts';
import { type CallFigures, type CallKind, type DeadlineWorld, playDeadlines } from './deadline-world.ts';
import { ACCEPTED, type Asking, Fixture, rateLimited } from './fixture.ts';

const RATE = fc.integer({ min: 5, max: 40 });
const DEADLINE_MS = fc.integer({ min: 1000, max: 20_000 });
const ARRIVALS = fc.constantFrom('poisson' as const, 'even' as const);
const SEED = fc.nat(1000);
const NO_CALLS: CallFigures = { calls: 0, served: 0, inVain: 0, refusedAtOnce: 0, timedOut: 0 };

/** @param jitter share of the latency that differs from call to call */
function kindOf(path: string, perSecond: number, deadlineMs: number, latencyMs: number, jitter = 0): CallKind {
  return { path, perSecond, deadlineMs, latencyMs: (_, random) => latencyMs * (1 + jitter * (random() - 0.5)) };
}

/** Overload of one kind of call; the counted time begins when the queue has filled and samples are there. */
function overload(rate: number, times: number, deadlineMs: number, latencyMs: number, jitter: number): DeadlineWorld {
  const countedFromMs = (25_000 / rate + 2 * deadlineMs) * 1.5;
  return {
    kinds: [kindOf('/calls', rate * times, deadlineMs, latencyMs, jitter)],
    throttle: { rate, maxInFlight: 1000 },
    durationMs: countedFromMs + 300_000 / rate,
    countedFromMs,
  };
}

function oneOf({ figures }: { readonly figures: readonly CallFigures[] }): CallFigures {
  return figures[0] ?? NO_CALLS;
}

describe('more calls than the rate allows, with deadlines', () => {
  const CASE = fc.record({
    rate: RATE,
    times: fc.double({ min: 1.3, max: 10, noNaN: true }),
    deadlineMs: DEADLINE_MS,
    part: fc.double({ min: 0.002, max: 0.4, noNaN: true }),
    jitter: fc.constantFrom(0, 0.1, 0.3),
    arrivals: ARRIVALS,
    seed: SEED,
  });

  it('are served at the rate, and at most one in a hundred is carried out in vain', async () => {
    await fc.assert(
      fc.asyncProperty(CASE, async ({ rate, times, deadlineMs, part, jitter, arrivals, seed }) => {
        const world = overload(rate, times, deadlineMs, deadlineMs * part, jitter);
        const result = await playDeadlines({ ...world, arrivals, seed });
        const { served, inVain } = oneOf(result);
        expect(served).toBeGreaterThanOrEqual(300 * 0.95);
        expect(inVain).toBeLessThanOrEqual(result.executed / 100);
      }),
      { numRuns: 10 },
    );
  });

  it('are served when the upstream needs more than half of the deadline', async () => {
    const result = await playDeadlines(overload(20, 3, 3000, 2000, 0.1));
    expect(oneOf(result).served).toBeGreaterThanOrEqual(300 * 0.95);
    expect(oneOf(result).inVain).toBeLessThanOrEqual(3);
  });

  it.each([5000, 20_000, 60_000])(
    'and with times of 1 to 3 s at most 3 in 100 are carried out in vain (deadline %d ms)',
    async (deadlineMs) => {
      const result = await playDeadlines(overload(20, 3, deadlineMs, 2000, 1));
      expect(oneOf(result).served).toBeGreaterThanOrEqual(300 * 0.97);
      expect(oneOf(result).inVain).toBeLessThanOrEqual(result.executed * 0.03);
    },
  );

  it('invariant 3: spend no permit on a waiting call that has less left than the upstream needs, or than half of its deadline', async () => {
    let checked = 0;
    await fc.assert(
      fc.asyncProperty(CASE, fc.double({ min: 0.01, max: 1.2, noNaN: true }), async (each, part) => {
        const { rate, times, deadlineMs, arrivals, seed } = each;
        const latencyMs = deadlineMs * part;
        const world = overload(rate, times, deadlineMs, latencyMs, 0);
        const { grants } = await playDeadlines({ ...world, arrivals, seed });
        const waited = grants.filter(({ at, waitedMs }) => waitedMs > 0 && at - waitedMs >= (world.countedFromMs ?? 0));
        checked += waited.length;
        for (const { remainingMs } of waited)
          expect(remainingMs).toBeGreaterThanOrEqual(Math.min(latencyMs, deadlineMs / 2));
      }),
      { numRuns: 10 },
    );
    expect(checked).toBeGreaterThan(100);
  });

  it('are never refused when they could start at once', async () => {
    const LOAD = fc.constantFrom('poisson' as const, 'bursts' as const);
    await fc.assert(
      fc.asyncProperty(CASE, LOAD, fc.integer({ min: 1, max: 20 }), async (each, arrivals, burst) => {
        const { rate, times, deadlineMs, part, seed } = each;
        const world = overload(rate, times / 3, deadlineMs, deadlineMs * part * 3, 0.3);
        const throttle = { rate, burst, maxInFlight: 1000 };
        const { grants, refusals } = await playDeadlines({ ...world, throttle, arrivals, seed });
        const bucket = new PermitBucket(rate, burst);
        let next = 0;
        for (const { at, queued } of refusals) {
          for (; grants[next] !== undefined && grants[next]!.at <= at; next++) bucket.tryTake(grants[next]!.at);
          if (queued === 0) expect(bucket.available(at)).toBe(0);
        }
      }),
      { numRuns: 10 },
    );
  });
});

describe('Retry-After of a refused call', () => {
  it('is long enough: once the others have gone the same call is not refused', async () => {
    const CASE = fc.record({
      rate: fc.double({ min: 0.002, max: 50, noNaN: true }),
      burst: fc.integer({ min: 1, max: 5 }),
      deadlineMs: fc.integer({ min: 100, max: 30_000 }),
      latencyMs: fc.integer({ min: 1, max: 20_000 }),
      calls: fc.integer({ min: 1, max: 80 }),
      pauseSeconds: fc.constantFrom(undefined, 1, 20, 900),
    });
    let refused = 0;
    await fc.assert(
      fc.asyncProperty(CASE, async ({ rate, burst, deadlineMs, latencyMs, calls, pauseSeconds }) => {
        const fixture = new Fixture({ rate, burst });
        await respond(fixture, 25, latencyMs, pauseSeconds);
        const refusal = fill(fixture, calls, deadlineMs);
        if (refusal === undefined) return;
        refused++;
        await fixture.clock.advance(Math.ceil((refusal.retryAfterMs ?? 0) / 1000) * 1000);
        expect(() => fixture.enter(deadlineMs)).not.toThrow();
      }),
      { numRuns: 200 },
    );
    expect(refused).toBeGreaterThan(50);
  });

  /** Calls one after another, each as soon as it may; the last one may be refused by the upstream. */
  async function respond(fixture: Fixture, calls: number, latencyMs: number, pauseSeconds?: number): Promise<void> {
    for (let made = 0; made < calls; made++) {
      const { permit, ticket } = await grantNext(fixture);
      await fixture.clock.advance(latencyMs);
      const isLast = made === calls - 1 && pauseSeconds !== undefined;
      permit?.report(isLast ? rateLimited(`${pauseSeconds}`) : ACCEPTED);
      permit?.release();
      ticket.leave();
    }
  }

  async function grantNext(fixture: Fixture): Promise<Asking> {
    for (;;) {
      try {
        const asking = fixture.ask(86_400_000);
        await fixture.clock.advance(0);
        if (asking.outcome === 'granted') return asking;
        asking.ticket.leave(new Error('comes again'));
      } catch (error) {
        if (!(error instanceof SidecarError)) throw error;
      }
      await fixture.clock.advance(100_000);
    }
  }

  /** Asks until a call is refused; those that wait are served when it is their turn. */
  function fill(fixture: Fixture, calls: number, deadlineMs: number): SidecarError | undefined {
    for (let made = 0; made < calls; made++) {
      try {
        const asking = fixture.ask(deadlineMs);
        void asking.settled.then(() => {
          asking.permit?.report(ACCEPTED);
          asking.permit?.release();
          asking.ticket.leave();
        });
      } catch (error) {
        if (error instanceof SidecarError) return error;
        throw error;
      }
    }
    return undefined;
  }
});

describe('quick calls beside slow ones', () => {
  it('are refused no more than beside other quick ones', async () => {
    const CASE = fc.record({
      rate: RATE,
      quickTimes: fc.double({ min: 0.3, max: 3, noNaN: true }),
      slowTimes: fc.double({ min: 0.1, max: 3, noNaN: true }),
      quickDeadlineMs: fc.constantFrom(500, 1000, 5000),
      seed: SEED,
    });
    await fc.assert(
      fc.asyncProperty(CASE, async ({ rate, quickTimes, slowTimes, quickDeadlineMs, seed }) => {
        const countRefused = async (slowMs: number): Promise<number> => {
          const quick = kindOf('/quotes/1', rate * quickTimes, quickDeadlineMs, 20);
          const slow = kindOf('/policies/1', rate * slowTimes, 5000, slowMs);
          const world = { throttle: { rate, maxInFlight: 1000 }, durationMs: 60_000, countedFromMs: 20_000, seed };
          const { refusedAtOnce, timedOut } = oneOf(await playDeadlines({ ...world, kinds: [quick, slow] }));
          return refusedAtOnce + timedOut;
        };
        expect(await countRefused(2000)).toBeLessThanOrEqual(await countRefused(20));
      }),
      { numRuns: 10 },
    );
  });

  it('leave half of the rate to slow ones of another caller', async () => {
    const quick = { ...kindOf('/quotes/1', 40, 5000, 20), caller: 'quotes' };
    const slow = { ...kindOf('/policies/1', 40, 5000, 2000), caller: 'policies' };
    const throttle = { rate: 20, maxInFlight: 1000 };
    const world = { kinds: [quick, slow], throttle, durationMs: 50_000, countedFromMs: 20_000 };
    for (const { served } of (await playDeadlines(world)).figures) expect(served).toBeGreaterThanOrEqual(300 * 0.95);
  });

  it('of the same endpoint wait up to half of their deadline', async () => {
    const fixture = new Fixture({ rate: 10 });
    for (let made = 0; made < 30; made++) {
      const asking = fixture.ask();
      await fixture.clock.advance(4000);
      asking.permit?.report(ACCEPTED);
      asking.permit?.release();
    }
    const accepted = Array.from({ length: 25 }, () => fixture.ask(5000));
    expect(accepted).toHaveLength(25);
    expect(() => fixture.ask(5000)).toThrow(expect.objectContaining({ code: 'QUEUE_TIMEOUT' }));
  });
});

describe('a call that waits alone', () => {
  /** Of twenty calls `quickCalls` took 1 s, the others 4 s; then the rate holds up a call whose deadline leaves it `leftMs` at its turn. */
  async function sendAfterWait(quickCalls: number, leftMs: number): Promise<Asking> {
    const fixture = new Fixture({ rate: 0.5 });
    for (let made = 0; made < 100; made++) {
      const asking = fixture.ask();
      await fixture.clock.advance(made % 20 < quickCalls ? 1000 : 4000);
      asking.permit?.report(ACCEPTED);
      asking.permit?.release();
      await fixture.clock.advance(5000);
    }
    fixture.ask();
    const asking = fixture.ask(2000 + leftMs);
    await fixture.clock.advance(2001);
    return asking;
  }

  it('is sent when 90 in 100 like it would be in time, and not when fewer would', async () => {
    expect(await sendAfterWait(19, 3000).then(({ outcome }) => outcome)).toBe('granted');
    expect(await sendAfterWait(17, 3000).then(({ outcome }) => outcome)).toBe('refused');
    expect(await sendAfterWait(17, 5000).then(({ outcome }) => outcome)).toBe('granted');
  });

  it('is sent without a wait however little time is left', async () => {
    const fixture = new Fixture({ rate: 10 });
    for (let made = 0; made < 30; made++) {
      const asking = fixture.ask();
      await fixture.clock.advance(4000);
      asking.permit?.report(ACCEPTED);
      asking.permit?.release();
    }
    const asking = fixture.ask(1000);
    await asking.settled;
    expect(asking.outcome).toBe('granted');
  });
});

describe('calls with the default deadline and time-out', () => {
  it('wait as long beside calls of 29 s as they may without any', async () => {
    const countAdmitted = async (calls: number): Promise<number> => {
      const fixture = new Fixture({ rate: 10 });
      for (let made = 0; made < calls; made++) {
        const asking = fixture.ask();
        await fixture.clock.advance(29_000);
        asking.permit?.report(ACCEPTED);
        asking.permit?.release();
      }
      for (let admitted = 0; ; admitted++)
        try {
          fixture.ask(60_000);
        } catch {
          return admitted;
        }
    };
    expect(await countAdmitted(25)).toBe(await countAdmitted(0));
  });
});

describe('when the upstream changes under overload', () => {
  const LATER_MS = 30_000;

  it.each([
    ['becomes slower', (at: number) => (at < LATER_MS ? 300 : 2000)],
    ['becomes quicker', (at: number) => (at < LATER_MS ? 2000 : 20)],
    ['does not respond for ten seconds', (at: number) => (at > LATER_MS - 10_000 && at < LATER_MS ? Infinity : 300)],
    ['does not respond for ten minutes', (at: number) => (at < LATER_MS ? Infinity : 1500)],
  ])('and %s, calls are served again after 15 s', async (_, latencyMs) => {
    const kinds = [{ path: '/calls', perSecond: 60, deadlineMs: 5000, latencyMs }];
    const result = await playDeadlines({
      kinds,
      throttle: { rate: 20, maxInFlight: 1000 },
      durationMs: LATER_MS + 30_000,
      countedFromMs: LATER_MS + 15_000,
    });
    expect(oneOf(result).served).toBeGreaterThanOrEqual(300 * 0.95);
    expect(oneOf(result).inVain).toBeLessThanOrEqual(3);
  });
});
