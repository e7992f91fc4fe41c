/**
 * The retry budget: retries stay a share of recent requests, so that a failing upstream does not get a multiple of its
 * load. Time is a parameter. Retries after a 429 are limited by permits and do not draw from it.
 */

const WINDOW_SECONDS = 10;
const RETRY_RATIO = 0.2;
/** Retries within the window that are always allowed. */
const MIN_RETRIES = 10;

interface Second {
  readonly startedAt: number;
  requests: number;
  retries: number;
}

export type RetryBudget = ReturnType<typeof createRetryBudget>;

/** Instants are monotonic milliseconds. */
export function createRetryBudget() {
  let current: Second = { startedAt: -1, requests: 0, retries: 0 };
  /** Oldest first; the last is the current one. */
  let window: Second[] = [];

  const secondOf = (now: number): Second => {
    const startedAt = Math.floor(now / 1000);
    if (startedAt <= current.startedAt) return current;
    current = { startedAt, requests: 0, retries: 0 };
    window = [...window.filter((second) => second.startedAt > startedAt - WINDOW_SECONDS), current];
    return current;
  };

  return {
    recordRequest(now: number): void {
      // Most requests fall into the second of the one before.
      if (now < (current.startedAt + 1) * 1000) current.requests++;
      else secondOf(now).requests++;
    },
    /** @returns false when the budget is spent */
    tryTake(now: number): boolean {
      const second = secondOf(now);
      const retries = window.reduce((sum, each) => sum + each.retries, 0);
      const requests = window.reduce((sum, each) => sum + each.requests, 0);
      if (retries >= Math.max(MIN_RETRIES, RETRY_RATIO * requests)) return false;
      second.retries++;
      return true;
    },
    /** @param takenAt when the retry was taken that is not made after all */
    giveBack(takenAt: number): void {
      const startedAt = Math.floor(takenAt / 1000);
      // A second outside the window no longer counts.
      const second = window.find((each) => each.startedAt === startedAt);
      if (second !== undefined) second.retries--;
    },
  };
}
