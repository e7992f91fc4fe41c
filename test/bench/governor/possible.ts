/**
 * The possible calls: those that a client with full knowledge of the limiter and its state would get accepted, without latency and
 * without a refusal, in order of arrival and within the callers' deadline.
 */
import type { Random } from '../../../src/platform/clock.ts';
import { QUEUE_TIMEOUT_MS } from './client.ts';
import { type CountedModel, type LimiterModel, TOLERANCE_MS } from './limiter-model.ts';

/** Where counting begins, for a limiter that has been used before. */
export interface PossibleStart {
  readonly from: number;
  /** When the calls leave that are at the server then. */
  readonly inService: readonly number[];
}

const AT_ZERO: PossibleStart = { from: 0, inService: [] };

/** A closed loop: each client makes its next call some time after the response to its last one. */
export interface LoopStart extends PossibleStart {
  readonly until: number;
  readonly clients: number;
  /** Clients whose call is waiting at the start; the others are about to make theirs. */
  readonly waiting: number;
  readonly thinkMs: number;
  readonly serviceMs: () => number;
}

/**
 * As countPossible, for a closed loop. Without latency a client would call a little earlier each time, which a limit that is used up hides.
 * @returns the number accepted before `until`
 */
export function countPossibleOfLoop(
  limiter: LimiterModel,
  { from, until, inService, clients, waiting, thinkMs, serviceMs }: LoopStart,
): number {
  const model = withBestChoices(limiter);
  const ends = [...inService].sort((one, other) => one - other);
  const ready = Array.from({ length: clients }, (_, client) => (client < waiting ? from : from + thinkMs));
  let last = from;
  let count = 0;
  for (;;) {
    let at = Math.max(last, ready.shift() ?? Infinity);
    for (;;) {
      while (ends[0] !== undefined && ends[0] <= at) ends.shift();
      const next = model.nextAt(at, ends.length);
      if (next <= at + TOLERANCE_MS) break;
      at = next === Infinity ? (ends[0] ?? Infinity) : next;
    }
    if (at >= until) return count;
    last = at;
    const heldMs = model.heldMs?.(at) ?? 0;
    model.take(at);
    count++;
    const end = at + heldMs + serviceMs();
    insert(ends, end);
    insert(ready, end + thinkMs);
  }
}

/**
 * @param arrivals in order
 * @param serviceMs how long the next call stays at the server
 * @param start default: an unused limiter at 0
 * @returns the number accepted before `untilMs`
 */
export function countPossible(
  limiter: LimiterModel,
  arrivals: readonly number[],
  untilMs: number,
  serviceMs: (random: Random) => number,
  random: Random,
  start: PossibleStart = AT_ZERO,
): number {
  const model = withBestChoices(limiter);
  const ends = [...start.inService].sort((one, other) => one - other);
  let last = start.from;
  let count = 0;
  for (const arrivedAt of arrivals) {
    let at = Math.max(last, arrivedAt);
    for (;;) {
      while (ends[0] !== undefined && ends[0] <= at) ends.shift();
      const next = model.nextAt(at, ends.length);
      if (next <= at + TOLERANCE_MS) break;
      at = next === Infinity ? (ends[0] ?? Infinity) : next;
    }
    if (at >= untilMs) break;
    // No other call could have been accepted before that either.
    last = at;
    if (at > arrivedAt + QUEUE_TIMEOUT_MS) continue;
    const heldMs = model.heldMs?.(at) ?? 0;
    model.take(at);
    count++;
    insert(ends, at + heldMs + serviceMs(random));
  }
  return count;
}

function withBestChoices(limiter: LimiterModel): CountedModel {
  return limiter.withBestChoices?.() ?? limiter;
}

function insert(ends: number[], end: number): void {
  let slot = ends.length;
  while (slot > 0 && (ends[slot - 1] ?? 0) > end) slot--;
  ends.splice(slot, 0, end);
}
