/**
 * When a replica exchanges with the store next (pure): as seldom as possible. The leader reads reports often; the others exchange
 * when they need permits, when the leader may be lost, and otherwise only to be counted as present. Without calls all exchange seldom.
 */

/** Longest times between two exchanges, by situation. */
const LEADER_INTERVAL_MS = 300;
/** Without other replicas there are no reports, and a lapsed lease does no harm. */
const SINGLE_INTERVAL_MS = 700;
const FOLLOWER_INTERVAL_MS = 4_500;
/** While the fleet learns its first limit; longer in a large fleet, so that all together exchange about 16 times a second. */
const LEARNING_INTERVAL_MS = 250;
const MAX_EXCHANGES_PER_INTERVAL = 4;
const PAUSED_INTERVAL_MS = 2_000;
const DISCONNECTED_INTERVAL_MS = 250;
const MISSED_REPLY_INTERVAL_MS = 20;
/** The replica of this rank looks after a leader whose lease ends; during a pause, when no permits are leased, all do. */
const DEPUTY_RANK = 0;
/** The next one waits for the one before. */
const DEPUTY_DELAY_MS = 20;

/** What the next exchange depends on. Instants are monotonic. */
export interface ExchangeTimingInputs {
  readonly lastExchangeAt: number;
  /** Missing replies in a row. */
  readonly missedReplies: number;
  readonly isJoined: boolean;
  readonly isLeader: boolean;
  /** It has calls, or had some recently. */
  readonly isActive: boolean;
  /** Calls were refused recently, and no limit is known. */
  readonly isLearning: boolean;
  /** Without another exchange of the leader its lease ends then; Infinity while that is of no importance. */
  readonly leaseEndsAt: number;
  readonly replicaCount: number;
  /** Position among the replicas, from 0; the leader is the last. */
  readonly rank: number;
  readonly isFleetPaused: boolean;
  readonly canEndPause: boolean;
  /** When all replicas have reported for the pause. */
  readonly reportsCompleteAt: number;
  /** Permits are needed and may be requested from this instant on; Infinity when none are. */
  readonly permitsWantedAt: number;
}

/** Monotonic; a past instant means now. */
export function nextExchangeAt(inputs: ExchangeTimingInputs): number {
  const { lastExchangeAt, isLeader, isFleetPaused, canEndPause, reportsCompleteAt, permitsWantedAt } = inputs;
  const regularAt = Math.min(lastExchangeAt + intervalMs(inputs), leaderCheckAt(inputs));
  if (!isFleetPaused) return Math.min(regularAt, permitsWantedAt);
  if (!isLeader) return regularAt;
  if (canEndPause) return -Infinity;
  return reportsCompleteAt > lastExchangeAt ? reportsCompleteAt : regularAt;
}

function leaderCheckAt(inputs: ExchangeTimingInputs): number {
  const { missedReplies, isJoined, isLeader, isActive, isFleetPaused, leaseEndsAt, rank } = inputs;
  if (missedReplies > 0 || !isJoined) return Infinity;
  if (isLeader || !isActive || (rank > DEPUTY_RANK && !isFleetPaused)) return Infinity;
  return leaseEndsAt + (rank + 1) * DEPUTY_DELAY_MS;
}

function intervalMs(inputs: ExchangeTimingInputs): number {
  const { missedReplies, isJoined, isLeader, isActive, isLearning, isFleetPaused, replicaCount } = inputs;
  if (missedReplies > 0) return missedReplies === 1 ? MISSED_REPLY_INTERVAL_MS : DISCONNECTED_INTERVAL_MS;
  if (!isJoined) return DISCONNECTED_INTERVAL_MS;
  if (isLeader && (isActive || isFleetPaused)) return replicaCount === 1 ? SINGLE_INTERVAL_MS : LEADER_INTERVAL_MS;
  if (isFleetPaused) return PAUSED_INTERVAL_MS;
  return isLearning && isActive
    ? LEARNING_INTERVAL_MS * Math.max(1, replicaCount / MAX_EXCHANGES_PER_INTERVAL)
    : FOLLOWER_INTERVAL_MS;
}
