/**
 * What is left of one stated quota (pure; draft-ietf-httpapi-ratelimit-headers §5: never more than `r` calls within `t`). Answers
 * overtake one another and calls are under way that no answer has counted yet: what is not known to be counted counts against us.
 * The first three quarters may be used at once, so that an application under its limit never waits; the last one is spread
 * over the time that is left, so that many callers share it.
 */
import type { PermitGrant } from './permit-grant.ts';
import type { StatedQuota } from '../signals/stated-quota.ts';

/** Of a quota: what is left of it when it begins to be spread. */
const SPREAD_THRESHOLD = 0.25;
/** Spread thinner than this, calls would be turned away while some are left. */
const MAX_SPACING_MS = 10_000;
/** Calls sent this much apart arrive in the order in which they were sent. */
const REORDER_WINDOW_MS = 100;
/** Resets are told in whole seconds, rounded up by most. */
const ROUNDING_MS = 1_000;
/** Calls that must be gone before it is judged how many of them were ours. */
const MIN_CALLS_FOR_SHARE = 10;
const MIN_SHARE = 0.01;

/** An account exists from the first answer that states the quota. */
export class QuotaTracker {
  /** Calls in a window; while that is not stated, the most that was left. */
  #limit = 0;
  #periodMs = 0;
  /** What was left by the answer that knows most ... */
  #remaining = 0;
  /** ... to a call that was sent at this instant. */
  #sentAt = -Infinity;
  #observedAt = -Infinity;
  #resetAt = -Infinity;
  #recheckAt = Infinity;
  /** The reset has passed, and no answer has told what is left since. */
  #isAssumed = true;
  #isStated = true;
  /** Answers say what is left, and not only what is allowed. */
  #statesRemaining = false;
  /** What must be added to a reset that is rounded down. */
  #resetLagMs = 0;
  /** Of the calls that use the quota up: how many are ours. */
  #ownShare = 1;
  #remainingAtStart = 0;
  #ownCalls = 0;
  /** Since when nothing has come in: what was left then, and the number of that call. */
  #baselineRemaining = 0;
  #baselineSerial = 0;
  #maxHoldMs: number;

  /** @param longestHoldMs a reset further away than this is not waited for without asking again */
  constructor(longestHoldMs: number) {
    this.#maxHoldMs = longestHoldMs;
  }

  /** From the next answer on. */
  setMaxHold(longestHoldMs: number): void {
    this.#maxHoldMs = longestHoldMs;
  }

  /** When the answer that knows most was heard. */
  get observedAt(): number {
    return this.#observedAt;
  }

  /** Calls sent before this instant have been counted. */
  get countedUntil(): number {
    return this.#sentAt - REORDER_WINDOW_MS;
  }

  /** True when a reset has passed since anything was stated, and another one. */
  isStale(now: number): boolean {
    return !this.#isStated && now >= this.#resetAt;
  }

  /** Nothing is left until this instant; -Infinity: something is. */
  exhaustedUntil(now: number): number {
    const until = this.#reopensAt;
    return this.#remaining < 1 && now < until && !(this.#statesRemaining && this.#isAssumed) ? until : -Infinity;
  }

  /** True when nothing was left and its time has come since: one call is to find out. */
  isProbeDue(now: number): boolean {
    return this.#remaining < 1 && now >= this.#reopensAt;
  }

  /**
   * When the next call may go; -Infinity: at once.
   * @param unheard calls under way that may not have been counted
   */
  openAt(now: number, unheard: number, lastSentAt: number): number {
    if (now >= this.#resetAt)
      return this.#remainingAfterReset(now, unheard) >= 1 ? -Infinity : now + this.#refillIntervalMs;
    if (now >= this.#recheckAt) return -Infinity;
    const ours = this.#remaining * this.#ownShare - unheard;
    // An answer may tell more at any time, and none will tell less.
    if (ours < 1)
      return this.#statesRemaining && this.#isAssumed
        ? this.#observedAt + (1 - ours) * this.#refillIntervalMs
        : this.#reopensAt;
    if (this.#remaining - unheard >= this.#limit * SPREAD_THRESHOLD) return -Infinity;
    const leftMs = this.#resetAt - lastSentAt;
    const surelyMs = Math.max(leftMs - ROUNDING_MS, leftMs / 3);
    return lastSentAt + Math.min(MAX_SPACING_MS, surelyMs / (ours + 1));
  }

  /** A call goes out at `now`. */
  recordSent(now: number, unheard: number): void {
    if (now >= this.#resetAt) this.#assumeReset(now, unheard);
    else if (now >= this.#recheckAt) this.#recheckAt = now + this.#maxHoldMs;
  }

  /**
   * An answer stated the quota.
   * @param call the answered one
   * @param unheard calls under way that this answer may not have counted
   */
  update(now: number, call: PermitGrant, stated: StatedQuota, unheard: number): void {
    // A reset that is told as an instant may have passed while the answer was under way.
    const { quota, windowMs, remaining, resetInMs = windowMs ?? 0 } = stated;
    this.#isStated = true;
    this.#limit = quota ?? Math.max(this.#limit, remaining ?? 0);
    this.#periodMs = windowMs ?? Math.max(this.#periodMs, resetInMs);
    if (this.#observedAt === -Infinity && remaining === undefined)
      this.#startPeriod(now, call, this.#limit, this.#periodMs);
    this.#statesRemaining ||= remaining !== undefined;
    if (remaining === undefined) this.recordUncounted(call.at);
    else if (call.at >= this.countedUntil)
      this.#applyRemaining(now, call, remaining, resetInMs + this.#resetLagMs, unheard);
  }

  /** A call ended, and no answer has said whether it was counted. */
  recordUncounted(sentAt: number): void {
    if (sentAt < this.countedUntil) return;
    this.#remaining--;
    this.#ownCalls++;
  }

  /** A call was refused: if that is all that a reset has brought, resets are told too early. */
  recordRefused(sentAt: number): void {
    this.#isStated = true;
    if (this.#isAssumed && sentAt - this.#observedAt < ROUNDING_MS) this.#resetLagMs = ROUNDING_MS;
  }

  get #reopensAt(): number {
    return Math.min(this.#resetAt, this.#recheckAt);
  }

  #applyRemaining(now: number, call: PermitGrant, remaining: number, resetInMs: number, unheard: number): void {
    const isNewer = call.at > this.#sentAt + REORDER_WINDOW_MS;
    const isSettled = !this.#isAssumed && now < this.#resetAt;
    this.#ownCalls++;
    if (isSettled && remaining > this.#remaining && !isNewer) return;
    if (!isSettled || remaining > this.#remaining) this.#startPeriod(now, call, remaining, resetInMs);
    else this.#continuePeriod(now, call, remaining, resetInMs);
    this.#isAssumed = false;
    this.#estimateOwnShare(unheard);
  }

  #startPeriod(now: number, { at, serial }: Pick<PermitGrant, 'at' | 'serial'>, left: number, resetInMs: number): void {
    this.#remainingAtStart = left;
    this.#ownCalls = 0;
    this.#sentAt = at;
    this.#baselineRemaining = -Infinity;
    this.#store(now, serial, left, resetInMs);
  }

  /** Not more is left than before. */
  #continuePeriod(now: number, { at, serial }: PermitGrant, remaining: number, resetInMs: number): void {
    this.#sentAt = Math.max(this.#sentAt, at);
    this.#store(now, serial, remaining, resetInMs);
  }

  #store(now: number, serial: number, left: number, resetInMs: number): void {
    this.#remaining = left;
    this.#observedAt = now;
    this.#recheckAt = now + this.#maxHoldMs;
    // While all are gone that were sent it is one reset, told in whole seconds again and again: the earliest is right.
    if (this.#baselineRemaining - left < serial - this.#baselineSerial) {
      this.#baselineRemaining = left;
      this.#baselineSerial = serial;
      this.#resetAt = Infinity;
    }
    this.#resetAt = Math.min(this.#resetAt, now + resetInMs);
  }

  #estimateOwnShare(unheard: number): void {
    const gone = this.#remainingAtStart - this.#remaining;
    if (gone < MIN_CALLS_FOR_SHARE) return;
    this.#ownShare = Math.min(1, Math.max(MIN_SHARE, (this.#ownCalls + unheard) / gone));
  }

  /** Milliseconds for each call that comes in at the stated rate. */
  get #refillIntervalMs(): number {
    return this.#periodMs / Math.max(1, this.#limit);
  }

  /** After a reset there is more: as much as comes in at the stated rate, until an answer tells. */
  #remainingAfterReset(now: number, unheard: number): number {
    const grown = this.#periodMs > 0 ? Math.max(0, now - this.#observedAt) / this.#refillIntervalMs : this.#limit;
    // One that is under way already finds out.
    const least = unheard > 0 ? 0 : 1;
    return Math.max(least, Math.min(this.#limit, Math.max(0, this.#remaining - unheard) + grown));
  }

  #assumeReset(now: number, unheard: number): void {
    this.#startPeriod(now, { at: now, serial: 0 }, this.#remainingAfterReset(now, unheard), this.#periodMs);
    this.#isAssumed = true;
    this.#isStated = false;
  }
}
