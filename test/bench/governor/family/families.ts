/**
 * Hidden limits drawn at random, by families, so that the governor is measured on limits that its authors did not choose. Lengths, numbers
 * and rates are log-uniform, and no length is near a usual one. The draws depend on the seed below and on a text that a run may add to it.
 */
import { createHash } from 'node:crypto';
import type { Random } from '../../../../src/platform/clock.ts';
import type { LimiterRule } from '../limiters.ts';
import type { LoadSpec } from '../load.ts';
import { createRandom } from '../seeded.ts';
import type { RunConditions } from '../world.ts';

/** What must be known of a run, besides its record, to measure it after learning. */
export interface Measuring {
  readonly seed: number;
  /** The time that the limiter looks back, milliseconds: its longest window, or the time in which its bucket fills. */
  readonly memoryMs: number;
  /** Learning ends here at the latest, milliseconds. */
  readonly learnedByMs: number;
}

/** What is measured of one drawn limit. */
export interface Member extends Measuring {
  readonly family: Family;
  readonly index: number;
  /** In one line: the limit, then the load. */
  readonly title: string;
  readonly conditions: RunConditions;
  /** Calls per second that are accepted on average when the limit is used as far as the load allows. */
  readonly expectedRate: number;
}

export const FAMILIES = [
  'sliding',
  'clock',
  'first-call',
  'sliding-counter',
  'bucket',
  'gcra',
  'bulk-refill',
  'concurrency',
  'two-at-once',
  'tenant',
  'noise',
  'refusals-count',
  'penalty',
  'slow-refusals',
  'steps',
] as const;
export type Family = (typeof FAMILIES)[number];

/** Families of one limit that stays, which nothing else disturbs. */
export const PLAIN_FAMILIES: readonly Family[] = [
  'sliding',
  'clock',
  'first-call',
  'sliding-counter',
  'bucket',
  'gcra',
  'bulk-refill',
];

/** `open` members may be looked at while the governor is changed; `hidden` ones once, at the end. */
export type Half = 'open' | 'hidden';

export function halfOf(index: number): Half {
  return index % 2 === 0 ? 'open' : 'hidden';
}

/** The hash of this file when the first figures were published: kept, so that later figures are of the same limits. */
const PUBLISHED_SEED = '072e40b4536c8d10547a89ff65688640100f1b89b638f97e519d7af4301efd7d';

/**
 * @param index from 0: the families take turns, and the halves change after each round
 * @param seedText mixed into the seed of the draws: another text draws other limits. Default: the published ones
 */
export function drawMember(index: number, seedText = ''): Member {
  const round = Math.floor(index / FAMILIES.length);
  const family = FAMILIES[index % FAMILIES.length] ?? 'sliding';
  const seed = Number.parseInt(
    createHash('sha256').update(`${PUBLISHED_SEED}${seedText} ${family} ${round}`).digest('hex').slice(0, 8),
    16,
  );
  const random = createRandom(seed, 'draw');
  const draw = DRAWS[family](random);
  const load = drawLoad(draw.rate, random);
  const used = isNumber(load) ? Math.min(1, load) : 1;
  const expectedRate = draw.rate * used;
  const learnedByMs = latestLearningMs(draw.memoryMs, expectedRate);
  const durationMs = learnedByMs + measuredMs(draw.memoryMs, expectedRate);
  const { title, limiter, ...surroundings } = draw;
  return {
    family,
    index: round,
    seed,
    title: `${title}, load ${describeLoad(load)}`,
    memoryMs: draw.memoryMs,
    learnedByMs,
    expectedRate,
    conditions: {
      limiter: family === 'steps' ? drawSteps(limiter, durationMs, random) : limiter,
      hint: 'none',
      load,
      replicas: 1,
      durationMs: Math.ceil(durationMs),
      startsMs: Math.floor(random() * DAY_MS),
      latencyMs: { base: round2(between(5, 60, random)), jitter: round2(between(2, 40, random)) },
      serviceMs: surroundings.serviceMs ?? { base: round2(between(3, 200, random)), jitter: 5 },
      ...(surroundings.refusalMs && { refusalMs: surroundings.refusalMs }),
      ...(surroundings.spuriousShare && { spuriousShare: surroundings.spuriousShare }),
    },
  };
}

/** Learning takes at most this long, milliseconds: 120 s, 3 windows, 400 accepted calls. What comes later is measured. */
export function latestLearningMs(memoryMs: number, rate: number): number {
  return LEARNING_MARGIN * Math.max(MIN_LEARNING_MS, LEARNING_WINDOWS * memoryMs, (LEARNING_CALLS * 1000) / rate);
}

export const MIN_LEARNING_MS = 120_000;
export const LEARNING_WINDOWS = 3;
export const LEARNING_CALLS = 400;
const MEASURED_WINDOWS = 15;
const MEASURED_CALLS = 2000;
/** A client that learns slowly has its 400 calls later. */
const LEARNING_MARGIN = 1.25;
const MEASURING_MARGIN = 1.1;
const DAY_MS = 86_400_000;

export function measuredMs(memoryMs: number, rate: number, windows = MEASURED_WINDOWS): number {
  return MEASURING_MARGIN * Math.max(windows * memoryMs, (MEASURED_CALLS * 1000) / rate);
}

interface Draw extends Pick<RunConditions, 'limiter'> {
  readonly title: string;
  /** Calls per second in the long run. */
  readonly rate: number;
  readonly memoryMs: number;
  readonly serviceMs?: RunConditions['serviceMs'];
  readonly refusalMs?: NonNullable<RunConditions['refusalMs']>;
  readonly spuriousShare?: number;
}

type WindowKind = 'sliding-log' | 'fixed-window' | 'first-call-window' | 'sliding-counter';

const DRAWS: Readonly<Record<Family, (random: Random) => Draw>> = {
  sliding: (random) => drawWindow('sliding-log', random),
  clock: (random) => drawWindow('fixed-window', random),
  'first-call': (random) => drawWindow('first-call-window', random),
  'sliding-counter': (random) => drawWindow('sliding-counter', random),
  bucket: (random) => drawBucket('token-bucket', random),
  gcra: (random) => drawBucket('gcra', random),
  'bulk-refill': drawBulkRefill,
  concurrency: drawConcurrency,
  'two-at-once': drawTwo,
  tenant(random) {
    const draw = drawPlain(random);
    const share = round2(between(0.15, 0.45, random));
    const limiter: LimiterRule = { kind: 'tenant', limiter: draw.limiter, share, seed: Math.floor(random() * 2 ** 31) };
    return { ...draw, limiter, rate: draw.rate * (1 - share), title: `${draw.title}, another client with ${share}` };
  },
  noise(random) {
    const draw = drawPlain(random);
    const spuriousShare = Number(between(0.002, 0.02, random).toFixed(4));
    return { ...draw, spuriousShare, title: `${draw.title}, ${spuriousShare} refused at random` };
  },
  'refusals-count'(random) {
    const draw = drawWindow(pick(['sliding-log', 'fixed-window', 'sliding-counter'], random), random, true);
    return { ...draw, title: `${draw.title}, refusals count` };
  },
  penalty(random) {
    const draw = drawPlain(random);
    const banMs = Math.round(between(1000, 20_000, random));
    const limiter: LimiterRule = { kind: 'ban', limiter: draw.limiter, refusals: 1, withinMs: 1, banMs };
    return { ...draw, limiter, title: `${draw.title}, each refusal closes it for ${banMs / 1000} s` };
  },
  'slow-refusals'(random) {
    const draw = drawPlain(random);
    const base = Math.round(between(300, 2000, random));
    return { ...draw, refusalMs: { base, jitter: base / 4 }, title: `${draw.title}, refusals take ${base} ms` };
  },
  steps: drawPlain,
};

/** Log-uniform. */
function between(low: number, high: number, random: Random): number {
  return low * (high / low) ** random();
}

function pick<T>(choices: readonly [T, ...T[]], random: Random): T {
  return choices[Math.floor(random() * choices.length)] ?? choices[0];
}

/** Lengths that a learner may have on a list of its own. */
const USUAL_SECONDS = [1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 90, 120, 300, 600, 900];
const MIN_DISTANCE = 0.04;
const MIN_RATE = 0.1;
const MAX_RATE = 50;

function drawWindowMs(random: Random): number {
  for (;;) {
    const seconds = between(0.7, 600, random);
    if (USUAL_SECONDS.every((usual) => Math.abs(seconds / usual - 1) > MIN_DISTANCE)) return Math.round(seconds * 1000);
  }
}

function drawWindow(kind: WindowKind, random: Random, countsRefused = false): Draw {
  for (;;) {
    const calls = Math.round(between(5, 2000, random));
    const windowMs = drawWindowMs(random);
    const rate = (calls * 1000) / windowMs;
    if (rate < MIN_RATE || rate > MAX_RATE) continue;
    const phaseMs = Math.floor(random() * windowMs);
    const quota = { calls, windowMs, countsRefused };
    const limiter: LimiterRule =
      kind === 'sliding-log' || kind === 'first-call-window' ? { kind, ...quota } : { kind, ...quota, phaseMs };
    return { title: `${kind} ${calls} per ${windowMs / 1000} s`, limiter, rate, memoryMs: windowMs };
  }
}

function drawBucket(kind: 'token-bucket' | 'gcra', random: Random): Draw {
  const perSecond = Number(between(0.2, MAX_RATE, random).toPrecision(3));
  const burst = Math.round(between(3, 120, random));
  const title = `${kind} ${perSecond}/s, burst ${burst}`;
  return { title, limiter: { kind, perSecond, burst }, rate: perSecond, memoryMs: (burst * 1000) / perSecond };
}

function drawBulkRefill(random: Random): Draw {
  for (;;) {
    const calls = Math.round(between(3, 500, random));
    const everyMs = drawWindowMs(random);
    const rate = (calls * 1000) / everyMs;
    if (rate < MIN_RATE || rate > MAX_RATE) continue;
    const burst = Math.round(calls * between(1, 4, random));
    const limiter: LimiterRule = {
      kind: 'bulk-refill',
      calls,
      everyMs,
      burst,
      phaseMs: Math.floor(random() * everyMs),
    };
    const title = `refill of ${calls} each ${everyMs / 1000} s, holds ${burst}`;
    return { title, limiter, rate, memoryMs: (everyMs * burst) / calls };
  }
}

function drawConcurrency(random: Random): Draw {
  const calls = Math.round(between(2, 40, random));
  const base = Math.round(between(200, 3000, random));
  const serviceMs = { base, jitter: base / 2 };
  const rate = (calls * 1000) / (base + base / 4);
  const title = `${calls} in flight, ${base} to ${base * 1.5} ms each`;
  return { title, limiter: { kind: 'concurrency', calls }, rate, memoryMs: base * 1.5, serviceMs };
}

const PLAIN_DRAWS: readonly [(random: Random) => Draw, ...((random: Random) => Draw)[]] = [
  (random) => drawWindow('sliding-log', random),
  (random) => drawWindow('fixed-window', random),
  (random) => drawBucket('token-bucket', random),
  (random) => drawBucket('gcra', random),
];

function drawPlain(random: Random): Draw {
  return pick(PLAIN_DRAWS, random)(random);
}

/** A short limit and a longer one, which is reached although the short one is kept. */
function drawTwo(random: Random): Draw {
  const short = random() < 0.5 ? drawBucket('token-bucket', random) : drawShortWindow(random);
  const rate = short.rate * between(0.3, 0.9, random);
  const windowMs = Math.round(Math.min(900_000, short.memoryMs * between(4, 60, random)));
  const calls = Math.max(5, Math.round((rate * windowMs) / 1000));
  const kind = pick<'sliding-log' | 'fixed-window'>(['sliding-log', 'fixed-window'], random);
  const limiter: LimiterRule = { kind: 'all-of', limiters: [short.limiter, { kind, calls, windowMs }] };
  const title = `${short.title} and ${kind} ${calls} per ${windowMs / 1000} s`;
  return { title, limiter, rate: Math.min(short.rate, (calls * 1000) / windowMs), memoryMs: windowMs };
}

function drawShortWindow(random: Random): Draw {
  for (;;) {
    const draw = drawWindow(pick(['sliding-log', 'fixed-window'], random), random);
    if (draw.memoryMs <= 30_000) return draw;
  }
}

/** Two changes of the limit after the time of learning, each by a factor of 1.3 to 3. */
function drawSteps(limiter: LimiterRule, durationMs: number, random: Random): LimiterRule {
  const steps = [0, 0.4, 0.7].map((share) => ({ fromMs: Math.round(durationMs * share), limiter }));
  let current = limiter;
  const changed = steps.map((step, at) => {
    if (at > 0) current = scaleRule(current, between(1.3, 3, random) ** (random() < 0.5 ? -1 : 1));
    return { ...step, limiter: current };
  });
  return { kind: 'steps', steps: changed };
}

function scaleRule(rule: LimiterRule, factor: number): LimiterRule {
  if ('perSecond' in rule) return { ...rule, perSecond: rule.perSecond * factor };
  if ('windowMs' in rule) return { ...rule, calls: Math.max(2, Math.round(rule.calls * factor)) };
  return rule;
}

/** Calls that wait for a permit at once must not wait longer than their callers. */
const CLOSED_LOOP_WAIT_S = 10;

function drawLoad(rate: number, random: Random): LoadSpec {
  const choice = pick(['below', 'above', 'on-off', 'closed'], random);
  if (choice === 'below') return 0.8;
  if (choice === 'above') return 1.5;
  if (choice === 'on-off') return 'on-off';
  const clients = Math.min(Math.round(between(4, 60, random)), Math.max(2, Math.floor(rate * CLOSED_LOOP_WAIT_S)));
  return { clients, thinkMs: 100 };
}

function describeLoad(load: LoadSpec): string {
  if (typeof load === 'object' && 'clients' in load) return `of ${load.clients} clients`;
  return typeof load === 'string' ? load : JSON.stringify(load);
}

function isNumber(load: LoadSpec): load is number {
  return typeof load === 'number';
}

function round2(value: number): number {
  return Math.round(value * 100) / 100;
}
