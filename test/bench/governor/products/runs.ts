/** The runs of a product: three loads and its seeds, each with the time of learning and the time that is measured (pure). */
import { createHash } from 'node:crypto';
import { latestLearningMs, measuredMs, type Measuring } from '../family/families.ts';
import { create, type LimiterRule } from '../limiters.ts';
import type { LoadSpec } from '../load.ts';
import { createRandom } from '../seeded.ts';
import type { RunConditions, Spread } from '../world.ts';
import type { Product } from './products.ts';

/** Each product is played with each of them. */
export const PRODUCT_LOADS = ['1.5×', 'on-off', '20 clients'] as const;
export type ProductLoad = (typeof PRODUCT_LOADS)[number];

/** One run, and what its measuring needs. */
export interface ProductRun extends Measuring {
  readonly conditions: RunConditions;
}

const DAY_MS = 86_400_000;
const LATENCY: Spread = { base: 20, jitter: 40 };
const SERVICE: Spread = { base: 30, jitter: 10 };

/** @param seed another seed has other arrivals, latencies and time of day */
export function planRun({ name, limiter, serviceMs = SERVICE }: Product, load: ProductLoad, seed: number): ProductRun {
  const text = `${name} ${load} ${seed}`;
  const runSeed = Number.parseInt(createHash('sha256').update(text).digest('hex').slice(0, 8), 16);
  const meanServiceMs = serviceMs.base + serviceMs.jitter / 2;
  const memoryMs = memoryOf(limiter, meanServiceMs);
  const rate = create({ limiter, meanServiceMs }).model.rateAt(0) * 1000;
  const learnedByMs = latestLearningMs(memoryMs, rate);
  const durationMs = Math.ceil(learnedByMs + measuredMs(memoryMs, rate, windowsToMeasure(memoryMs, rate)));
  return {
    seed: runSeed,
    memoryMs,
    learnedByMs,
    conditions: {
      limiter,
      hint: 'none',
      load: loadOf(load, rate),
      replicas: 1,
      durationMs,
      startsMs: Math.floor(createRandom(runSeed, 'starts')() * DAY_MS),
      latencyMs: LATENCY,
      serviceMs,
    },
  };
}

const CLIENTS = 20;
const THINK_MS = 100;
/** Of the time between two calls of a slow limit, whose queue rejects most calls at once: without it a run would be millions of calls. */
const THINK_SHARE = 0.1;

/** @param rate calls per second */
function loadOf(load: ProductLoad, rate: number): LoadSpec {
  if (load === '1.5×') return 1.5;
  if (load === 'on-off') return load;
  return { clients: CLIENTS, thinkMs: Math.max(THINK_MS, (THINK_SHARE * 1000) / rate) };
}

const MOST_WINDOWS = 15;
const LEAST_WINDOWS = 4;
const ENOUGH_CALLS = 15_000;

/** Long windows of many calls need fewer, so that the benchmark takes minutes. */
function windowsToMeasure(memoryMs: number, rate: number): number {
  const callsPerWindow = Math.max(1, (rate * memoryMs) / 1000);
  return Math.min(MOST_WINDOWS, Math.max(LEAST_WINDOWS, ENOUGH_CALLS / callsPerWindow));
}

/** The time that a limiter looks back, milliseconds. */
function memoryOf(rule: LimiterRule, serviceMs: number): number {
  switch (rule.kind) {
    case 'token-bucket':
    case 'gcra':
      return (rule.burst * 1000) / rule.perSecond;
    case 'bulk-refill':
      return (rule.everyMs * rule.burst) / rule.calls;
    case 'concurrency':
      return serviceMs;
    case 'all-of':
      return Math.max(...rule.limiters.map((inner) => memoryOf(inner, serviceMs)));
    case 'steps':
      return Math.max(...rule.steps.map(({ limiter }) => memoryOf(limiter, serviceMs)));
    case 'tenant':
    case 'weighted':
    case 'nodes':
    case 'ban':
      return memoryOf(rule.limiter, serviceMs);
    default:
      return rule.windowMs;
  }
}
