/**
 * Whether a stated quota is obeyed (pure), judged by what is accepted. From time to time a quota that holds calls back is checked: the calls
 * that it leaves go without a wait, and then one more. If that one is accepted, more follow, and after enough of them the quota is
 * disbelieved. If it is refused, the quota states the truth, and the next check comes much later.
 */

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
/** Requests have waited for so long before the first check. */
const FIRST_CHECK_AFTER_MS = 3 * SECOND_MS;
/** A quota that was confirmed is checked again when requests wait after this time, and then after a multiple of it, up to the longest. */
const NEXT_CHECK_AFTER_MS = 10 * MINUTE_MS;
const CHECK_GROWTH = 4;
/** Resets are stated in whole seconds, by clocks that differ: calls that are accepted this long before one contradict the statement. */
const RESET_TOLERANCE_MS = 2 * SECOND_MS;
/** In less time too few calls would be made. */
const MIN_CHECK_MS = SECOND_MS;
/** Share of the quota that has to be accepted beyond it, and the number of calls at least. */
const CONTRADICTED_SHARE = 0.25;
const MIN_CONTRADICTIONS = 3;
/** Kept as a multiple of these: refusals of another limit come in groups. */
const MAX_CONTRADICTIONS = 10;
/** With more accepted calls for each refused one, the refusals come from another limit. */
const ACCEPTED_PER_REFUSAL = 4;

/** One statement and the calls since then. */
interface QuotaCheck {
  readonly since: number;
  readonly until: number;
  /** Calls that are still within the statement. */
  left: number;
  /** Calls that exceed it. */
  sent: number;
  accepted: number;
}

export class QuotaTrust {
  #checkAt = Infinity;
  #checkIntervalMs = FIRST_CHECK_AFTER_MS;
  #check: QuotaCheck | undefined;
  /** Accepted calls that exceeded what was stated, less those that were refused. */
  #contradictions = 0;
  #disbelievedUntil = -Infinity;
  #disbeliefMs = MINUTE_MS / 2;

  isDisbelieved(now: number): boolean {
    return now < this.#disbelievedUntil;
  }

  /** A refusal of a call that exceeds the quota says only that the quota is right. */
  get isChecked(): boolean {
    return this.#check !== undefined && this.#disbelievedUntil === -Infinity;
  }

  /** Nothing is certain of the end of the wait. */
  isLifted(now: number): boolean {
    return this.isDisbelieved(now) || (this.#check !== undefined && now < this.#check.until);
  }

  /**
   * When the next call may go that the quota holds back until `heldUntil`.
   * @param resetAt until when `remaining` is stated
   * @param uncounted calls in flight that may not have been counted
   */
  nextAt(now: number, heldUntil: number, remaining: number, resetAt: number, uncounted: number): number {
    if (this.isDisbelieved(now)) return -Infinity;
    const check = this.#check;
    if (check !== undefined && now < check.until) {
      if (check.left >= 1 && remaining - uncounted >= 1) return -Infinity;
      // The first call waits for the others: one of them may be accepted as the last that is stated.
      return check.sent <= 2 * check.accepted && (check.sent > 0 || uncounted === 0) ? -Infinity : heldUntil;
    }
    const startAt = Math.max(now, this.#checkAt);
    return canCheck(startAt, resetAt) ? Math.min(heldUntil, startAt) : heldUntil;
  }

  /**
   * The other parameters are those of `nextAt`.
   * @param isHeld the quota holds the call back
   * @returns whether the call exceeds what was stated
   */
  take(now: number, isHeld: boolean, remaining: number, resetAt: number, uncounted: number): boolean {
    if (now >= (this.#check?.until ?? -Infinity)) {
      // While it is disbelieved, calls shortly before a reset count too: refused ones outweigh them where the statement is true.
      const isDisbelieved = this.isDisbelieved(now);
      const isDue = isHeld && (isDisbelieved ? now < resetAt : now >= this.#checkAt && canCheck(now, resetAt));
      const until = isDisbelieved ? resetAt : resetAt - RESET_TOLERANCE_MS;
      this.#check = isDue ? { since: now, until, left: remaining, sent: 0, accepted: 0 } : undefined;
    }
    const check = this.#check;
    if (check === undefined) return false;
    if (check.left >= 1 && remaining - uncounted >= 1) {
      check.left--;
      return false;
    }
    check.left = 0;
    check.sent++;
    return true;
  }

  /** A request waits for the quota. */
  recordHeld(now: number): void {
    if (this.#checkAt === Infinity) this.#checkAt = now + this.#checkIntervalMs;
  }

  /** @param sentAt of a call that exceeded what was stated @param limit calls of the quota */
  recordAccepted(now: number, sentAt: number, limit: number): void {
    if (this.#check === undefined || sentAt < this.#check.since) return;
    this.#check.accepted++;
    const enough = Math.max(MIN_CONTRADICTIONS, limit * CONTRADICTED_SHARE);
    this.#contradictions = Math.min(this.#contradictions + 1, MAX_CONTRADICTIONS * enough);
    if (this.#contradictions < enough) return;
    if (!this.isDisbelieved(now)) this.#disbeliefMs = Math.min(HOUR_MS, this.#disbeliefMs * 2);
    this.#disbelievedUntil = now + this.#disbeliefMs;
  }

  /** @param sentAt of a call that exceeded what was stated @param periodMs of the quota */
  recordRefused(sentAt: number, periodMs: number): void {
    if (this.#check === undefined || sentAt < this.#check.since) return;
    this.#contradictions -= ACCEPTED_PER_REFUSAL;
    if (this.#contradictions >= 0) return;
    this.#check = undefined;
    this.#contradictions = 0;
    this.#disbelievedUntil = -Infinity;
    const longestMs = Math.max(HOUR_MS, periodMs * CHECK_GROWTH);
    const nextMs = Math.max(NEXT_CHECK_AFTER_MS, periodMs, this.#checkIntervalMs * CHECK_GROWTH);
    this.#checkIntervalMs = Math.min(longestMs, nextMs);
    this.#checkAt = Infinity;
  }
}

function canCheck(now: number, resetAt: number): boolean {
  return now + MIN_CHECK_MS <= resetAt - RESET_TOLERANCE_MS;
}
