/**
 * The retry budget: retries stay a share of recent requests, so that an upstream in trouble is not met with a
 * multiple of its load. Time is a parameter. 429 retries are governed by permits and do not draw from it.
 */

const WINDOW_SECONDS = 10;
const RETRY_RATIO = 0.2;
/** A quiet client may always retry this often within the window. */
const MIN_RETRIES = 10;

interface Second {
  startedAt: number;
  requests: number;
  retries: number;
}

export interface RetryBudget {
  /** @param now monotonic milliseconds */
  recordRequest(now: number): void;
  /** Takes one retry out of the budget; false when it is spent. */
  tryTake(now: number): boolean;
  /** @param takenAt when the retry was taken that is not made after all */
  giveBack(takenAt: number): void;
}

export function createRetryBudget(): RetryBudget {
  const ring: Second[] = Array.from({ length: WINDOW_SECONDS }, () => ({ startedAt: -1, requests: 0, retries: 0 }));

  const secondOf = (now: number): Second => {
    const startedAt = Math.floor(now / 1000);
    const second = ring[startedAt % WINDOW_SECONDS];
    if (second?.startedAt === startedAt) return second;
    const fresh = { startedAt, requests: 0, retries: 0 };
    ring[startedAt % WINDOW_SECONDS] = fresh;
    return fresh;
  };

  const recent = (now: number): { requests: number; retries: number } => {
    const oldest = Math.floor(now / 1000) - WINDOW_SECONDS + 1;
    let requests = 0;
    let retries = 0;
    for (const second of ring) {
      if (second.startedAt < oldest) continue;
      requests += second.requests;
      retries += second.retries;
    }
    return { requests, retries };
  };

  return {
    recordRequest(now) {
      secondOf(now).requests++;
    },
    tryTake(now) {
      const { requests, retries } = recent(now);
      if (retries >= Math.max(MIN_RETRIES, RETRY_RATIO * requests)) return false;
      secondOf(now).retries++;
      return true;
    },
    giveBack(takenAt) {
      const startedAt = Math.floor(takenAt / 1000);
      // What is older than the window counts no more.
      const second = ring.find((each) => each.startedAt === startedAt);
      if (second !== undefined) second.retries--;
    },
  };
}
