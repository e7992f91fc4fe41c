/**
 * When a token may still be sent, when its successor is asked for, and how long to wait after a failure.
 * Pure: instants come in as arguments, chance as a number in [0, 1).
 */
import type { TokenAnswer } from './token-answer.ts';
import type { Token } from './token.ts';

/** The part of a life that is left for the flight to the upstream, at most `LONGEST_MARGIN_MS`. */
const MARGIN_SHARE = 0.1;
const LONGEST_MARGIN_MS = 2_000;

/** Spread over a tenth of the life, so that a fleet started together does not ask together for ever. */
const REFRESH_SHARE = 0.75;
const REFRESH_SPREAD = 0.1;

const SHORTEST_BACKOFF_MS = 200;
const FIRST_BACKOFF_CEILING_MS = 1_000;
const LONGEST_BACKOFF_MS = 30_000;
const LONGEST_STATED_WAIT_MS = 3_600_000;
/** A refused client stays refused until somebody acts. */
const REJECTED_WAIT_MS = 60_000;

/**
 * True when the token can be sent now and arrive before its end. Both clocks must say so: a wall clock set back cannot
 * prolong a life that the monotonic one measures, and only the wall clock sees the time a machine was suspended.
 * @param wallNow epoch milliseconds
 */
export function isUsable(token: Token, now: number, wallNow: number): boolean {
  const marginMs = Math.min((token.expiresAt - token.obtainedAt) * MARGIN_SHARE, LONGEST_MARGIN_MS);
  return now < token.expiresAt - marginMs && wallNow < token.expiresWallAt - marginMs;
}

/**
 * Milliseconds from the request for a token to the request for its successor: 75 to 85 % of its life. Of a two-hour
 * token that is beyond the first hour, of one of a second it leaves 50 ms to the margin.
 */
export function chooseRefreshDelayMs(lifetimeMs: number, random: number): number {
  return lifetimeMs * (REFRESH_SHARE + REFRESH_SPREAD * random);
}

/**
 * Milliseconds until the token endpoint may be asked again. Full jitter below a ceiling that doubles from 1 s to 30 s;
 * a wait that the endpoint states is kept when longer, up to an hour; 60 s after a rejection.
 * @param failures in a row, this one included
 */
export function chooseRetryDelayMs(
  failure: Exclude<TokenAnswer, { kind: 'ok' }>,
  failures: number,
  random: number,
): number {
  if (failure.kind === 'rejected') return REJECTED_WAIT_MS;
  const ceilingMs = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_CEILING_MS * 2 ** (failures - 1));
  const backoffMs = SHORTEST_BACKOFF_MS + random * (ceilingMs - SHORTEST_BACKOFF_MS);
  const statedMs = failure.kind === 'unavailable' ? (failure.retryAfterMs ?? 0) : 0;
  return Math.max(backoffMs, Math.min(statedMs, LONGEST_STATED_WAIT_MS));
}
