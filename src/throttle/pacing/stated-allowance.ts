/**
 * What accepted answers say is left, of every quota that they state: the tightest at each moment counts (pure). It only counts;
 * a refusal, whatever it states, is the pause's. How one quota is kept to is quota-account.ts's.
 */
import type { Grant } from './grant.ts';
import { CallLog } from '../adaptive/call-log.ts';
import { QuotaAccount } from './quota-account.ts';
import type { RateLimitSignal } from '../signals/rate-limit-signal.ts';
import type { StatedQuota } from '../signals/stated-quota.ts';

/** More quotas than this are noise: the one heard of least lately goes. */
const MOST_ACCOUNTS = 16;
const MOST_UNDER_WAY = 65_536;
const LONGEST_CALL_MS = 86_400_000;

/** Nothing stated, or an account for each quota. */
export class StatedAllowance {
  readonly #accounts = new Map<string, QuotaAccount>();
  readonly #underWay = new CallLog(MOST_UNDER_WAY, LONGEST_CALL_MS);
  #lastSentAt = -Infinity;
  #maxPauseMs: number;

  /** @param maxPauseMs a reset further away than this is not waited for without asking again */
  constructor(maxPauseMs: number) {
    this.#maxPauseMs = maxPauseMs;
  }

  /** For resets that are heard of from now on. */
  setMaxPause(maxPauseMs: number): void {
    this.#maxPauseMs = maxPauseMs;
    for (const account of this.#accounts.values()) account.setLongestHold(maxPauseMs);
  }

  /** As if nothing had been stated. */
  forget(): void {
    this.#accounts.clear();
  }

  /** When the next call may go; a past instant or -Infinity: at once. */
  openAt(now: number): number {
    let openAt = -Infinity;
    for (const account of this.#accounts.values())
      openAt = Math.max(openAt, account.openAt(now, this.#unheard(account), this.#lastSentAt));
    return openAt;
  }

  /** Until when nothing is left by what was stated; -Infinity otherwise. */
  usedUpUntil(now: number): number {
    let until = -Infinity;
    for (const account of this.#accounts.values()) until = Math.max(until, account.usedUpUntil(now));
    return until;
  }

  /** True when a quota was used up and its time has run out since. */
  hasRunOut(now: number): boolean {
    for (const account of this.#accounts.values()) if (account.hasRunOut(now)) return true;
    return false;
  }

  /** A call goes out. */
  spend(now: number): void {
    for (const [key, account] of this.#accounts) {
      if (account.isForgotten(now)) this.#accounts.delete(key);
      else account.spend(now, this.#unheard(account));
    }
    this.#underWay.add(now);
    this.#lastSentAt = now;
  }

  /** A call was answered, and not refused. */
  accepted(now: number, call: Grant, hint: RateLimitSignal | undefined): void {
    this.#underWay.remove(call.at);
    if (hint === undefined && this.#accounts.size === 0) return;
    const stated = this.#readQuotas(hint?.quotas ?? []);
    for (const [key, account] of this.#accounts) if (!stated.has(key)) account.uncounted(call.at);
    for (const [key, quota] of stated) {
      const account = this.#accounts.get(key) ?? this.#open(key);
      account.learn(now, call, quota, this.#unheard(account));
    }
  }

  /** A call was refused. */
  refused({ at }: Grant): void {
    this.#underWay.remove(at);
    for (const account of this.#accounts.values()) account.refused(at);
  }

  /** A call ended without an answer: it may have been counted. */
  ended({ at }: Grant): void {
    this.#underWay.remove(at);
    for (const account of this.#accounts.values()) account.uncounted(at);
  }

  /** A call was not made after all. */
  giveBack({ at }: Grant): void {
    this.#underWay.remove(at);
  }

  #readQuotas(quotas: readonly StatedQuota[]): Map<string, StatedQuota> {
    const read = new Map<string, StatedQuota>();
    for (const quota of quotas) {
      const name = nameOf(quota, read);
      if (isOfUse(quota) || (quota.remaining !== undefined && this.#accounts.has(name))) read.set(name, quota);
    }
    return read;
  }

  #unheard(account: QuotaAccount): number {
    return this.#underWay.count(account.countedUntil, Infinity);
  }

  #open(key: string): QuotaAccount {
    if (this.#accounts.size >= MOST_ACCOUNTS) {
      let oldest = key;
      let heardAt = Infinity;
      for (const [name, account] of this.#accounts) {
        if (account.heardAt < heardAt) {
          heardAt = account.heardAt;
          oldest = name;
        }
      }
      this.#accounts.delete(oldest);
    }
    const account = new QuotaAccount(this.#maxPauseMs);
    this.#accounts.set(key, account);
    return account;
  }
}

/** Something can be kept to: so many calls, within some time. */
function isOfUse({ quota, windowMs, remaining, resetInMs }: StatedQuota): boolean {
  return (
    (remaining ?? quota) !== undefined && (windowMs ?? (remaining === undefined ? undefined : resetInMs)) !== undefined
  );
}

/** Policies are told apart by what they allow; of equal ones the order counts. */
function nameOf({ quota, windowMs }: StatedQuota, taken: ReadonlyMap<string, unknown>): string {
  const name = `${quota ?? '?'} in ${windowMs ?? '?'}`;
  let key = name;
  for (let count = 2; taken.has(key); count++) key = `${name}, ${count}`;
  return key;
}
