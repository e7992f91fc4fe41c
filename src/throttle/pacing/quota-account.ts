/**
 * What is left of one stated quota (pure; draft-ietf-httpapi-ratelimit-headers §5: never more than `r` calls within `t`). Answers
 * overtake one another and calls are under way that no answer has counted yet: what is not known to be counted counts against us.
 * The first three quarters may be used at once, so that an application under its limit never waits; the last one is spread
 * over the time that is left, so that many callers share it.
 */
import type { Grant } from './grant.ts';
import type { StatedQuota } from '../signals/stated-quota.ts';

/** Of a quota: what is left of it when it begins to be spread. */
const SPREAD_SHARE = 0.25;
/** Spread thinner than this, calls would be turned away while some are left. */
const LONGEST_SPACING_MS = 10_000;
/** Calls sent this much apart arrive in the order in which they were sent. */
const REORDERED_MS = 100;
/** Resets are told in whole seconds, rounded up by most. */
const ROUNDED_MS = 1_000;
/** Calls that must be gone before it is judged how many of them were ours. */
const TELLING_CALLS = 10;
const LEAST_SHARE = 0.01;

/** An account exists from the first answer that states the quota. */
export class QuotaAccount {
  /** Calls in a window; while that is not stated, the most that was left. */
  #limit = 0;
  #periodMs = 0;
  /** What was left by the answer that knows most ... */
  #left = 0;
  /** ... to a call that was sent at this instant. */
  #sentAt = -Infinity;
  #heardAt = -Infinity;
  #resetAt = -Infinity;
  #askAt = Infinity;
  /** The reset has passed, and no answer has told what is left since. */
  #isAssumed = true;
  #isStated = true;
  /** Answers say what is left, and not only what is allowed. */
  #tellsLeft = false;
  /** What must be added to a reset that is rounded down. */
  #lagMs = 0;
  /** Of the calls that use the quota up: how many are ours. */
  #ownShare = 1;
  #leftAtFirst = 0;
  #ownCalls = 0;
  /** Since when nothing has come in: what was left then, and the number of that call. */
  #leftSince = 0;
  #serialSince = 0;
  #longestHoldMs: number;

  /** @param longestHoldMs a reset further away than this is not waited for without asking again */
  constructor(longestHoldMs: number) {
    this.#longestHoldMs = longestHoldMs;
  }

  /** From the next answer on. */
  setLongestHold(longestHoldMs: number): void {
    this.#longestHoldMs = longestHoldMs;
  }

  /** When the answer that knows most was heard. */
  get heardAt(): number {
    return this.#heardAt;
  }

  /** Calls sent before this instant have been counted. */
  get countedUntil(): number {
    return this.#sentAt - REORDERED_MS;
  }

  /** True when a reset has passed since anything was stated, and another one. */
  isForgotten(now: number): boolean {
    return !this.#isStated && now >= this.#resetAt;
  }

  /** Nothing is left until this instant; -Infinity: something is. */
  usedUpUntil(now: number): number {
    const until = this.#reopensAt;
    return this.#left < 1 && now < until && !(this.#tellsLeft && this.#isAssumed) ? until : -Infinity;
  }

  /** True when nothing was left and its time has come since: one call is to find out. */
  hasRunOut(now: number): boolean {
    return this.#left < 1 && now >= this.#reopensAt;
  }

  /**
   * When the next call may go; -Infinity: at once.
   * @param unheard calls under way that may not have been counted
   */
  openAt(now: number, unheard: number, lastSentAt: number): number {
    if (now >= this.#resetAt) return this.#leftAfterReset(now, unheard) >= 1 ? -Infinity : now + this.#inflowMs;
    if (now >= this.#askAt) return -Infinity;
    const ours = this.#left * this.#ownShare - unheard;
    // An answer may tell more at any time, and none will tell less.
    if (ours < 1)
      return this.#tellsLeft && this.#isAssumed ? this.#heardAt + (1 - ours) * this.#inflowMs : this.#reopensAt;
    if (this.#left - unheard >= this.#limit * SPREAD_SHARE) return -Infinity;
    const leftMs = this.#resetAt - lastSentAt;
    const surelyMs = Math.max(leftMs - ROUNDED_MS, leftMs / 3);
    return lastSentAt + Math.min(LONGEST_SPACING_MS, surelyMs / (ours + 1));
  }

  /** A call goes out at `now`. */
  spend(now: number, unheard: number): void {
    if (now >= this.#resetAt) this.#renew(now, unheard);
    else if (now >= this.#askAt) this.#askAt = now + this.#longestHoldMs;
  }

  /**
   * An answer stated the quota.
   * @param call the answered one
   * @param unheard calls under way that this answer may not have counted
   */
  learn(now: number, call: Grant, stated: StatedQuota, unheard: number): void {
    // A reset that is told as an instant may have passed while the answer was under way.
    const { quota, windowMs, remaining, resetInMs = windowMs ?? 0 } = stated;
    this.#isStated = true;
    this.#limit = quota ?? Math.max(this.#limit, remaining ?? 0);
    this.#periodMs = windowMs ?? Math.max(this.#periodMs, resetInMs);
    if (this.#heardAt === -Infinity && remaining === undefined) this.#begin(now, call, this.#limit, this.#periodMs);
    this.#tellsLeft ||= remaining !== undefined;
    if (remaining === undefined) this.uncounted(call.at);
    else if (call.at >= this.countedUntil) this.#correct(now, call, remaining, resetInMs + this.#lagMs, unheard);
  }

  /** A call ended, and no answer has said whether it was counted. */
  uncounted(sentAt: number): void {
    if (sentAt < this.countedUntil) return;
    this.#left--;
    this.#ownCalls++;
  }

  /** A call was refused: if that is all that a reset has brought, resets are told too early. */
  refused(sentAt: number): void {
    this.#isStated = true;
    if (this.#isAssumed && sentAt - this.#heardAt < ROUNDED_MS) this.#lagMs = ROUNDED_MS;
  }

  get #reopensAt(): number {
    return Math.min(this.#resetAt, this.#askAt);
  }

  #correct(now: number, call: Grant, remaining: number, resetInMs: number, unheard: number): void {
    const isNewer = call.at > this.#sentAt + REORDERED_MS;
    const isSettled = !this.#isAssumed && now < this.#resetAt;
    this.#ownCalls++;
    if (isSettled && remaining > this.#left && !isNewer) return;
    if (!isSettled || remaining > this.#left) this.#begin(now, call, remaining, resetInMs);
    else this.#goOn(now, call, remaining, resetInMs);
    this.#isAssumed = false;
    this.#judgeShare(unheard);
  }

  #begin(now: number, { at, serial }: Pick<Grant, 'at' | 'serial'>, left: number, resetInMs: number): void {
    this.#leftAtFirst = left;
    this.#ownCalls = 0;
    this.#sentAt = at;
    this.#leftSince = -Infinity;
    this.#note(now, serial, left, resetInMs);
  }

  /** Not more is left than before. */
  #goOn(now: number, { at, serial }: Grant, remaining: number, resetInMs: number): void {
    this.#sentAt = Math.max(this.#sentAt, at);
    this.#note(now, serial, remaining, resetInMs);
  }

  #note(now: number, serial: number, left: number, resetInMs: number): void {
    this.#left = left;
    this.#heardAt = now;
    this.#askAt = now + this.#longestHoldMs;
    // While all are gone that were sent it is one reset, told in whole seconds again and again: the earliest is right.
    if (this.#leftSince - left < serial - this.#serialSince) {
      this.#leftSince = left;
      this.#serialSince = serial;
      this.#resetAt = Infinity;
    }
    this.#resetAt = Math.min(this.#resetAt, now + resetInMs);
  }

  #judgeShare(unheard: number): void {
    const gone = this.#leftAtFirst - this.#left;
    if (gone < TELLING_CALLS) return;
    this.#ownShare = Math.min(1, Math.max(LEAST_SHARE, (this.#ownCalls + unheard) / gone));
  }

  /** Milliseconds for each call that comes in at the stated rate. */
  get #inflowMs(): number {
    return this.#periodMs / Math.max(1, this.#limit);
  }

  /** After a reset there is more: as much as comes in at the stated rate, until an answer tells. */
  #leftAfterReset(now: number, unheard: number): number {
    const grown = this.#periodMs > 0 ? Math.max(0, now - this.#heardAt) / this.#inflowMs : this.#limit;
    // One that is under way already finds out.
    const least = unheard > 0 ? 0 : 1;
    return Math.max(least, Math.min(this.#limit, Math.max(0, this.#left - unheard) + grown));
  }

  #renew(now: number, unheard: number): void {
    this.#begin(now, { at: now, serial: 0 }, this.#leftAfterReset(now, unheard), this.#periodMs);
    this.#isAssumed = true;
    this.#isStated = false;
  }
}
