/**
 * What is worth keeping of a believed limit when the process ends, and how it is taken up again (pure). It comes from a file, so
 * nothing about it is taken for granted. Calls that were made shortly before still count.
 */
import type { LearnedLimit } from '../throttle.ts';
import type { ModelSelector } from './model-selector.ts';
import { BucketModel } from './bucket-model.ts';
import type { LimiterKind, LimiterModel } from './limiter-model.ts';
import { ConcurrencyModel } from './concurrency-model.ts';
import { WindowModel } from './window-model.ts';

/** A limit as JSON. */
export interface ModelSnapshot {
  readonly kind: LimiterKind;
  readonly windowMs: number;
  readonly limit: number;
  /** Permits per second. */
  readonly rate: number;
  /** Share of the rate that was used. */
  readonly margin: number;
  /** Calls that counted when this was taken. */
  readonly used: number;
}

const KINDS: readonly LimiterKind[] = ['sliding-window', 'fixed-window', 'first-call-window', 'bucket', 'concurrency'];
const MAX_RATE = 1e6;
/** More calls than this are not remembered anyway. */
const MAX_USED = 1e5;

/**
 * For people.
 * @param rate permits per second that are used
 * @param since epoch milliseconds
 */
export function describeLimit(model: LimiterModel | undefined, rate: number, since: number): LearnedLimit {
  if (model === undefined) return { kind: 'unknown', rate, confidence: 'none', since };
  const { kind, limit, windowMs, isTrusted } = model;
  const window = model instanceof WindowModel ? { windowMs } : {};
  return { kind, rate, limit, ...window, confidence: isTrusted ? 'high' : 'low', since };
}

/** @param now monotonic */
export function createModelSnapshot(model: LimiterModel, now: number): ModelSnapshot {
  const { kind, windowMs, limit, safetyFactor } = model;
  const rate = Math.min(MAX_RATE, model.rate);
  return {
    kind,
    windowMs,
    limit,
    rate,
    margin: safetyFactor,
    used: model instanceof WindowModel ? model.countUsed(now) : 0,
  };
}

/** Undefined for whatever is not a snapshot. */
export function parseModelSnapshot(value: unknown): ModelSnapshot | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const read = value as Readonly<Record<string, unknown>>;
  const kind = KINDS.find((known) => known === read.kind);
  const { windowMs, limit, rate, margin, used } = read;
  if (kind === undefined || !isWithin(windowMs, 0, 1e9) || !isWithin(limit, 1, 1e9)) return undefined;
  if (!isWithin(rate, 1e-6, MAX_RATE) || !isWithin(margin, 0.5, 1) || !isWithin(used, 0, MAX_USED)) return undefined;
  return { kind, windowMs, limit, rate, margin, used };
}

/**
 * The idea that fits, holding what was learned; undefined when there is none. When windows begin is found out anew.
 * @param ageMs since the snapshot
 */
export function restoreModel(
  beliefs: ModelSelector,
  { kind, windowMs, limit, rate, margin, used }: ModelSnapshot,
  now: number,
  ageMs: number,
): LimiterModel | undefined {
  const model = beliefs.models.find(
    (one) => one.kind === kind && (!(one instanceof WindowModel) || one.windowMs === windowMs),
  );
  if (model instanceof WindowModel) model.restore(Math.floor(limit), ageMs < windowMs ? used : 0, now);
  else if (model instanceof BucketModel) model.restore(rate, limit);
  else if (model instanceof ConcurrencyModel) model.restore(limit);
  else return undefined;
  model.safetyFactor = margin;
  beliefs.select(model, now);
  return model;
}

function isWithin(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && value >= least && value <= most;
}
