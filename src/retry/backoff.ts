/** Full-jitter exponential backoff: a random delay between 0 and the step, so that clients do not retry at the same time. Pure. */

const BACKOFF_BASE_MS = 100;
const BACKOFF_CAP_MS = 10_000;

/**
 * @param retry 1 for the first retry
 * @param chance a number in [0, 1)
 * @returns milliseconds to wait
 */
export function fullJitterMs(retry: number, chance: number): number {
  return chance * Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** (retry - 1));
}
