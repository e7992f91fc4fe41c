/**
 * When a member of a fleet asks next (pure): as seldom as will do. Whoever leads looks often at what the others report; the others ask
 * for permits when theirs run out, and else only so that they are not taken for gone.
 */

/** Longest times between two questions, by what is going on. */
const LEADER_BEAT_MS = 700;
const FOLLOWER_BEAT_MS = 4_500;
const HELD_BEAT_MS = 2_000;
const LOST_BEAT_MS = 250;
const MISSED_BEAT_MS = 20;

/** What the next question depends on. Instants are monotonic. */
export interface Occasion {
  readonly askedAt: number;
  /** Answers in a row that did not come. */
  readonly missed: number;
  readonly isJoined: boolean;
  readonly isLeader: boolean;
  /** All are paused. */
  readonly isHeld: boolean;
  /** The pause can be ended. */
  readonly mayResume: boolean;
  /** When all have reported for it. */
  readonly settlesAt: number;
  /** Permits are wanted, and may be asked for from this instant on; Infinity when none are. */
  readonly wantedAt: number;
}

/** A past instant: now. */
export function nextQuestionAt(occasion: Occasion): number {
  const { askedAt, isLeader, isHeld, mayResume, settlesAt, wantedAt } = occasion;
  const beatAt = askedAt + beatMs(occasion);
  if (!isHeld) return Math.min(beatAt, wantedAt);
  if (!isLeader) return beatAt;
  if (mayResume) return -Infinity;
  return settlesAt > askedAt ? settlesAt : beatAt;
}

function beatMs({ missed, isJoined, isLeader, isHeld }: Occasion): number {
  if (missed > 0) return missed === 1 ? MISSED_BEAT_MS : LOST_BEAT_MS;
  if (!isJoined) return LOST_BEAT_MS;
  if (isLeader) return LEADER_BEAT_MS;
  return isHeld ? HELD_BEAT_MS : FOLLOWER_BEAT_MS;
}
