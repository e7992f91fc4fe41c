/**
 * Virtual-time play of the throttle against limiters that hide their limit: all calls offered at once, each retried on 429 from
 * the head of the queue, as the exchange does. Deterministic for a seed. Used by tests and by the bench that prints the table.
 */
import { readMadeAt } from '../../src/platform/origin-clock.ts';
import type { Random } from '../../src/platform/clock.ts';
import type { DeclaredLimit } from '../../src/throttle/declared/declared-limit.ts';
import { periodMs } from '../../src/throttle/declared/limit-window.ts';
import { createThrottle, type ThrottleOptions } from '../../src/throttle/queue/queueing-throttle.ts';
import { readRateLimitSignal } from '../../src/throttle/signals/rate-limit-signal.ts';
import type { Permit } from '../../src/throttle/throttle.ts';
import { SteppingClock } from './stepping-clock.ts';

/** Accepts or refuses a call by the instant of its arrival at the upstream; fields go with a refusal. */
export type Limiter = (at: number) => { readonly accepted: boolean; readonly fields?: Record<string, string> };

export interface SimulationResult {
  readonly served: number;
  readonly failed: number;
  /** Responses with 429. */
  readonly refusals: number;
  /** When the last call was served, milliseconds. */
  readonly lastServedMs: number;
  readonly servedAt: readonly number[];
}

export interface SimulationOptions {
  readonly limiter: Limiter;
  readonly calls: number;
  readonly seed: number;
  readonly overrides?: Partial<Pick<ThrottleOptions, 'throttle' | 'queue'>>;
  /** One way, milliseconds: from, and how much more at random. */
  readonly latencyMs?: readonly [number, number];
  readonly deadlineMs?: number;
}

export const AUTO = { rate: 'auto', burst: 1, maxInFlight: 64, maxStreams: 100, maxPauseMs: 300_000 } as const;

export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  const { limiter, calls, seed, latencyMs = [1, 4], deadlineMs = 60_000 } = options;
  const clock = new SteppingClock();
  const random = seeded(seed);
  const throttle = createThrottle({
    route: 'default',
    throttle: AUTO,
    queue: { max: 1000, timeoutMs: 30_000 },
    ...options.overrides,
    clock,
    random,
    observe: () => undefined,
  });
  const flight = (): Promise<void> => clock.sleep(latencyMs[0] + random() * latencyMs[1]);
  const servedAt: number[] = [];
  let refusals = 0;
  let failed = 0;

  const attempt = async (permit: Permit): Promise<boolean> => {
    await flight();
    const decision = limiter(clock.now());
    await flight();
    if (decision.accepted) permit.report({ kind: 'accepted' });
    else {
      refusals++;
      const signal = readRateLimitSignal(
        429,
        new Map(Object.entries(decision.fields ?? {})),
        readMadeAt(undefined, undefined, clock.wallNow()),
      );
      permit.report({ kind: 'rate-limited', signal });
    }
    permit.release();
    return decision.accepted;
  };
  const call = async (): Promise<void> => {
    const ticket = throttle.enter(clock.now() + deadlineMs);
    await ticket.waitForBodySlot();
    while (!(await attempt(await ticket.waitForPermit())));
    servedAt.push(clock.now());
    ticket.leave();
  };
  const all = Promise.all(Array.from({ length: calls }, () => call().catch(() => failed++)));
  await clock.runUntilIdle();
  await all;
  return { served: servedAt.length, failed, refusals, lastServedMs: servedAt.at(-1) ?? 0, servedAt };
}

/** As nginx `limit_req` without burst: whole milliseconds, nothing saved up, refused calls do not count. */
export function strictLimiter(perSecond: number): Limiter {
  let lastAt = -Infinity;
  return (at) => {
    const accepted = Math.floor(at) - lastAt >= 1000 / perSecond;
    if (accepted) lastAt = Math.floor(at);
    return { accepted };
  };
}

/** A bucket of `burst` calls that refills at `perSecond`. */
export function bucketLimiter(perSecond: number, burst: number): Limiter {
  let level = burst;
  let lastAt = 0;
  return (at) => {
    level = Math.min(burst, level + ((at - lastAt) * perSecond) / 1000);
    lastAt = at;
    const accepted = level >= 1;
    if (accepted) level--;
    return { accepted };
  };
}

/** So many calls in each window that starts at a multiple of its length; a refusal may say when the next one starts. */
export function windowLimiter(calls: number, windowMs: number, statesRetryAfter: boolean): Limiter {
  let window = -1;
  let used = 0;
  return (at) => {
    if (Math.floor(at / windowMs) !== window) {
      window = Math.floor(at / windowMs);
      used = 0;
    }
    if (used < calls) {
      used++;
      return { accepted: true };
    }
    const seconds = Math.ceil(((window + 1) * windowMs - at) / 1000);
    return { accepted: false, ...(statesRetryAfter ? { fields: { 'retry-after': `${seconds}` } } : {}) };
  };
}

/** Mulberry32: small, and the same everywhere for a seed. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Refuses what is beyond any of the limits, also by one call. Refused calls do not count; calendar windows are aligned to 0. */
export function exactLimiter(limits: readonly Pick<DeclaredLimit, 'calls' | 'per' | 'window'>[]): Limiter {
  const counters = limits.map((limit) => ({ ...limit, lengthMs: periodMs(limit.per), accepted: [] as number[] }));
  return (at) => {
    for (const { accepted, lengthMs, window } of counters) {
      const from = window === 'sliding' ? at - lengthMs : Math.floor(at / lengthMs) * lengthMs - 1e-6;
      while (accepted.length > 0 && (accepted[0] ?? 0) <= from) accepted.shift();
    }
    if (counters.some(({ accepted, calls }) => accepted.length >= calls)) return { accepted: false };
    for (const { accepted } of counters) accepted.push(at);
    return { accepted: true };
  };
}
