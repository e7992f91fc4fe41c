/**
 * What remains of one stated quota (pure; draft-ietf-httpapi-ratelimit-headers §5: never more than `r` calls within `t`). Responses
 * overtake one another, and calls in flight are in no response yet: a call that may not have been counted counts as used. Three
 * quarters may be used at once, so that an application below its limit never waits; the last quarter is spread over the time left.
 */
import type { CallLog } from '../adaptive/call-log.ts';
import type { PermitGrant } from './gate.ts';
import { QuotaTrust } from './quota-trust.ts';
import type { StatedQuota } from '../../platform/rate-limit-fields/stated-quota.ts';

/** Share of the quota below which calls are spread. */
const SPREAD_THRESHOLD = 0.25;
/** With larger gaps requests would be rejected while calls remain. */
const MAX_SPACING_MS = 10_000;
/** Calls that were sent this far apart arrive in order. */
const REORDER_WINDOW_MS = 100;
/** Resets are stated in whole seconds, and most servers round up. */
const ROUNDING_MS = 1_000;
/** Used calls after which our share of them is estimated. */
const MIN_CALLS_FOR_SHARE = 10;
const MIN_SHARE = 0.01;

/** What all quotas of a throttle read. */
export interface QuotaCircumstances {
  /** A reset further away than this is probed before it comes. */
  readonly maxPauseMs: () => number;
  /** Calls without a response; the governor adds and removes them. */
  readonly inFlightCalls: CallLog;
  /** When the last call went. */
  readonly lastSentAt: () => number;
}

/** Exists from the first response that states the quota. */
export class QuotaTracker {
  /** Calls per window; while that is not stated, the highest remainder. */
  #limit = 0;
  #periodMs = 0;
  /** What remained in the newest response ... */
  #remaining = 0;
  /** ... whose call was sent at this instant. */
  #sentAt = -Infinity;
  #observedAt = -Infinity;
  #resetAt = -Infinity;
  #recheckAt = Infinity;
  /** The reset has passed, and no response has stated the remainder since. */
  #isAssumed = true;
  #isStated = true;
  /** Responses state the remainder, and not only the quota. */
  #statesRemaining = false;
  /** Added to resets of a server that rounds down. */
  #resetLagMs = 0;
  /** Our share of the calls that use the quota. */
  #ownShare = 1;
  #remainingAtStart = 0;
  #ownCalls = 0;
  /** Remainder and serial at the last time when calls were added to the quota. */
  #baselineRemaining = 0;
  #baselineSerial = 0;
  readonly #circumstances: QuotaCircumstances;
  readonly trust = new QuotaTrust();
  /** Name of the header field that states the remainder, or else the quota. */
  field: string | undefined;

  constructor(circumstances: QuotaCircumstances) {
    this.#circumstances = circumstances;
  }

  /** When the newest response came. */
  get observedAt(): number {
    return this.#observedAt;
  }

  /** A request waits for this quota. */
  recordHeld(now: number): void {
    if (this.#heldUntil(now, this.#countUncounted()) > now) this.trust.recordHeld(now);
  }

  /** True when two resets have passed since the last statement. */
  isStale(now: number): boolean {
    return !this.#isStated && now >= this.#resetAt && !this.trust.isDisbelieved(now);
  }

  /** Nothing remains until this instant; -Infinity otherwise. */
  exhaustedUntil(now: number): number {
    const until = this.#reopensAt;
    if (this.trust.isLifted(now)) return -Infinity;
    return this.#remaining < 1 && now < until && !(this.#statesRemaining && this.#isAssumed) ? until : -Infinity;
  }

  /** True when nothing remained and the reset has passed: one call goes first. */
  isResetProbeDue(now: number): boolean {
    return this.#remaining < 1 && now >= this.#reopensAt && !this.trust.isDisbelieved(now);
  }

  /** When the next call may go; -Infinity: now. */
  nextAt(now: number): number {
    const uncounted = this.#countUncounted();
    const heldUntil = this.#heldUntil(now, uncounted);
    if (heldUntil <= now) return heldUntil;
    return this.trust.nextAt(now, heldUntil, this.#remaining, this.#trustedUntil, uncounted);
  }

  /**
   * To be called before the call is in flight, or the last one that went.
   * @returns whether it exceeds what is stated
   */
  take(now: number): boolean {
    const uncounted = this.#countUncounted();
    const isHeld = this.#heldUntil(now, uncounted) > now;
    const isExcess = this.trust.take(now, isHeld, this.#remaining, this.#trustedUntil, uncounted);
    if (now >= this.#resetAt) this.#assumeReset(now, uncounted);
    else if (now >= this.#recheckAt) this.#recheckAt = now + this.#circumstances.maxPauseMs();
    return isExcess;
  }

  /** A call that exceeded what is stated was accepted, or refused. */
  recordExcess(now: number, sentAt: number, isAccepted: boolean): void {
    if (isAccepted) this.trust.recordAccepted(now, sentAt, this.#limit);
    else this.trust.recordRefused(sentAt, this.#periodMs);
  }

  /** What was stated last holds until this instant; -Infinity when that is assumed. */
  get #trustedUntil(): number {
    return this.#statesRemaining && this.#isAssumed ? -Infinity : this.#resetAt;
  }

  /** Calls sent before this instant have been counted. */
  get #countedUntil(): number {
    return this.#sentAt - REORDER_WINDOW_MS;
  }

  /** Calls in flight that may not have been counted. */
  #countUncounted(): number {
    return this.#circumstances.inFlightCalls.count(this.#countedUntil, Infinity);
  }

  #heldUntil(now: number, uncounted: number): number {
    if (now >= this.#resetAt)
      return this.#remainingAfterReset(now, uncounted) >= 1 ? -Infinity : now + this.#refillIntervalMs;
    if (now >= this.#recheckAt) return -Infinity;
    const ours = this.#remaining * this.#ownShare - uncounted;
    // A response may state more at any time, and none states less.
    if (ours < 1)
      return this.#statesRemaining && this.#isAssumed
        ? this.#observedAt + (1 - ours) * this.#refillIntervalMs
        : this.#reopensAt;
    if (this.#remaining - uncounted >= this.#limit * SPREAD_THRESHOLD) return -Infinity;
    const lastSentAt = this.#circumstances.lastSentAt();
    const leftMs = this.#resetAt - lastSentAt;
    const surelyMs = Math.max(leftMs - ROUNDING_MS, leftMs / 3);
    return lastSentAt + Math.min(MAX_SPACING_MS, surelyMs / (ours + 1));
  }

  /** @param call whose response stated the quota */
  update(now: number, call: PermitGrant, stated: StatedQuota): void {
    // A reset that is stated as an instant may have passed on the way.
    const { quota, windowMs, remaining, resetInMs = windowMs ?? 0, field } = stated;
    this.#isStated = true;
    this.field = field;
    this.#limit = quota ?? Math.max(this.#limit, remaining ?? 0);
    this.#periodMs = windowMs ?? Math.max(this.#periodMs, resetInMs);
    if (this.#observedAt === -Infinity && remaining === undefined)
      this.#startPeriod(now, call, this.#limit, this.#periodMs);
    this.#statesRemaining ||= remaining !== undefined;
    if (remaining === undefined) this.recordUncounted(call.at);
    else if (call.at >= this.#countedUntil) this.#applyRemaining(now, call, remaining, resetInMs + this.#resetLagMs);
  }

  /** A call ended, and no response states whether it was counted. */
  recordUncounted(sentAt: number): void {
    if (sentAt < this.#countedUntil) return;
    this.#remaining--;
    this.#ownCalls++;
  }

  /** A refusal directly after a reset shows that resets are stated too early. */
  recordRefused(sentAt: number): void {
    this.#isStated = true;
    if (this.#isAssumed && sentAt - this.#observedAt < ROUNDING_MS) this.#resetLagMs = ROUNDING_MS;
  }

  get #reopensAt(): number {
    return Math.min(this.#resetAt, this.#recheckAt);
  }

  #applyRemaining(now: number, call: PermitGrant, remaining: number, resetInMs: number): void {
    const uncounted = this.#countUncounted();
    const isNewer = call.at > this.#sentAt + REORDER_WINDOW_MS;
    const isSettled = !this.#isAssumed && now < this.#resetAt;
    this.#ownCalls++;
    if (isSettled && remaining > this.#remaining && !isNewer) return;
    if (!isSettled || remaining > this.#remaining) this.#startPeriod(now, call, remaining, resetInMs);
    else {
      this.#sentAt = Math.max(this.#sentAt, call.at);
      this.#store(now, call.serial, remaining, resetInMs);
    }
    this.#isAssumed = false;
    this.#estimateOwnShare(uncounted);
  }

  #startPeriod(now: number, { at, serial }: Pick<PermitGrant, 'at' | 'serial'>, left: number, resetInMs: number): void {
    this.#remainingAtStart = left;
    this.#ownCalls = 0;
    this.#sentAt = at;
    this.#baselineRemaining = -Infinity;
    this.#store(now, serial, left, resetInMs);
  }

  #store(now: number, serial: number, left: number, resetInMs: number): void {
    this.#remaining = left;
    this.#observedAt = now;
    this.#recheckAt = now + this.#circumstances.maxPauseMs();
    // While the remainder falls with every call sent, all responses state the same reset, rounded: the earliest is right.
    if (this.#baselineRemaining - left < serial - this.#baselineSerial) {
      this.#baselineRemaining = left;
      this.#baselineSerial = serial;
      this.#resetAt = Infinity;
    }
    this.#resetAt = Math.min(this.#resetAt, now + resetInMs);
  }

  #estimateOwnShare(uncounted: number): void {
    const gone = this.#remainingAtStart - this.#remaining;
    if (gone < MIN_CALLS_FOR_SHARE) return;
    this.#ownShare = Math.min(1, Math.max(MIN_SHARE, (this.#ownCalls + uncounted) / gone));
  }

  /** Milliseconds per call at the stated rate. */
  get #refillIntervalMs(): number {
    return this.#periodMs / Math.max(1, this.#limit);
  }

  /** After a reset: what the stated rate adds, until a response states the remainder. */
  #remainingAfterReset(now: number, uncounted: number): number {
    const grown = this.#periodMs > 0 ? Math.max(0, now - this.#observedAt) / this.#refillIntervalMs : this.#limit;
    // A call in flight finds out.
    const least = uncounted > 0 ? 0 : 1;
    return Math.max(least, Math.min(this.#limit, Math.max(0, this.#remaining - uncounted) + grown));
  }

  #assumeReset(now: number, uncounted: number): void {
    this.#startPeriod(now, { at: now, serial: 0 }, this.#remainingAfterReset(now, uncounted), this.#periodMs);
    this.#isAssumed = true;
    this.#isStated = false;
  }
}
