/** What a client with full knowledge of the limit, and without latency, gets accepted. */
import { create, type LimiterRule } from '../limiters.ts';

/** Of calls that arrive, in order of time, and that may wait for up to `deadlineMs` but not past the end. */
export function countPossible(
  limit: LimiterRule,
  arrivals: readonly number[],
  deadlineMs: number,
  endsAt: number,
): number {
  const { model } = create({ limiter: limit });
  let count = 0;
  let opensAt = 0;
  for (const arrivedAt of arrivals) {
    opensAt = model.nextAt(Math.max(arrivedAt, opensAt), 0);
    if (opensAt > arrivedAt + deadlineMs || opensAt >= endsAt) continue;
    model.take(opensAt);
    count++;
  }
  return count;
}

/** Of a client that always has a call to send. */
export function countPossibleUntil(limit: LimiterRule, endsAt: number): number {
  const { model } = create({ limiter: limit });
  let count = 0;
  for (let at = model.nextAt(0, 0); at < endsAt; at = model.nextAt(at, 0)) {
    model.take(at);
    count++;
  }
  return count;
}
