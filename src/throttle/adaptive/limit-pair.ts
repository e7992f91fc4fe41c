/**
 * One limit, or two that hold at once (pure). No counter explains the refusals of two limits: those that come long before a trusted limit
 * is used up are another one's, and get a counter of their own. limit-choice.ts chooses each, limit-in-use.ts keeps to each.
 */
import type { Closure } from './closure-history.ts';
import type { Counter } from './counter-bank.ts';
import { chooseLimit, type ChosenLimit, LEAST_LEVEL } from './limit-choice.ts';
import type { LimitInUse } from './limit-in-use.ts';

/** Share of its capacity from which on a limit explains a refusal. */
const EXPLAINED_SHARE = 0.7;
const MIN_EXPLAINED = 3;
/** With more of the others for each explained refusal the limit has changed. */
const MAX_OTHERS = 2;
/** A second limit that is slower needs as many refusals: it costs more if it is wrong. */
const MIN_OF_SLOWER = 2;

export interface ChosenPair {
  readonly first: ChosenLimit;
  /** Explains `others`; undefined while one limit is enough. */
  readonly second: ChosenLimit | undefined;
  /** Closures that the divider does not explain. */
  readonly others: readonly Closure[];
  /** The limit by which closures are divided; undefined while one limit has to explain all. */
  readonly divider: ChosenLimit | undefined;
}

/**
 * @param trusted a limit that has explained enough refusals to be kept beside another one
 * @param roundTripMs of accepted calls
 * @returns undefined when no counter explains the refusals
 */
export function choosePair(
  counters: readonly Counter[],
  closures: readonly Closure[],
  trusted: ChosenLimit | undefined,
  roundTripMs: number,
): ChosenPair | undefined {
  const { others, divider } = divide(closures, trusted);
  const explained = closures.filter((closure) => !others.includes(closure));
  const first = chooseLimit(counters, explained, roundTripMs);
  const second = chooseLimit(counters, others, roundTripMs);
  if (first === undefined) return undefined;
  const isTooEarly = second !== undefined && second.rate < first.rate && others.length < MIN_OF_SLOWER;
  return { first, second: isTooEarly ? undefined : second, others, divider };
}

function divide(
  closures: readonly Closure[],
  divider: ChosenLimit | undefined,
): Pick<ChosenPair, 'others' | 'divider'> {
  if (divider === undefined) return { others: [], divider };
  const { index, counter, capacity } = divider;
  // Calls in flight are counted exactly.
  const share = counter.kind === 'concurrency' ? 1 : EXPLAINED_SHARE;
  // Jitter changes small counts by one; a counter that held nothing explains nothing.
  const least = Math.max(LEAST_LEVEL, share * capacity - 1);
  const others = closures.filter(({ refused }) => (refused[index] ?? 0) < least);
  const explained = closures.length - others.length;
  if (explained < MIN_EXPLAINED || others.length > MAX_OTHERS * explained) return { others: [], divider: undefined };
  return { others, divider };
}

/** The chosen limits as they are kept to: both must allow a call, and only the slower one is probed. */
export class LimitPair {
  readonly chosen: ChosenPair;
  /** The slower one's. */
  readonly choice: ChosenLimit;
  /** Permits per second that are used; Infinity for a limit in flight. */
  readonly rate: number;
  readonly slower: LimitInUse;
  readonly faster: LimitInUse | undefined;
  /** The one on calls in flight. */
  readonly inFlight: ChosenLimit | undefined;

  constructor(chosen: ChosenPair, use: (choice: ChosenLimit) => LimitInUse) {
    const { first, second } = chosen;
    const isSlower = second !== undefined && second.rate < first.rate;
    this.chosen = chosen;
    this.choice = isSlower ? second : first;
    this.slower = use(this.choice);
    this.faster = second && use(isSlower ? first : second);
    this.rate = Math.min(this.slower.rate, this.faster?.rate ?? Infinity);
    this.inFlight = [first, second].find((choice) => choice?.counter.kind === 'concurrency');
  }

  /**
   * Permits that may be saved up, at least 1.
   * @param windowShare share of a window's limit
   */
  burst(windowShare: number): number {
    return Math.min(this.slower.burst(windowShare), this.faster?.burst(windowShare) ?? Infinity);
  }

  recordGrant(now: number): void {
    this.slower.recordGrant(now);
    this.faster?.recordGrant(now);
  }
}
