/**
 * Chooses the counter that explains all kept refusals (pure). Its capacity is the lowest count at which a call was refused. The counter with
 * the highest rate is chosen, since a wrong choice then shows by its next refusal; among equals the one with the longest memory.
 * No counter explains the refusals of two limits: those that come long before a trusted limit is used up are another one's, and get a
 * counter of their own.
 */
import type { Closure } from './closure-history.ts';
import type { Counter } from './counter-bank.ts';

export interface ChosenLimit {
  /** Index in the bank. */
  readonly index: number;
  readonly counter: Counter;
  /** A call is refused when this many are counted before it. */
  readonly capacity: number;
  /** Calls per second in the long run. */
  readonly rate: number;
  /** In the newest closure a call was accepted above the capacity. */
  readonly isContradicted: boolean;
}

/** One limit, or two that hold at once. */
export interface ChosenPair {
  readonly main: ChosenLimit;
  /** Explains `unexplained`; undefined while one limit is enough. */
  readonly additional: ChosenLimit | undefined;
  /** Closures that the trusted limit does not explain. */
  readonly unexplained: readonly Closure[];
  /** A limit that has explained enough refusals to be kept beside another one; undefined while one limit has to explain all. */
  readonly trusted: ChosenLimit | undefined;
}

/** Share of the rate that a counter loses when in every closure a call was accepted above its capacity. */
const CONTRADICTION_WEIGHT = 0.5;
/** Scores that differ by less are equal. */
const EQUAL_SHARE = 0.995;
/** A bucket that held less than this was empty, and explains no refusal. */
export const LEAST_LEVEL = 0.0625;
/** A limit in flight needs this many closures, none of which contradicts it. */
export const MIN_CLOSURES_IN_FLIGHT = 3;
const MIN_IN_FLIGHT = 2;
/** Numbers in flight that differ by no more are the same. */
const SAME_COUNT_FACTOR = 1.1;
/** Before the first response; only a restored limit in flight is chosen then. */
const UNKNOWN_ROUND_TRIP_MS = 100;

/** Share of its capacity from which on a limit explains a refusal. */
const EXPLAINED_SHARE = 0.7;
const MIN_EXPLAINED = 3;
/** With more unexplained refusals for each explained one the limit has changed. */
const MAX_UNEXPLAINED = 2;
/** An additional limit that is slower needs as many refusals: it costs more if it is wrong. */
const MIN_OF_SLOWER = 2;

/**
 * @param roundTripMs of accepted calls
 * @returns undefined when no counter explains the refusals
 */
export function choosePair(
  counters: readonly Counter[],
  closures: readonly Closure[],
  trusted: ChosenLimit | undefined,
  roundTripMs: number,
): ChosenPair | undefined {
  const unexplained = trusted === undefined ? [] : listUnexplained(closures, trusted);
  if (unexplained === undefined) return choosePair(counters, closures, undefined, roundTripMs);
  const explained = closures.filter((closure) => !unexplained.includes(closure));
  const main = chooseLimit(counters, explained, roundTripMs);
  const additional = chooseLimit(counters, unexplained, roundTripMs);
  if (main === undefined) return undefined;
  const isTooEarly = additional !== undefined && additional.rate < main.rate && unexplained.length < MIN_OF_SLOWER;
  return { main, additional: isTooEarly ? undefined : additional, unexplained, trusted };
}

/** Undefined when the limit has changed: it explains too few. */
function listUnexplained(
  closures: readonly Closure[],
  { index, counter, capacity }: ChosenLimit,
): readonly Closure[] | undefined {
  // Calls in flight are counted exactly.
  const share = counter.kind === 'concurrency' ? 1 : EXPLAINED_SHARE;
  // Jitter changes small counts by one; a counter that held nothing explains nothing.
  const least = Math.max(LEAST_LEVEL, share * capacity - 1);
  const unexplained = closures.filter(({ refused }) => (refused[index] ?? 0) < least);
  const explainedCount = closures.length - unexplained.length;
  const hasChanged = explainedCount < MIN_EXPLAINED || unexplained.length > MAX_UNEXPLAINED * explainedCount;
  return hasChanged ? undefined : unexplained;
}

function chooseLimit(
  counters: readonly Counter[],
  closures: readonly Closure[],
  roundTripMs: number,
): ChosenLimit | undefined {
  const newest = closures.slice(-1);
  const candidates: { readonly choice: ChosenLimit; readonly score: number }[] = [];
  let highest = 0;
  for (const [index, counter] of counters.entries()) {
    const capacity = capacityOf(index, counter, closures);
    const rate = rateOf(counter, capacity, closures.length, roundTripMs);
    // A contradiction only lowers the score.
    if (rate < EQUAL_SHARE * highest || rate === 0) continue;
    const contradicted = countContradictions(index, counter, capacity, closures);
    if (counter.kind === 'concurrency' && contradicted > 0) continue;
    const score = rate * (1 - (CONTRADICTION_WEIGHT * contradicted) / closures.length);
    highest = Math.max(highest, score);
    const isContradicted = countContradictions(index, counter, capacity, newest) > 0;
    candidates.push({ choice: { index, counter, capacity, rate, isContradicted }, score });
  }
  let best: ChosenLimit | undefined;
  for (const { choice, score } of candidates) {
    if (score < EQUAL_SHARE * highest) continue;
    if (best === undefined || memoryMsOf(choice) > memoryMsOf(best)) best = choice;
  }
  return best;
}

function capacityOf(index: number, counter: Counter, closures: readonly Closure[]): number {
  if (counter.kind === 'concurrency') return capacityInFlight(index, closures);
  let capacity = Infinity;
  for (const { refused } of closures) capacity = Math.min(capacity, refused[index] ?? 0);
  return capacity;
}

/** A limit in flight refuses at one count; calls that overtake each other, and other limits, make few of the counts lower. */
function capacityInFlight(index: number, closures: readonly Closure[]): number {
  const counts = closures.map(({ refused }) => refused[index] ?? 0).sort((one, other) => one - other);
  const low = counts[Math.floor(counts.length / 6)] ?? Infinity;
  const high = counts[Math.floor((counts.length * 3) / 4)] ?? Infinity;
  return high <= low * SAME_COUNT_FACTOR + 0.5 ? low : (counts[0] ?? Infinity);
}

/** Calls per second; 0 when the counter explains nothing. */
function rateOf(counter: Counter, capacity: number, closureCount: number, roundTripMs: number): number {
  if (capacity === Infinity) return 0;
  switch (counter.kind) {
    case 'window':
      return capacity < 1 ? 0 : (capacity * 1000) / counter.windowMs;
    case 'bucket':
      return capacity < LEAST_LEVEL ? 0 : counter.leakPerMs * 1000;
    case 'concurrency':
      return capacity < MIN_IN_FLIGHT || closureCount < MIN_CLOSURES_IN_FLIGHT
        ? 0
        : (capacity * 1000) / (roundTripMs || UNKNOWN_ROUND_TRIP_MS);
  }
}

/** Closures in which a call was accepted above the capacity. */
function countContradictions(index: number, counter: Counter, capacity: number, closures: readonly Closure[]): number {
  const most = counter.kind === 'bucket' ? capacity + 1 : capacity;
  // Limiters with large limits approximate; those with small ones are exact.
  const accepted = most + (counter.kind === 'bucket' ? 1 + most / 20 : most < 10 ? 0.5 : 1 + most / 100) - 1;
  let contradicted = 0;
  for (const closure of closures) if ((closure.accepted[index] ?? 0) > accepted) contradicted++;
  return contradicted;
}

function memoryMsOf({ counter, capacity }: ChosenLimit): number {
  switch (counter.kind) {
    case 'window':
      return counter.windowMs;
    case 'bucket':
      return (capacity + 1) / counter.leakPerMs;
    case 'concurrency':
      return Infinity;
  }
}
