/**
 * The figures of one drawn limit after the time of learning. What was possible is counted from the state in which the limiter was at that
 * instant, with the calls that waited then, so that neither learning nor saved-up permits count.
 */
import { DEADLINE_MS, QUEUE_TIMEOUT_MS } from '../client.ts';
import { isClosed } from '../load.ts';
import { countPossible, countPossibleOfLoop } from '../possible.ts';
import { createRandom } from '../seeded.ts';
import { type CallRecord, createLimiter, type RunRecord } from '../world.ts';
import { LEARNING_CALLS, LEARNING_WINDOWS, type Measuring, MIN_LEARNING_MS } from './families.ts';

/** Shares are between 0 and 1, durations in milliseconds. */
export interface MemberFigures {
  /** Accepted calls ÷ possible calls, after learning. */
  readonly goodput: number;
  /** Refused attempts ÷ attempts, after learning. */
  readonly refusedShare: number;
  /** Calls whose caller got no accepted response ÷ calls, after learning. */
  readonly failedShare: number;
  readonly waitP95Ms: number;
  /** From then on, up to the end of learning, half of what is possible was accepted in each stretch of 10 s or one window. */
  readonly halfRateMs: number;
  /** Accepted calls that were measured. */
  readonly measured: number;
}

export function measureAfterLearning(member: Measuring, record: RunRecord): MemberFigures {
  const { durationMs } = record.conditions;
  const from = learnedAt(member, record);
  const refused = record.refusedAt.filter((at) => at > from && at <= durationMs).length;
  const served = record.calls.filter((call) => call.isServed && isWithin(call.acceptedAt, from, durationMs));
  // A call that waits longer is not among the possible ones.
  const inTime = served.filter(
    ({ arrivedAt, acceptedAt = 0 }) => acceptedAt - arrivedAt <= QUEUE_TIMEOUT_MS + MAX_TRAVEL_MS,
  );
  const attempts = record.acceptedAt.filter((at) => at > from && at <= durationMs).length + refused;
  // A call that came less than its deadline before the end may still wait for its turn.
  const ended = record.calls.filter(({ arrivedAt }) => arrivedAt > from && arrivedAt < durationMs - DEADLINE_MS);
  const waits = served.map(({ arrivedAt, acceptedAt = 0 }) => acceptedAt - arrivedAt).sort((one, other) => one - other);
  const possible = countPossibleFrom(member, record, from);
  return {
    goodput: possible === 0 ? 1 : inTime.length / possible,
    refusedShare: attempts === 0 ? 0 : refused / attempts,
    failedShare: ended.length === 0 ? 0 : ended.filter((call) => !call.isServed).length / ended.length,
    waitP95Ms: waits[Math.floor(waits.length * 0.95)] ?? 0,
    halfRateMs: findHalfRate(member, record, from),
    measured: served.length,
  };
}

function learnedAt({ memoryMs, learnedByMs }: Measuring, { acceptedAt }: RunRecord): number {
  const enoughCalls = acceptedAt[LEARNING_CALLS - 1] ?? Infinity;
  return Math.min(learnedByMs, Math.max(MIN_LEARNING_MS, LEARNING_WINDOWS * memoryMs, enoughCalls));
}

function countPossibleFrom(
  { seed }: Measuring,
  { conditions, calls, acceptedAt, refusedAt }: RunRecord,
  from: number,
): number {
  const { load, durationMs, serviceMs } = conditions;
  const { model } = createLimiter(conditions);
  for (const { at, isAccepted } of inOrder(acceptedAt, refusedAt)) {
    if (at > from) break;
    if (isAccepted) model.take(at);
    else model.refuse(at);
  }
  const drawService = (): number => serviceMs.base + service() * serviceMs.jitter;
  const service = createRandom(seed, 'possible');
  const inService = calls
    .filter(({ acceptedAt: at, endedAt }) => at !== undefined && at <= from && endedAt > from)
    .map(({ acceptedAt: at = 0 }) => at + serviceMs.base + serviceMs.jitter / 2)
    .filter((end) => end > from);
  const isOpen = (call: CallRecord): boolean => !isWithin(call.acceptedAt, -Infinity, from) && call.endedAt > from;
  const start = { from, until: durationMs, inService, serviceMs: drawService };
  if (isClosed(load)) {
    const waiting = calls.filter((call) => call.arrivedAt <= from && isOpen(call)).length;
    return countPossibleOfLoop(model, { ...start, waiting, clients: load.clients, thinkMs: load.thinkMs });
  }
  const arrivals = calls.filter((call) => isOpen(call) && call.arrivedAt > from - QUEUE_TIMEOUT_MS);
  return countPossible(
    model,
    arrivals.map(({ arrivedAt }) => arrivedAt),
    durationMs,
    drawService,
    service,
    start,
  );
}

function* inOrder(accepted: readonly number[], refused: readonly number[]) {
  let next = 0;
  for (const at of accepted) {
    for (let other = refused[next]; other !== undefined && other < at; other = refused[++next])
      yield { at: other, isAccepted: false };
    yield { at, isAccepted: true };
  }
  for (const at of refused.slice(next)) yield { at, isAccepted: false };
}

/** From the end of a wait to the server. */
const MAX_TRAVEL_MS = 200;
const HALF = 0.5;
const MIN_STRETCH_MS = 10_000;
const GRID_MS = 1000;

/** Infinity when it was not so in the last stretch. */
function findHalfRate(member: Measuring, record: RunRecord, until: number): number {
  const { acceptedAt, calls, limiter, conditions } = record;
  const { memoryMs } = member;
  const stretchMs = Math.max(MIN_STRETCH_MS, memoryMs);
  const arrivals = calls.map(({ arrivedAt }) => arrivedAt);
  let since = 0;
  const last = Math.min(until, conditions.durationMs) - stretchMs;
  for (let from = 0; from <= last; from += GRID_MS) {
    const to = from + stretchMs;
    const got = countWithin(acceptedAt, from, to);
    const offered = isClosed(conditions.load) ? Infinity : countWithin(arrivals, from, to);
    if (got < HALF * Math.min(limiter.capacity(from, to), offered)) since = from + GRID_MS;
  }
  return since > last ? Infinity : since;
}

function countWithin(sorted: readonly number[], from: number, to: number): number {
  return lowerBound(sorted, to) - lowerBound(sorted, from);
}

function lowerBound(sorted: readonly number[], limit: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

function isWithin(at: number | undefined, from: number, to: number): boolean {
  return at !== undefined && at > from && at <= to;
}
