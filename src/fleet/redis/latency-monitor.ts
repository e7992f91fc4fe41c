/**
 * Decides from the last replies whether Redis replies in time (pure). Entering and leaving the degraded state have different
 * conditions, and leaving takes longer each time it soon follows another entry, so that the state does not flap.
 */

/** Replies that are considered together. */
const WINDOW = 10;
/** Late ones among them from which on Redis is too slow. */
const MAX_LATE = 6;
/** At the start of the process so many suffice if all are late. */
const FIRST_LATE = 3;
/** Replies in time, one after another, that end the state; doubled by each entry that soon follows the last end. */
const RECOVERY_REPLIES = 10;
const MAX_RECOVERY_REPLIES = 80;
/** An entry within this time after the last end is a relapse. */
const RELAPSE_MS = 60_000;

export interface LateReplies {
  readonly late: number;
  readonly commands: number;
  /** Undefined when none is late. */
  readonly medianLateMs: number | undefined;
}

export class LatencyMonitor {
  /** Latencies of late replies, milliseconds; undefined for a reply in time. */
  readonly #window: (number | undefined)[] = [];
  /** Read only. */
  isDegraded = false;
  #inTimeInARow = 0;
  #recoveryReplies = RECOVERY_REPLIES;
  #endedAt = -Infinity;

  get isLastLate(): boolean {
    return this.#window.length > 0 && this.#inTimeInARow === 0;
  }

  recordInTime(now: number): void {
    this.#push(undefined);
    this.#inTimeInARow++;
    if (!this.isDegraded || this.#inTimeInARow < this.#recoveryReplies) return;
    this.isDegraded = false;
    this.#endedAt = now;
  }

  /** @param latencyMs until the reply, or until the end of the wait for it */
  recordLate(now: number, latencyMs: number): void {
    this.#push(latencyMs);
    this.#inTimeInARow = 0;
    const { late, commands } = this.describe();
    if (this.isDegraded || (late < MAX_LATE && (late < FIRST_LATE || late < commands))) return;
    this.isDegraded = true;
    const isRelapse = now - this.#endedAt < RELAPSE_MS;
    this.#recoveryReplies = isRelapse ? Math.min(MAX_RECOVERY_REPLIES, this.#recoveryReplies * 2) : RECOVERY_REPLIES;
  }

  describe(): LateReplies {
    const late = this.#window.filter((latencyMs) => latencyMs !== undefined).sort((a, b) => a - b);
    return { late: late.length, commands: this.#window.length, medianLateMs: late[Math.floor(late.length / 2)] };
  }

  #push(latencyMs: number | undefined): void {
    this.#window.push(latencyMs);
    if (this.#window.length > WINDOW) this.#window.shift();
  }
}
