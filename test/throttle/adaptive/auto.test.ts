/** `throttle.rate: auto` against undocumented limits, measured by goodput, refusals and waits of the callers. */
import { describe, expect, it } from 'vitest';
import { SidecarError } from '../../../src/platform/errors.ts';
import type { LearnedState, Throttle } from '../../../src/throttle/throttle.ts';
import type { LimiterRule } from '../../bench/governor/limiters.ts';
import { seedsOf } from '../../support/rounds.ts';
import { play, type Play, type Played } from './auto-world.ts';

const SEEDS = seedsOf({ check: 1, soak: 3 });
const FIXED: LimiterRule = { kind: 'fixed-window', calls: 100, windowMs: 10_000 };
const BUCKET: LimiterRule = { kind: 'token-bucket', perSecond: 10, burst: 20 };
const QUARTER_HOUR_MS = 900_000;

interface PlayedSeeds {
  /** Means over the seeds. */
  readonly goodput: number;
  readonly refusedShare: number;
  readonly waitP50Ms: number;
  /** Of the first seed, at its end. */
  readonly throttle: Throttle | undefined;
}

async function playSeeds(options: Play): Promise<PlayedSeeds> {
  const runs = await Promise.all(SEEDS.map((seed) => play({ ...options, seed })));
  const mean = (of: (run: Played) => number): number => runs.reduce((sum, run) => sum + of(run), 0) / runs.length;
  return {
    goodput: mean((run) => run.goodput),
    refusedShare: mean((run) => run.refusedShare),
    waitP50Ms: mean((run) => run.waitP50Ms),
    throttle: runs[0]?.throttles[0],
  };
}

describe('an undocumented limit at 1.5 times its rate', () => {
  const limiters: [string, LimiterRule, string][] = [
    ['a fixed window of 100 in 10 s', FIXED, 'window'],
    ['a window from the first call, 100 in 10 s', { ...FIXED, kind: 'first-call-window' }, 'window'],
    ['a sliding window of 600 in 60 s', { kind: 'sliding-log', calls: 600, windowMs: 60_000 }, 'window'],
    ['a token bucket of 10/s with a burst of 20', BUCKET, 'bucket'],
  ];
  it.each(limiters)('is used almost fully and hardly ever exceeded: %s', async (_, limiter, kind) => {
    const { goodput, refusedShare, throttle } = await playSeeds({ limiter, durationMs: QUARTER_HOUR_MS });
    expect(goodput).toBeGreaterThan(0.95);
    expect(refusedShare).toBeLessThan(0.01);
    const learned = throttle?.state().learned;
    expect(learned).toMatchObject({ kind, confidence: 'high' });
    const usage = throttle?.state().usage;
    expect(usage).toMatchObject({ limit: learned?.limit, windowMs: learned?.windowMs });
    expect(usage?.used).toBeLessThanOrEqual((learned?.limit ?? 0) + 1);
    expect(usage?.opensInMs).toBeLessThan(learned?.windowMs ?? 1000);
    // All of them let ten a second through.
    expect(Math.abs((learned?.rate ?? 0) - 10)).toBeLessThan(1);
  });

  // It refuses each call that comes 100 ms after the last one or sooner: what is late on its way is a refusal, or time lost.
  it.each([
    { jitter: 5, mean: 0.85 },
    { jitter: 30, mean: 0.65 },
  ])('is used soon, with $jitter ms of jitter, without a burst', async ({ jitter, mean }) => {
    const limiter: LimiterRule = { kind: 'token-bucket', perSecond: 10, burst: 1 };
    const conditions = { limiter, latencyMs: { base: 20, jitter }, durationMs: 40_000 };
    const goodputs: number[] = [];
    for (const seed of seedsOf({ check: 20, soak: 400 })) {
      const { record } = await play({ ...conditions, seed });
      goodputs.push(record.acceptedAt.filter((at) => at >= 15_000 && at < 40_000).length / 250);
    }
    expect(goodputs.reduce((sum, goodput) => sum + goodput, 0) / goodputs.length).toBeGreaterThan(mean);
    // One of 400 learns a quarter of the limit from its first refusal, and corrects it after 400 calls.
    expect(Math.min(...goodputs)).toBeGreaterThan(0.25);
  });

  it('is used almost fully and hardly ever exceeded: eight calls in flight', async () => {
    const limiter: LimiterRule = { kind: 'concurrency', calls: 8 };
    const options: Play = { limiter, durationMs: QUARTER_HOUR_MS, serviceMs: { base: 400, jitter: 200 } };
    const { goodput, refusedShare, throttle } = await playSeeds(options);
    // With eight in flight at most 0.89 is possible, because of the time on the way.
    expect(goodput).toBeGreaterThan(0.8);
    expect(refusedShare).toBeLessThan(0.01);
    expect(throttle?.state().learned).toMatchObject({ kind: 'concurrency', limit: 8 });
    expect(throttle?.state().usage).toMatchObject({ limit: 8, windowMs: undefined });
  });

  it('is used almost fully and hardly ever exceeded: a window together with 20 calls in flight', async () => {
    const window: LimiterRule = { kind: 'fixed-window', calls: 600, windowMs: 60_000 };
    const limiter: LimiterRule = { kind: 'all-of', limiters: [window, { kind: 'concurrency', calls: 20 }] };
    const serviceMs = { base: 1000, jitter: 1000 };
    const { goodput, refusedShare } = await playSeeds({ limiter, durationMs: QUARTER_HOUR_MS, serviceMs });
    expect(goodput).toBeGreaterThan(0.95);
    expect(refusedShare).toBeLessThan(0.01);
  });

  it('is learned again after it falls and after it rises', async () => {
    const bucket = (fromMs: number, perSecond: number): { fromMs: number; limiter: LimiterRule } => ({
      fromMs,
      limiter: { kind: 'token-bucket', perSecond, burst: 20 },
    });
    const limiter: LimiterRule = { kind: 'steps', steps: [bucket(0, 10), bucket(400_000, 4), bucket(800_000, 16)] };
    const { goodput, refusedShare } = await playSeeds({ limiter, durationMs: 1_200_000 });
    expect(goodput).toBeGreaterThan(0.93);
    expect(refusedShare).toBeLessThan(0.025);
  });

  it('is learned again when it falls before it has explained much, and after it rises', async () => {
    const bucket = (perSecond: number): LimiterRule => ({ kind: 'token-bucket', perSecond, burst: 3 });
    const steps = [
      { fromMs: 0, limiter: bucket(18) },
      { fromMs: 109_000, limiter: bucket(6) },
      { fromMs: 259_000, limiter: bucket(18) },
    ];
    const limiter: LimiterRule = { kind: 'steps', steps };
    const { goodput, refusedShare } = await playSeeds({ limiter, load: 'on-off', durationMs: 409_000 });
    expect(goodput).toBeGreaterThan(0.9);
    expect(refusedShare).toBeLessThan(0.025);
  });

  it('is used again within a minute after an outage in which all calls were refused for 20 minutes', async () => {
    const closed: LimiterRule = { kind: 'fixed-window', calls: 1, windowMs: 3_600_000 };
    const steps = [
      { fromMs: 0, limiter: BUCKET },
      { fromMs: 200_000, limiter: closed },
      { fromMs: 1_400_000, limiter: BUCKET },
    ];
    for (const seed of SEEDS) {
      const limiter: LimiterRule = { kind: 'steps', steps };
      const { record } = await play({ limiter, load: { perSecond: 8 }, seed, durationMs: 1_700_000 });
      const accepted = record.acceptedAt.filter((at) => at > 1_460_000 && at < 1_700_000).length;
      expect(accepted).toBeGreaterThan(0.95 * 8 * 240);
    }
  });

  const outages = [BUCKET, FIXED].flatMap((limiter) => [40_000, 400_000].map((fromMs) => [fromMs, limiter] as const));
  it.each(outages)(
    'is used again after an outage of nine minutes that begins at %i ms: %j',
    async (fromMs, limiter) => {
      const lastsMs = 540_000;
      const closed: LimiterRule = { kind: 'fixed-window', calls: 1, windowMs: 36_000_000 };
      const untilMs = fromMs + lastsMs;
      const steps = [
        { fromMs: 0, limiter },
        { fromMs, limiter: closed },
        { fromMs: untilMs, limiter },
      ];
      for (const seed of SEEDS) {
        const durationMs = untilMs + lastsMs + 660_000;
        const { record } = await play({ limiter: { kind: 'steps', steps }, seed, durationMs });
        // After twice the time it was closed, and the backoff of the last pause.
        for (let from = untilMs + lastsMs + 60_000; from < durationMs; from += 60_000)
          expect(record.acceptedAt.filter((at) => at >= from && at < from + 60_000).length).toBeGreaterThan(540);
      }
    },
  );

  it('causes no refusal and no wait at 0.8 times its rate', async () => {
    for (const [, limiter] of limiters) {
      const { refusedShare, waitP50Ms } = await playSeeds({ limiter, load: 0.8 });
      expect([refusedShare, waitP50Ms]).toEqual([0, 0]);
    }
  });
});

it('spends one permit for each attempt, and none for callers that have left', async () => {
  const { record, permits } = await play({ limiter: BUCKET, load: 5 });
  expect(record.gaveUp).toBeGreaterThan(1000);
  expect(permits).toBe(record.acceptedAt.length + record.refusedAt.length);
  expect(record.wasted).toBe(0);
});

it('never exceeds throttle.maxRate, from the first call on', async () => {
  const { record } = await play({ limiter: BUCKET, load: 1.5, throttle: { maxRate: 5 } });
  expect(record.refusedAt).toEqual([]);
  expect(record.acceptedAt.length).toBeGreaterThan(950);
  for (const [index, at] of record.acceptedAt.entries())
    expect((record.acceptedAt[index + 10] ?? Infinity) - at).toBeGreaterThan(1900);
});

it('spends more of a window at once after a quiet time, the more probes have confirmed it', async () => {
  const load = { onMs: 10_000, on: 3, offMs: 30_000, off: 0.02 };
  const { record } = await play({ limiter: FIXED, load, durationMs: 2 * QUARTER_HOUR_MS });
  // The first two seconds of each time of load: 60 calls arrive.
  const begins = Array.from({ length: 45 }, (_, index) => index * 40_000);
  const spent = begins.map((from) => record.acceptedAt.filter((at) => at >= from && at < from + 2000).length);
  expect(Math.max(...spent.slice(3, 6))).toBeLessThan(35);
  expect(Math.min(...spent.slice(-3))).toBeGreaterThan(45);
  expect(record.refusedAt.filter((at) => at > QUARTER_HOUR_MS).length).toBeLessThan(50);
});

it('sends no burst into a window that may not have opened yet', async () => {
  const { record } = await play({ limiter: FIXED, durationMs: QUARTER_HOUR_MS });
  const late = record.refusedAt.filter((at) => at > 60_000);
  expect(late.length).toBeGreaterThan(0);
  for (const at of late) expect(late.filter((other) => other >= at && other < at + 100).length).toBeLessThanOrEqual(3);
});

describe('a limit restored after a restart', () => {
  async function learnedOf(limiter: LimiterRule): Promise<LearnedState> {
    const [throttle] = (await play({ limiter, durationMs: QUARTER_HOUR_MS })).throttles;
    const state = throttle?.snapshot();
    if (state === undefined) throw new Error('nothing was learned');
    return state;
  }

  it.each([FIXED, BUCKET])('causes no burst of refusals: %j', async (limiter) => {
    const restored = { ...(await learnedOf(limiter)), wallAt: Date.UTC(2026, 9, 31, 23, 59, 30) };
    for (const seed of SEEDS) {
      const { goodput, record } = await play({ limiter, restored, seed, durationMs: 60_000 });
      expect(goodput).toBeGreaterThan(0.9);
      for (const at of record.refusedAt)
        expect(record.refusedAt.filter((other) => other >= at && other < at + 1000).length).toBeLessThanOrEqual(6);
      expect(record.refusedAt.filter((at) => at < 5000)).toEqual([]);
    }
  });
});

describe('a wait computed from the learned limit', () => {
  const MINUTE_MS = 60_000;

  /** Enters until the queue rejects one: how many entered, and the rejection. */
  function fill(throttle: Throttle, now: number): { entered: number; error: SidecarError } {
    for (let entered = 0; ; entered++) {
      try {
        throttle.enter(now + MINUTE_MS);
      } catch (error) {
        if (error instanceof SidecarError) return { entered, error };
        throw error;
      }
    }
  }

  it('rejects callers at once with Retry-After when it is too long and the confidence is high', async () => {
    const { throttles, clock } = await play({ limiter: BUCKET, durationMs: QUARTER_HOUR_MS });
    const [throttle] = throttles;
    if (throttle === undefined) throw new Error('there is no throttle');
    expect(throttle.state().learned?.confidence).toBe('high');
    const { entered, error } = fill(throttle, clock.now());
    expect(error.code).toBe('QUEUE_TIMEOUT');
    expect(error.retryAfterMs).toBeGreaterThan(30_000);
    expect(error.retryAfterMs).toBeLessThan(60_000);
    // queue.timeoutMs of 30 s at 10/s, and some tolerance.
    expect(entered).toBeGreaterThan(290);
    expect(entered).toBeLessThan(450);
  });

  it('rejects no caller while the confidence is low', async () => {
    const learned = { kind: 'window', windowMs: 10_000, limit: 100, rate: 10, margin: 1, used: 0 };
    const restored: LearnedState = { version: 1, wallAt: Date.UTC(2026, 9, 31), governor: learned };
    const { throttles, clock } = await play({ limiter: BUCKET, load: { perSecond: 0.1 }, restored, durationMs: 1000 });
    const [throttle] = throttles;
    if (throttle === undefined) throw new Error('there is no throttle');
    expect(throttle.state().learned?.confidence).toBe('low');
    const { entered, error } = fill(throttle, clock.now());
    expect([entered >= 1000, error.code]).toEqual([true, 'QUEUE_FULL']);
  });
});
