/**
 * When a member of a fleet asks next (pure): as seldom as will do. Whoever leads looks often at what the others report; the others ask
 * for permits when theirs run out, and else only so that they are not taken for gone.
 */

/** Longest times between two questions, by what is going on. */
const LEADER_INTERVAL_MS = 700;
const FOLLOWER_INTERVAL_MS = 4_500;
const PAUSED_INTERVAL_MS = 2_000;
const DISCONNECTED_INTERVAL_MS = 250;
const MISSED_REPLY_INTERVAL_MS = 20;

/** What the next question depends on. Instants are monotonic. */
export interface ExchangeTimingInputs {
  readonly lastExchangeAt: number;
  /** Answers in a row that did not come. */
  readonly missedReplies: number;
  readonly isJoined: boolean;
  readonly isLeader: boolean;
  /** All are paused. */
  readonly isFleetPaused: boolean;
  /** The pause can be ended. */
  readonly canEndPause: boolean;
  /** When all have reported for it. */
  readonly reportsCompleteAt: number;
  /** Permits are wanted, and may be asked for from this instant on; Infinity when none are. */
  readonly permitsWantedAt: number;
}

/** A past instant: now. */
export function nextExchangeAt(occasion: ExchangeTimingInputs): number {
  const { lastExchangeAt, isLeader, isFleetPaused, canEndPause, reportsCompleteAt, permitsWantedAt } = occasion;
  const beatAt = lastExchangeAt + intervalMs(occasion);
  if (!isFleetPaused) return Math.min(beatAt, permitsWantedAt);
  if (!isLeader) return beatAt;
  if (canEndPause) return -Infinity;
  return reportsCompleteAt > lastExchangeAt ? reportsCompleteAt : beatAt;
}

function intervalMs({ missedReplies, isJoined, isLeader, isFleetPaused }: ExchangeTimingInputs): number {
  if (missedReplies > 0) return missedReplies === 1 ? MISSED_REPLY_INTERVAL_MS : DISCONNECTED_INTERVAL_MS;
  if (!isJoined) return DISCONNECTED_INTERVAL_MS;
  if (isLeader) return LEADER_INTERVAL_MS;
  return isFleetPaused ? PAUSED_INTERVAL_MS : FOLLOWER_INTERVAL_MS;
}
