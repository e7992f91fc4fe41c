/**
 * The possible calls: those that a client with full knowledge of the limiter and its state would get accepted, without latency and
 * without a refusal, in order of arrival and within the callers' deadline.
 */
import type { Random } from '../../../src/platform/clock.ts';
import { QUEUE_TIMEOUT_MS } from './client.ts';
import { type LimiterModel, TOLERANCE_MS } from './limiter-model.ts';

/**
 * @param arrivals in order
 * @param serviceMs how long the next call stays at the server
 * @returns the number accepted before `untilMs`
 */
export function countPossible(
  model: LimiterModel,
  arrivals: readonly number[],
  untilMs: number,
  serviceMs: (random: Random) => number,
  random: Random,
): number {
  const ends: number[] = [];
  let last = 0;
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
    model.take(at);
    count++;
    insert(ends, at + serviceMs(random));
  }
  return count;
}

function insert(ends: number[], end: number): void {
  let slot = ends.length;
  while (slot > 0 && (ends[slot - 1] ?? 0) > end) slot--;
  ends.splice(slot, 0, end);
}
