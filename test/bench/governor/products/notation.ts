/** Limits in one line each, with windows in seconds, for the table of products (pure). */
import type { LimiterRule } from '../limiters.ts';

/** Windows by the server's clock. */
export function clock(calls: number, seconds: number): LimiterRule {
  return { kind: 'fixed-window', calls, windowMs: seconds * 1000 };
}

/** A window that the first call opens. */
export function firstCall(calls: number, seconds: number): LimiterRule {
  return { kind: 'first-call-window', calls, windowMs: seconds * 1000 };
}

/** A sliding log. */
export function log(calls: number, seconds: number, countsRefused = false): LimiterRule {
  return { kind: 'sliding-log', calls, windowMs: seconds * 1000, countsRefused };
}

/** A sliding counter of two windows. */
export function counter(calls: number, seconds: number, countsRefused = false): LimiterRule {
  return { kind: 'sliding-counter', calls, windowMs: seconds * 1000, countsRefused };
}

export function slots(calls: number, seconds: number, count: number): LimiterRule {
  return { kind: 'slotted-window', calls, windowMs: seconds * 1000, slots: count };
}

/** A token bucket that refills evenly. */
export function bucket(perSecond: number, burst: number): LimiterRule {
  return { kind: 'token-bucket', perSecond, burst };
}

/** A bucket that gets so many permits at a time. @param burst the most it holds. Default: one refill */
export function refill(calls: number, seconds: number, burst = calls): LimiterRule {
  return { kind: 'bulk-refill', calls, everyMs: seconds * 1000, burst };
}

/** nginx: `burst` calls above the rate, counted in milliseconds. */
export function nginx(perSecond: number, burst: number, holdsBack = false): LimiterRule {
  return { kind: 'gcra', perSecond, burst: burst + 1, stepMs: 1, holdsBack };
}

export function inFlight(calls: number): LimiterRule {
  return { kind: 'concurrency', calls };
}

export function allOf(...limiters: readonly LimiterRule[]): LimiterRule {
  return { kind: 'all-of', limiters };
}

/** Each refusal closes the limit for that time. */
export function withPenalty(limiter: LimiterRule, seconds: number): LimiterRule {
  return { kind: 'ban', limiter, refusals: 1, withinMs: 1, banMs: seconds * 1000 };
}

/** Nodes that count alone behind a load balancer. */
export function nodes(count: number, limiter: LimiterRule, choice: 'turns' | 'random'): LimiterRule {
  return { kind: 'nodes', limiter, nodes: count, choice, seed: 1 };
}

/** @param costs permits and the share of the calls that cost so much */
export function weighted(limiter: LimiterRule, ...costs: readonly (readonly [number, number])[]): LimiterRule {
  return { kind: 'weighted', limiter, costs: costs.map(([permits, share]) => ({ permits, share })), seed: 1 };
}
