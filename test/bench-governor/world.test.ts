import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CreateClient } from '../bench/governor/client.ts';
import { createFullJitter } from '../bench/governor/clients/full-jitter.ts';
import { withWorkerPool } from '../bench/governor/clients/worker-pool.ts';
import { type Figures, jainIndex, measure } from '../bench/governor/figures.ts';
import { create, type LimiterRule } from '../bench/governor/limiters.ts';
import { createArrivals } from '../bench/governor/load.ts';
import { countPossible } from '../bench/governor/possible.ts';
import { createRandom } from '../bench/governor/seeded.ts';
import { VirtualClock } from '../bench/governor/virtual-clock.ts';
import { run, type RunConditions } from '../bench/governor/world.ts';

const BUCKET: LimiterRule = { kind: 'token-bucket', perSecond: 10, burst: 20 };

const CONDITIONS: RunConditions = {
  limiter: BUCKET,
  hint: 'none',
  load: 1.5,
  replicas: 1,
  durationMs: 120_000,
  startsMs: 0,
  latencyMs: { base: 20, jitter: 20 },
  serviceMs: { base: 10, jitter: 0 },
};

/** Sends once, without a retry. */
const once: CreateClient = () => ({
  call: async (_deadlineAt, send) => ((await send()).status < 300 ? 'served' : 'refused-to-caller'),
});

/** Evenly spaced at the given rate. */
function spacedAt(perSecond: number): CreateClient {
  return ({ clock }) => {
    let nextAt = 0;
    return {
      async call(_deadlineAt, send) {
        const at = Math.max(nextAt, clock.now());
        if (at - clock.now() > 30_000) return 'refused-to-caller';
        nextAt = at + 1000 / perSecond;
        await new Promise<void>((resolve) => clock.exactlyAt(at, resolve));
        return (await send()).status < 300 ? 'served' : 'refused-to-caller';
      },
    };
  };
}

async function figuresOf(createClient: CreateClient, changes: Partial<RunConditions> = {}, seed = 1): Promise<Figures> {
  return measure(await run({ conditions: { ...CONDITIONS, ...changes }, seed, createClient }));
}

describe('virtual time', () => {
  it('settles promise chains of any length before the next timer', async () => {
    const clock = new VirtualClock();
    const seen: string[] = [];
    clock.exactlyAt(5, () => {
      void (async () => {
        for (let turn = 0; turn < 1000; turn++) await Promise.resolve();
        seen.push(`chain ends at ${clock.now()}`);
      })();
    });
    clock.exactlyAt(6, () => seen.push('timer'));
    await clock.runUntil(10);
    expect(seen).toEqual(['chain ends at 5', 'timer']);
    expect(clock.now()).toBe(10);
  });

  it('runs timers by instant, and timers of one instant in the order of their creation', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 60 }), async (instants) => {
        const clock = new VirtualClock();
        const seen: [number, number][] = [];
        for (const [index, at] of instants.entries()) clock.exactlyAt(at, () => seen.push([at, index]));
        await clock.runUntil(20);
        expect(seen).toEqual(seen.toSorted((a, b) => a[0] - b[0] || a[1] - b[1]));
        expect(seen).toHaveLength(instants.length);
      }),
    );
  });

  it('does not run cancelled timers, nor timers after the end', async () => {
    const clock = new VirtualClock();
    const seen: string[] = [];
    const cancel = clock.exactlyAt(1, () => seen.push('cancelled'));
    clock.exactlyAt(30, () => seen.push('late'));
    cancel();
    await clock.runUntil(20);
    expect(seen).toEqual([]);
    await clock.runUntil(30);
    expect(seen).toEqual(['late']);
  });
});

describe('a run', () => {
  it('is equal for the same seed, and different for another', async () => {
    const [first, again, other] = await Promise.all([1, 1, 2].map((seed) => figuresOf(createFullJitter, {}, seed)));
    expect(again).toEqual(first);
    expect(other).not.toEqual(first);
  });

  it('has the arrivals that the load specifies', () => {
    const { model } = create({ limiter: BUCKET });
    const count = (load: RunConditions['load']): number =>
      createArrivals(load, model, 600_000, createRandom(1, 'arrivals')).length;
    expect(count(0.8) / 4800).toBeCloseTo(1, 1);
    expect(count(1.5) / 9000).toBeCloseTo(1, 1);
    expect(count('on-off') / 6040).toBeCloseTo(1, 1);
    expect(count('at-once')).toBe(2000);
    expect(count({ calls: 7, everyMs: 100_000 })).toBe(42);
    expect(count({ perSecond: 2 }) / 1200).toBeCloseTo(1, 1);
  });

  it('adds latency both ways, and the service time of accepted calls', async () => {
    let took = 0;
    const timed: CreateClient = (context) => ({
      async call(_deadlineAt, send) {
        const sentAt = context.clock.now();
        await send();
        took = context.clock.now() - sentAt;
        return 'served';
      },
    });
    await figuresOf(timed, {
      load: { calls: 1, everyMs: 60_000 },
      latencyMs: { base: 20, jitter: 0 },
      serviceMs: { base: 10, jitter: 0 },
    });
    expect(took).toBeCloseTo(50);
  });

  it('counts calls in flight from their arrival at the server until their response leaves', async () => {
    const eight: LimiterRule = { kind: 'concurrency', calls: 8 };
    const changes = { limiter: eight, serviceMs: { base: 500, jitter: 0 }, latencyMs: { base: 20, jitter: 0 } };
    const fits = await figuresOf(once, { ...changes, load: { calls: 8, everyMs: 510 } });
    expect(fits.refusedShare).toBe(0);
    const tooMany = await figuresOf(once, { ...changes, load: { calls: 8, everyMs: 490 } });
    expect(tooMany.refusedShare).toBeGreaterThan(0.4);
  });

  it('sends nothing for a caller that has left, and counts the call as given up', async () => {
    const late: CreateClient = ({ clock }) => ({
      async call(deadlineAt, send) {
        await new Promise<void>((resolve) => clock.exactlyAt(deadlineAt, resolve));
        await send();
        return 'served';
      },
    });
    const record = await run({ conditions: { ...CONDITIONS, load: 0.3 }, seed: 1, createClient: late });
    expect(record.gaveUp).toBe(record.arrivals.length);
    expect([...record.acceptedAt, ...record.refusedAt]).toEqual([]);
  });

  it('fails when a client reports a refused call as served', async () => {
    const wrongClient: CreateClient = () => ({
      call: async (_deadlineAt, send) => {
        await send();
        return 'served';
      },
    });
    await expect(figuresOf(wrongClient)).rejects.toMatchObject({
      cause: { message: 'a client calls a call served that the server has not accepted' },
    });
  });

  it('fails when a client fails', async () => {
    const broken: CreateClient = () => ({ call: () => Promise.reject(new Error('broken')) });
    await expect(figuresOf(broken)).rejects.toMatchObject({ cause: { message: 'broken' } });
  });

  it('shares the load evenly among replicas', async () => {
    const { jain } = await figuresOf(once, { replicas: 4, load: 0.8 });
    expect(jain).toBeGreaterThan(0.99);
  });
});

describe('figures', () => {
  it('spaced at 0.97 of the limit: goodput 0.97, no refusals, converged at once', async () => {
    const figures = await figuresOf(spacedAt(9.7));
    expect(figures.goodput).toBeGreaterThan(0.95);
    expect(figures.goodput).toBeLessThan(0.98);
    expect(figures).toMatchObject({ refusedShare: 0, convergedMs: 0, stepUpMs: undefined, stepDownMs: undefined });
  });

  it('spaced at half the limit never converges; at twice the limit half is refused', async () => {
    expect((await figuresOf(spacedAt(5))).convergedMs).toBe(Infinity);
    const fast = await figuresOf(spacedAt(20), { load: 3 });
    expect(fast.refusedShare).toBeGreaterThan(0.45);
    expect(fast.convergedMs).toBe(Infinity);
  });

  it('a load below the limit has goodput 1 and no wait', async () => {
    const figures = await figuresOf(once, { load: 0.3 });
    expect(figures).toMatchObject({ refusedShare: 0, waitP50Ms: 0, waitP99Ms: 0, failedShare: 0, convergedMs: 0 });
    expect(figures.goodput).toBeGreaterThan(0.999);
  });

  it('convergedMs is the instant from which goodput stays high', async () => {
    const from40: CreateClient = (context) => {
      const client = spacedAt(9.7)(context);
      return {
        call: async (deadlineAt, send) =>
          context.clock.now() < 40_000 ? 'refused-to-caller' : client.call(deadlineAt, send),
      };
    };
    const { convergedMs } = await figuresOf(from40);
    // A tenth of a slice may be missing.
    expect(convergedMs).toBeGreaterThan(28_000);
    expect(convergedMs).toBeLessThanOrEqual(40_000);
  });

  it('convergedMs is absent for a run of fewer than two slices', async () => {
    const limiter: LimiterRule = { kind: 'fixed-window', calls: 1000, windowMs: 100_000 };
    expect((await figuresOf(once, { limiter })).convergedMs).toBeUndefined();
  });

  it('a step is timed at once when it is used, and with its whole length when not', async () => {
    const steps: LimiterRule = {
      kind: 'steps',
      steps: [
        { fromMs: 0, limiter: BUCKET },
        { fromMs: 40_000, limiter: { kind: 'token-bucket', perSecond: 5, burst: 5 } },
        { fromMs: 80_000, limiter: BUCKET },
      ],
    };
    const slow = await figuresOf(spacedAt(4.9), { limiter: steps });
    expect(slow).toMatchObject({ stepDownMs: 5000, stepUpMs: 40_000 });
    const fast = await figuresOf(spacedAt(9.9), { limiter: steps });
    expect(fast).toMatchObject({ stepDownMs: 40_000 });
    expect(fast.stepUpMs).toBeLessThan(7000);
  });

  it('Jain’s index is 1 for equal shares, and 1/n when one replica has all', () => {
    expect(jainIndex([3, 3, 3, 3])).toBe(1);
    expect(jainIndex([8, 0, 0, 0])).toBe(0.25);
    expect(jainIndex([0, 0])).toBe(1);
  });
});

describe('jitter at a limit without a burst', () => {
  const limiter: LimiterRule = { kind: 'gcra', perSecond: 10, burst: 1, stepMs: 1 };

  it('never refuses calls spaced by the interval plus the jitter', async () => {
    // 100 ms apart at the server, with 20 ms of jitter: 120 ms apart when sent.
    const figures = await figuresOf(spacedAt(1000 / 121), { limiter });
    expect(figures.refusedShare).toBe(0);
    expect(figures.goodput).toBeGreaterThan(0.81);
  });

  it('refuses calls spaced at 0.97 of the limit', async () => {
    expect((await figuresOf(spacedAt(9.7), { limiter })).refusedShare).toBeGreaterThan(0.25);
    const steady = { limiter, latencyMs: { base: 20, jitter: 0.5 } };
    expect((await figuresOf(spacedAt(9.7), steady)).refusedShare).toBe(0);
  });
});

describe('the possible calls', () => {
  const rules: readonly LimiterRule[] = [
    { kind: 'fixed-window', calls: 20, windowMs: 10_000, phaseMs: 1300 },
    { kind: 'sliding-log', calls: 20, windowMs: 10_000 },
    { kind: 'first-call-window', calls: 20, windowMs: 10_000 },
    { kind: 'sliding-counter', calls: 20, windowMs: 10_000 },
    { kind: 'gcra', perSecond: 2, burst: 3 },
    BUCKET,
    { kind: 'concurrency', calls: 2 },
  ];

  it.each(rules)('$kind: no client has more', async (limiter) => {
    for (const load of [0.8, 1.5, 'on-off'] as const) {
      const { goodput } = await figuresOf(withWorkerPool(createFullJitter), {
        limiter,
        load,
        latencyMs: { base: 1, jitter: 0 },
      });
      // Latency moves calls across the end of a window, and callers wait longer than the assumed queue.
      expect(goodput).toBeLessThan(1.04);
    }
  });

  it.each(rules)('$kind: all of a small load, and the capacity at a large one', (limiter) => {
    const { model } = create({ limiter });
    const count = (load: number): [number, number] => {
      const arrivals = createArrivals(load, model, 300_000, createRandom(3, 'arrivals'));
      const fresh = create({ limiter }).model;
      return [countPossible(fresh, arrivals, 300_000, () => 10, Math.random), arrivals.length];
    };
    const [served, offered] = count(0.3);
    expect(served / offered).toBeGreaterThan(0.97);
    const [most] = count(3);
    expect(most).toBeLessThanOrEqual(model.capacity(0, 300_000) + model.burst);
    expect(most).toBeGreaterThan(0.95 * model.capacity(0, 300_000));
  });
});
