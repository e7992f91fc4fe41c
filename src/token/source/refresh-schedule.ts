/**
 * When a token may still be sent, when its successor is asked for, and how long to wait after a failure.
 * Pure: instants come in as arguments, chance as a number in [0, 1).
 */
import type { TokenRequestFailure } from '../endpoint/token-response.ts';
import type { Token } from '../token.ts';

/** The part of a life that is left for the flight to the upstream, at most `LONGEST_MARGIN_MS`. */
const MARGIN_SHARE = 0.1;
const LONGEST_MARGIN_MS = 2_000;

/** Spread over a tenth of the life, so that a fleet started together does not ask together for ever. */
const REFRESH_SHARE = 0.75;
const REFRESH_SPREAD = 0.1;

const SHORTEST_BACKOFF_MS = 200;
const FIRST_BACKOFF_CEILING_MS = 1_000;

/**
 * Between the beginnings of two probes while somebody waits: whoever needs a token has one within 5 s of the endpoint's
 * recovery. A probe that hung until its own time-out is followed sooner, by at least the pause.
 */
const LONGEST_EAGER_MS = 4_750;
const EAGER_SPREAD_MS = 750;
const SHORTEST_PAUSE_MS = 1_000;

/** While nobody waits: an outage of an hour costs a request a minute. */
const LONGEST_IDLE_MS = 60_000;
const IDLE_SPREAD_MS = 6_000;

/** Longer than this no endpoint is taken at its word: a wrong number must not outlast the outage by hours. */
const LONGEST_STATED_WAIT_MS = 300_000;
/** A refused client stays refused until somebody acts. */
const REJECTED_WAIT_MS = 60_000;

/**
 * True when the token can be sent now and arrive before its end.
 * @param now of the life clock
 */
export function isUsable(token: Pick<Token, 'obtainedAt' | 'expiresAt'>, now: number): boolean {
  const marginMs = Math.min((token.expiresAt - token.obtainedAt) * MARGIN_SHARE, LONGEST_MARGIN_MS);
  return now < token.expiresAt - marginMs;
}

/**
 * Milliseconds from the request for a token to the request for its successor: 75 to 85 % of its life. Of a two-hour
 * token that is beyond the first hour, of one of a second it leaves 50 ms to the margin.
 */
export function chooseRefreshDelayMs(lifetimeMs: number, random: number): number {
  return lifetimeMs * (REFRESH_SHARE + REFRESH_SPREAD * random);
}

/** When a token endpoint that failed may be asked again, milliseconds from the failure. */
export interface TokenRetryDelays {
  /** For somebody who waits for a token. */
  readonly eagerMs: number;
  /** While nobody does; no shorter. */
  readonly idleMs: number;
}

export interface TokenFailureFacts {
  /** In a row, this one included. */
  readonly failures: number;
  /** False: full jitter below a ceiling that doubles from 1 s. True: a probe now and then. */
  readonly isCircuitOpen: boolean;
  /** How long the failed request took. */
  readonly requestDurationMs: number;
  /** In [0, 1). */
  readonly random: number;
}

/**
 * A wait that the endpoint states is kept when longer, up to 300 s, whoever waits; after a rejection it is 60 s for all,
 * since whoever was refused stays refused until somebody acts.
 */
export function chooseRetryDelays(failure: TokenRequestFailure, facts: TokenFailureFacts): TokenRetryDelays {
  if (failure.kind === 'rejected') return { eagerMs: REJECTED_WAIT_MS, idleMs: REJECTED_WAIT_MS };
  const statedMs = failure.kind === 'unavailable' ? (failure.retryAfterMs ?? 0) : 0;
  const leastMs = Math.min(statedMs, LONGEST_STATED_WAIT_MS);
  const { eagerMs, idleMs } = facts.isCircuitOpen ? chooseProbeDelays(facts) : chooseBackoff(facts);
  // Somebody else's backoff has begun earlier, and whoever asks after it asks for all.
  if (failure.from !== undefined && leastMs > 0) return { eagerMs: leastMs, idleMs: Math.max(idleMs, leastMs) };
  return { eagerMs: Math.max(eagerMs, leastMs), idleMs: Math.max(idleMs, leastMs) };
}

function chooseBackoff({ failures, random }: TokenFailureFacts): TokenRetryDelays {
  const ceilingMs = Math.min(LONGEST_EAGER_MS, FIRST_BACKOFF_CEILING_MS * 2 ** (failures - 1));
  const backoffMs = SHORTEST_BACKOFF_MS + random * (ceilingMs - SHORTEST_BACKOFF_MS);
  return { eagerMs: backoffMs, idleMs: backoffMs };
}

/** Spread, so that a fleet that lost its endpoint together does not probe it together. */
function chooseProbeDelays({ requestDurationMs, random }: TokenFailureFacts): TokenRetryDelays {
  const apartMs = LONGEST_EAGER_MS - random * EAGER_SPREAD_MS;
  return {
    eagerMs: Math.max(SHORTEST_PAUSE_MS, apartMs - requestDurationMs),
    idleMs: LONGEST_IDLE_MS - random * IDLE_SPREAD_MS,
  };
}
