/**
 * The figures of one run, and their means over several. Every definition is a sentence in README.md.
 */
import type { LimiterModel } from './limiter-model.ts';
import type { LimiterRule } from './limiters.ts';
import type { RunRecord } from './world.ts';

/** Shares are between 0 and 1, durations in milliseconds; undefined where a figure has no meaning. */
export interface Figures {
  readonly goodput: number;
  readonly refusedShare: number;
  readonly waitP50Ms: number;
  readonly waitP99Ms: number;
  /** Infinity when it never did; undefined for a run of fewer than two slices. */
  readonly convergedMs: number | undefined;
  readonly stepUpMs: number | undefined;
  readonly stepDownMs: number | undefined;
  readonly jain: number;
  readonly failedShare: number;
  readonly attempts: number;
}

export function measure(record: RunRecord): Figures {
  const { acceptedAt, refusedAt, arrivals, conditions, possible, servedBy, wasted } = record;
  const { durationMs } = conditions;
  const accepted = countUntil(acceptedAt, durationMs);
  const refused = countUntil(refusedAt, durationMs);
  const waits = Float64Array.from(record.waitsMs).sort();
  const failed = arrivals.length - servedBy.reduce((sum, served) => sum + served, 0);
  return {
    goodput: possible === 0 ? 1 : (accepted - wasted) / possible,
    refusedShare: accepted + refused === 0 ? 0 : refused / (accepted + refused),
    waitP50Ms: percentile(waits, 0.5),
    waitP99Ms: percentile(waits, 0.99),
    convergedMs: findConvergence(record),
    ...findSteps(record),
    jain: jainIndex(servedBy),
    failedShare: arrivals.length === 0 ? 0 : failed / arrivals.length,
    attempts: accepted + refused,
  };
}

/** Jain's fairness index: 1 for equal shares, 1/n when one has everything. */
export function jainIndex(shares: readonly number[]): number {
  const sum = shares.reduce((total, share) => total + share, 0);
  const squares = shares.reduce((total, share) => total + share * share, 0);
  return squares === 0 ? 1 : (sum * sum) / (shares.length * squares);
}

const ENOUGH = 0.9;
const FEW_REFUSALS = 0.05;
const GRID_MS = 1000;
const SHORTEST_SLICE_MS = 10_000;
const SLICE_CALLS = 20;

/**
 * The first second from which on, up to every later one at least a slice away, ≥ 0.9 of the possible calls were accepted and
 * ≤ 5 % of the attempts refused.
 */
function findConvergence(record: RunRecord): number | undefined {
  const { limiter, conditions, arrivals, acceptedAt, refusedAt } = record;
  const { model } = limiter;
  const sliceMs = Math.max(SHORTEST_SLICE_MS, model.windowMs, SLICE_CALLS / model.rateAt(0));
  const steps = Math.floor(conditions.durationMs / GRID_MS);
  const offered = cumulate(arrivals, steps);
  const accepted = cumulate(acceptedAt, steps);
  const refused = cumulate(refusedAt, steps);
  const capacity = Float64Array.from({ length: steps + 1 }, (_, step) => model.capacity(0, step * GRID_MS));
  const slice = Math.ceil(sliceMs / GRID_MS);
  if (2 * slice > steps) return undefined;
  const isGood = (from: number, to: number): boolean => {
    const got = diff(accepted, from, to);
    const most = Math.min(diff(capacity, from, to), diff(offered, from, to));
    const turnedAway = diff(refused, from, to);
    return got >= ENOUGH * most && turnedAway <= FEW_REFUSALS * (got + turnedAway);
  };
  for (let from = 0; from + slice <= steps; from++) {
    let to = from + slice;
    while (to <= steps && isGood(from, to)) to++;
    if (to > steps) return from * GRID_MS;
  }
  return Infinity;
}

/** Calls up to each second of the run. */
function cumulate(instants: readonly number[], steps: number): Float64Array {
  const sums = new Float64Array(steps + 1);
  let index = 0;
  for (let step = 0; step <= steps; step++) {
    while ((instants[index] ?? Infinity) < step * GRID_MS) index++;
    sums[step] = index;
  }
  return sums;
}

function diff(sums: Float64Array, from: number, to: number): number {
  return (sums[to] ?? 0) - (sums[from] ?? 0);
}

/** A look may contain only twenty calls, one of them a probe. */
const STEP_REFUSALS = 0.1;
const MIN_STEP_CHECK_MS = 5_000;
const STEP_CHECK_GRID_MS = 250;

/** The mean time to find the steps up, and that for the steps down; a step not found counts as long as it lasted. */
function findSteps(record: RunRecord): Pick<Figures, 'stepUpMs' | 'stepDownMs'> {
  const { conditions, limiter } = record;
  const starts = stepsOf(conditions.limiter);
  const ups: number[] = [];
  const downs: number[] = [];
  for (const [index, fromMs] of starts.entries()) {
    if (index === 0 || fromMs >= conditions.durationMs) continue;
    const untilMs = Math.min(starts[index + 1] ?? Infinity, conditions.durationMs);
    const isUp = limiter.model.rateAt(fromMs) > limiter.model.rateAt(fromMs - 1);
    (isUp ? ups : downs).push(findStep(record, fromMs, untilMs));
  }
  return { stepUpMs: meanOrNothing(ups), stepDownMs: meanOrNothing(downs) };
}

/** From the step to the end of the first look back in which the new limit is used to 0.9 and ≤ 10 % are refused, and the next as well. */
function findStep(record: RunRecord, fromMs: number, untilMs: number): number {
  const { acceptedAt, refusedAt, arrivals, limiter, conditions } = record;
  const lookMs = Math.max(MIN_STEP_CHECK_MS, windowAt(conditions.limiter, limiter.model, fromMs));
  const isGood = (from: number): boolean => {
    const to = from + lookMs;
    const got = countBetween(acceptedAt, from, to);
    const refused = countBetween(refusedAt, from, to);
    const most = Math.min(limiter.capacity(from, to), countBetween(arrivals, from, to));
    return got >= ENOUGH * most && refused <= STEP_REFUSALS * (got + refused);
  };
  for (let from = fromMs; from + 2 * lookMs <= untilMs; from += STEP_CHECK_GRID_MS)
    if (isGood(from) && isGood(from + lookMs)) return from + lookMs - fromMs;
  return untilMs - fromMs;
}

function stepsOf(rule: LimiterRule): readonly number[] {
  return rule.kind === 'steps' ? rule.steps.map((step) => step.fromMs) : [];
}

function windowAt(rule: LimiterRule, model: LimiterModel, at: number): number {
  const inner = rule.kind === 'steps' ? rule.steps.findLast((step) => step.fromMs <= at)?.limiter : undefined;
  return inner !== undefined && 'windowMs' in inner ? inner.windowMs : model.windowMs;
}

function countUntil(instants: readonly number[], untilMs: number): number {
  let low = 0;
  let high = instants.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((instants[middle] ?? 0) < untilMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

function countBetween(instants: readonly number[], fromMs: number, toMs: number): number {
  return countUntil(instants, toMs) - countUntil(instants, fromMs);
}

function percentile(sorted: Float64Array, share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}

function meanOrNothing(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Means over the runs; of the time to converge the median, since Infinity is one of its values. */
export function summarize(runs: readonly Figures[]): Figures {
  const mean = (pick: (figures: Figures) => number): number =>
    runs.reduce((sum, figures) => sum + pick(figures), 0) / Math.max(1, runs.length);
  const converged = runs.map((figures) => figures.convergedMs).filter((value) => value !== undefined);
  return {
    goodput: mean((figures) => figures.goodput),
    refusedShare: mean((figures) => figures.refusedShare),
    waitP50Ms: mean((figures) => figures.waitP50Ms),
    waitP99Ms: mean((figures) => figures.waitP99Ms),
    convergedMs: converged.length === 0 ? undefined : percentile(Float64Array.from(converged).sort(), 0.5),
    stepUpMs: meanOrNothing(runs.map((figures) => figures.stepUpMs).filter((value) => value !== undefined)),
    stepDownMs: meanOrNothing(runs.map((figures) => figures.stepDownMs).filter((value) => value !== undefined)),
    jain: mean((figures) => figures.jain),
    failedShare: mean((figures) => figures.failedShare),
    attempts: mean((figures) => figures.attempts),
  };
}
