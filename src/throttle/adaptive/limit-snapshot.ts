/**
 * The learned limit as JSON, for the state file, the fleet and /status, and its restoration in a new process (pure). A snapshot comes
 * from a file, so parsing trusts nothing in it.
 */
import type { LearnedLimit } from '../throttle.ts';
import type { Closure } from './closure-history.ts';
import { COUNTER_KINDS, type Counter, type CounterKind } from './counter-bank.ts';
import { type ChosenLimit, LEAST_LEVEL } from './limit-choice.ts';

/** The members are part of the state file's format. */
export interface LimitSnapshot {
  readonly kind: CounterKind;
  /** 0 for a limit without a window. */
  readonly windowMs: number;
  /** Calls per window, per burst or in flight. */
  readonly limit: number;
  /** Permits per second. */
  readonly rate: number;
  /** Share of the rate that is used. */
  readonly margin: number;
  /** Calls in the window at the time of the snapshot. */
  readonly used: number;
  /** How many of them came in the last tenth of the window, in the last two tenths, and so on to nine. Default: evenly spread. */
  readonly usedInTenths?: readonly number[] | undefined;
  /** A limit that holds as well. */
  readonly second?: LimitSnapshot | undefined;
}

const MAX_RATE = 1e6;
/** The longest that is counted. */
const LONGEST_WINDOW_MS = 86_400_000;
/** More than the call log holds. */
const MAX_USED = 1e5;
const TENTHS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
const KINDS: Readonly<Record<string, CounterKind>> = {
  window: 'window',
  bucket: 'bucket',
  concurrency: 'concurrency',
  // Earlier names.
  'sliding-window': 'window',
  'fixed-window': 'window',
  'first-call-window': 'window',
};
const DESCRIBED_KINDS: ReadonlySet<string> = new Set([...COUNTER_KINDS, 'unknown']);
/** In the year 5138: as an instant of any clock it is still a time that can be shown. */
const MAX_STORE_INSTANT_MS = 1e14;
/** A leak that differs by less is the same. */
const SAME_RATE_SHARE = 1.01;

/** @param since epoch milliseconds */
export function describeLimit(
  choice: ChosenLimit | undefined,
  rate: number,
  isConfident: boolean,
  since: number,
): LearnedLimit {
  if (choice === undefined) return { kind: 'unknown', rate, confidence: 'none', since };
  const { kind } = choice.counter;
  const window = choice.counter.kind === 'window' ? { windowMs: choice.counter.windowMs } : {};
  return { kind, rate, limit: limitOf(choice), ...window, confidence: isConfident ? 'high' : 'low', since };
}

/** @param countLast calls within the last milliseconds */
export function createLimitSnapshot(
  choice: ChosenLimit,
  margin: number,
  countLast: (ms: number) => number,
): LimitSnapshot {
  const { counter } = choice;
  const terms = { kind: counter.kind, limit: limitOf(choice), rate: Math.min(MAX_RATE, choice.rate), margin };
  if (counter.kind !== 'window') return { ...terms, windowMs: 0, used: 0 };
  const { windowMs } = counter;
  const usedInTenths = TENTHS.map((share) => countLast(windowMs * share));
  return { ...terms, windowMs, used: countLast(windowMs), usedInTenths };
}

/**
 * When the calls of a snapshot were made, as milliseconds before it, oldest first. Between two instants whose counts are known they are
 * evenly spread.
 */
export function* listCallAges(snapshot: LimitSnapshot): Generator<number> {
  const counts = [snapshot, ...(snapshot.second === undefined ? [] : [snapshot.second])]
    .flatMap(({ windowMs, used, usedInTenths = [] }) => [
      { ageMs: windowMs, used },
      ...usedInTenths.map((usedInTenth, index) => ({ ageMs: windowMs * (TENTHS[index] ?? 0), used: usedInTenth })),
    ])
    .sort((one, other) => other.ageMs - one.ageMs);
  for (const [index, { ageMs, used }] of counts.entries()) {
    const later = counts[index + 1] ?? { ageMs: 0, used: 0 };
    const calls = used - later.used;
    for (let call = 0.5; call < calls; call++) yield ageMs - ((ageMs - later.ageMs) * call) / calls;
  }
}

/** @param isFirst false: a second limit in it is not read */
export function parseLimitSnapshot(value: unknown, isFirst = true): LimitSnapshot | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const read = value as Readonly<Record<string, unknown>>;
  const kind = typeof read.kind === 'string' && Object.hasOwn(KINDS, read.kind) ? KINDS[read.kind] : undefined;
  const { windowMs, limit, rate, margin, used } = read;
  if (kind === undefined || !isWithin(windowMs, 0, LONGEST_WINDOW_MS) || !isWithin(limit, 1, 1e9)) return undefined;
  if (!isWithin(rate, 1e-6, MAX_RATE) || !isWithin(margin, 0.5, 1) || !isWithin(used, 0, MAX_USED)) return undefined;
  const usedInTenths = areUsedInTenths(read.usedInTenths, used) ? { usedInTenths: read.usedInTenths } : {};
  const second = isFirst ? parseLimitSnapshot(read.second, false) : undefined;
  return { kind, windowMs, limit, rate, margin, used, ...usedInTenths, ...(second && { second }) };
}

function areUsedInTenths(value: unknown, used: number): value is readonly number[] {
  if (!Array.isArray(value) || value.length !== TENTHS.length) return false;
  const counts: readonly unknown[] = value;
  return counts.every((count, index) => isWithin(count, index === 0 ? 0 : Number(counts[index - 1]), used));
}

/**
 * A learned limit that another replica has described, with `since` as an instant of the store; undefined when `value` is none. Its rate is
 * not read: the store has the one in force.
 */
export function parseLearnedLimit(value: unknown): Omit<LearnedLimit, 'rate'> | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { kind, limit, windowMs, confidence, since } = value as Readonly<Record<string, unknown>>;
  if (typeof kind !== 'string' || !DESCRIBED_KINDS.has(kind) || !isConfidence(confidence)) return undefined;
  if (!isWithin(since, 0, MAX_STORE_INSTANT_MS)) return undefined;
  if (limit !== undefined && !isWithin(limit, 0, 1e9)) return undefined;
  if (windowMs !== undefined && !isWithin(windowMs, 1, 1e9)) return undefined;
  return { kind, limit, windowMs, confidence, since };
}

/** A closure that only this limit explains. */
export function closureOf(counters: readonly Counter[], snapshot: LimitSnapshot): Closure {
  const refused = Float32Array.from(counters, (counter) => capacityOf(counter, snapshot));
  return { refused, accepted: new Float32Array(counters.length) };
}

function capacityOf(counter: Counter, { kind, windowMs, limit, rate }: LimitSnapshot): number {
  if (counter.kind !== kind) return 0;
  switch (counter.kind) {
    case 'window':
      return counter.windowMs < windowMs ? 0 : limit;
    case 'bucket':
      return counter.leakPerMs * 1000 > rate * SAME_RATE_SHARE ? 0 : Math.max(LEAST_LEVEL, limit - 1);
    case 'concurrency':
      return limit;
  }
}

function limitOf({ counter, capacity }: ChosenLimit): number {
  return counter.kind === 'bucket' ? Math.floor(capacity + 1) : capacity;
}

function isConfidence(value: unknown): value is LearnedLimit['confidence'] {
  return value === 'none' || value === 'low' || value === 'high';
}

function isWithin(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && value >= least && value <= most;
}
