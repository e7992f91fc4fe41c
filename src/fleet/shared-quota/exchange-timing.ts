/**
 * When a replica exchanges with the store next (pure): as seldom as possible. The leader reads reports often; the others exchange
 * when they need permits, and otherwise only to be counted as present.
 */

/** Longest times between two exchanges, by situation. */
const LEADER_INTERVAL_MS = 700;
const FOLLOWER_INTERVAL_MS = 4_500;
const PAUSED_INTERVAL_MS = 2_000;
const DISCONNECTED_INTERVAL_MS = 250;
const MISSED_REPLY_INTERVAL_MS = 20;

/** What the next exchange depends on. Instants are monotonic. */
export interface ExchangeTimingInputs {
  readonly lastExchangeAt: number;
  /** Missing replies in a row. */
  readonly missedReplies: number;
  readonly isJoined: boolean;
  readonly isLeader: boolean;
  /** All replicas are paused. */
  readonly isFleetPaused: boolean;
  /** This replica can end the pause. */
  readonly canEndPause: boolean;
  /** When all replicas have reported for the pause. */
  readonly reportsCompleteAt: number;
  /** Permits are needed and may be requested from this instant on; Infinity when none are. */
  readonly permitsWantedAt: number;
}

/** Monotonic; a past instant means now. */
export function nextExchangeAt(inputs: ExchangeTimingInputs): number {
  const { lastExchangeAt, isLeader, isFleetPaused, canEndPause, reportsCompleteAt, permitsWantedAt } = inputs;
  const regularAt = lastExchangeAt + intervalMs(inputs);
  if (!isFleetPaused) return Math.min(regularAt, permitsWantedAt);
  if (!isLeader) return regularAt;
  if (canEndPause) return -Infinity;
  return reportsCompleteAt > lastExchangeAt ? reportsCompleteAt : regularAt;
}

function intervalMs({ missedReplies, isJoined, isLeader, isFleetPaused }: ExchangeTimingInputs): number {
  if (missedReplies > 0) return missedReplies === 1 ? MISSED_REPLY_INTERVAL_MS : DISCONNECTED_INTERVAL_MS;
  if (!isJoined) return DISCONNECTED_INTERVAL_MS;
  if (isLeader) return LEADER_INTERVAL_MS;
  return isFleetPaused ? PAUSED_INTERVAL_MS : FOLLOWER_INTERVAL_MS;
}
