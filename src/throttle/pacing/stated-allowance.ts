/**
 * What accepted answers say is left, of every quota that they state: the tightest at each moment counts (pure). It only counts;
 * a refusal, whatever it states, is the pause's. How one quota is kept to is quota-account.ts's.
 */
import type { PermitGrant } from './permit-grant.ts';
import type { CallLog } from '../adaptive/call-log.ts';
import { QuotaTracker } from './quota-tracker.ts';
import type { RateLimitSignal } from '../signals/rate-limit-signal.ts';
import type { StatedQuota } from '../signals/stated-quota.ts';

/** More quotas than this are noise: the one heard of least lately goes. */
const MAX_TRACKERS = 16;

/** Nothing stated, or an account for each quota. */
export class StatedAllowance {
  readonly #trackers = new Map<string, QuotaTracker>();
  readonly #inFlightCalls: CallLog;
  #lastSentAt = -Infinity;
  #maxPauseMs: number;

  /**
   * @param maxPauseMs a reset further away than this is probed before it comes
   * @param inFlightCalls calls without a response; the governor adds and removes them
   */
  constructor(maxPauseMs: number, inFlightCalls: CallLog) {
    this.#inFlightCalls = inFlightCalls;
    this.#maxPauseMs = maxPauseMs;
  }

  /** For resets that are heard of from now on. */
  setMaxPause(maxPauseMs: number): void {
    this.#maxPauseMs = maxPauseMs;
    for (const account of this.#trackers.values()) account.setMaxHold(maxPauseMs);
  }

  /** As if nothing had been stated. */
  forget(): void {
    this.#trackers.clear();
  }

  /** When the next call may go; a past instant or -Infinity: at once. */
  openAt(now: number): number {
    let openAt = -Infinity;
    for (const account of this.#trackers.values())
      openAt = Math.max(openAt, account.openAt(now, this.#countUncounted(account), this.#lastSentAt));
    return openAt;
  }

  /** Until when nothing is left by what was stated; -Infinity otherwise. */
  exhaustedUntil(now: number): number {
    let until = -Infinity;
    for (const account of this.#trackers.values()) until = Math.max(until, account.exhaustedUntil(now));
    return until;
  }

  /** True when a quota was used up and its time has run out since. */
  isProbeDue(now: number): boolean {
    for (const account of this.#trackers.values()) if (account.isProbeDue(now)) return true;
    return false;
  }

  /** A call goes out. */
  recordSent(now: number): void {
    for (const [key, account] of this.#trackers) {
      if (account.isStale(now)) this.#trackers.delete(key);
      else account.recordSent(now, this.#countUncounted(account));
    }
    this.#lastSentAt = now;
  }

  /** A call was answered, and not refused. */
  recordAccepted(now: number, call: PermitGrant, hint: RateLimitSignal | undefined): void {
    if (hint === undefined && this.#trackers.size === 0) return;
    const stated = this.#readQuotas(hint?.quotas ?? []);
    for (const [key, account] of this.#trackers) if (!stated.has(key)) account.recordUncounted(call.at);
    for (const [key, quota] of stated) {
      const account = this.#trackers.get(key) ?? this.#createTracker(key);
      account.update(now, call, quota, this.#countUncounted(account));
    }
  }

  /** A call was refused. */
  recordRefused({ at }: PermitGrant): void {
    for (const account of this.#trackers.values()) account.recordRefused(at);
  }

  /** A call ended without an answer: it may have been counted. */
  recordEnded({ at }: PermitGrant): void {
    for (const account of this.#trackers.values()) account.recordUncounted(at);
  }

  #readQuotas(quotas: readonly StatedQuota[]): Map<string, StatedQuota> {
    const read = new Map<string, StatedQuota>();
    for (const quota of quotas) {
      const name = keyOf(quota, read);
      if (isUsable(quota) || (quota.remaining !== undefined && this.#trackers.has(name))) read.set(name, quota);
    }
    return read;
  }

  #countUncounted(account: QuotaTracker): number {
    return this.#inFlightCalls.count(account.countedUntil, Infinity);
  }

  #createTracker(key: string): QuotaTracker {
    if (this.#trackers.size >= MAX_TRACKERS) {
      let oldest = key;
      let heardAt = Infinity;
      for (const [name, account] of this.#trackers) {
        if (account.observedAt < heardAt) {
          heardAt = account.observedAt;
          oldest = name;
        }
      }
      this.#trackers.delete(oldest);
    }
    const account = new QuotaTracker(this.#maxPauseMs);
    this.#trackers.set(key, account);
    return account;
  }
}

/** Something can be kept to: so many calls, within some time. */
function isUsable({ quota, windowMs, remaining, resetInMs }: StatedQuota): boolean {
  return (
    (remaining ?? quota) !== undefined && (windowMs ?? (remaining === undefined ? undefined : resetInMs)) !== undefined
  );
}

/** Policies are told apart by what they allow; of equal ones the order counts. */
function keyOf({ quota, windowMs }: StatedQuota, taken: ReadonlyMap<string, unknown>): string {
  const name = `${quota ?? '?'} in ${windowMs ?? '?'}`;
  let key = name;
  for (let count = 2; taken.has(key); count++) key = `${name}, ${count}`;
  return key;
}
