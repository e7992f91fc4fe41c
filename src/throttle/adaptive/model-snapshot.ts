/**
 * The learned limit as JSON, for the state file, the fleet and /status, and its restoration in a new process (pure). A snapshot comes
 * from a file, so parsing trusts nothing in it.
 */
import type { LearnedLimit } from '../throttle.ts';
import type { ModelSelector } from './model-selector.ts';
import { BucketModel } from './bucket-model.ts';
import { LIMITER_KINDS, type LimiterKind, type LimiterModel } from './limiter-model.ts';
import { ConcurrencyModel } from './concurrency-model.ts';
import { WindowModel } from './window-model.ts';

/** The members are part of the state file's format. */
export interface ModelSnapshot {
  readonly kind: LimiterKind;
  readonly windowMs: number;
  readonly limit: number;
  /** Permits per second. */
  readonly rate: number;
  /** The model's safety factor. */
  readonly margin: number;
  /** Calls in the window at the time of the snapshot. */
  readonly used: number;
}

const MAX_RATE = 1e6;
/** More than the call log holds. */
const MAX_USED = 1e5;

/**
 * The learned limit for /status and the metrics.
 * @param rate permits per second in use
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
  const used = model instanceof WindowModel ? model.countUsed(now) : 0;
  return { kind, windowMs, limit, rate, margin: safetyFactor, used };
}

/** Undefined when `value` is not a snapshot. */
export function parseModelSnapshot(value: unknown): ModelSnapshot | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const read = value as Readonly<Record<string, unknown>>;
  const kind = LIMITER_KINDS.find((known) => known === read.kind);
  const { windowMs, limit, rate, margin, used } = read;
  if (kind === undefined || !isWithin(windowMs, 0, 1e9) || !isWithin(limit, 1, 1e9)) return undefined;
  if (!isWithin(rate, 1e-6, MAX_RATE) || !isWithin(margin, 0.5, 1) || !isWithin(used, 0, MAX_USED)) return undefined;
  return { kind, windowMs, limit, rate, margin, used };
}

/**
 * Selects the model of this kind and window with the learned values. The start of a window is learned again.
 * @param ageMs time since the snapshot
 * @returns undefined when no such model exists
 */
export function restoreModel(
  selector: ModelSelector,
  { kind, windowMs, limit, rate, margin, used }: ModelSnapshot,
  now: number,
  ageMs: number,
): LimiterModel | undefined {
  const model = selector.models.find(
    (one) => one.kind === kind && (!(one instanceof WindowModel) || one.windowMs === windowMs),
  );
  if (model instanceof WindowModel) model.restore(Math.floor(limit), ageMs < windowMs ? used : 0, now);
  else if (model instanceof BucketModel) model.restore(rate, limit);
  else if (model instanceof ConcurrencyModel) model.restore(limit);
  else return undefined;
  model.safetyFactor = margin;
  selector.select(model, now);
  return model;
}

function isWithin(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && value >= least && value <= most;
}
