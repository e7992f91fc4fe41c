/**
 * What accepted responses state as remaining (pure): one tracker for each quota, and the tightest decides. Refusals are the
 * pause's, for all stated values.
 */
import type { CallResult, PermitGrant } from './gate.ts';
import { QuotaTracker, type QuotaCircumstances } from './quota-tracker.ts';
import type { StatedQuota } from '../../platform/rate-limit-fields/stated-quota.ts';

/** With more quotas than this, the one that was stated longest ago goes. */
const MAX_TRACKERS = 16;

export class StatedAllowance {
  readonly #trackers = new Map<string, QuotaTracker>();
  readonly #circumstances: QuotaCircumstances;

  constructor(circumstances: QuotaCircumstances) {
    this.#circumstances = circumstances;
  }

  nextAt(now: number): number {
    let nextAt = -Infinity;
    for (const tracker of this.#trackers.values()) nextAt = Math.max(nextAt, tracker.nextAt(now));
    return nextAt;
  }

  /** Until when nothing remains, as stated; -Infinity otherwise. */
  nthAt(now: number): number {
    let until = -Infinity;
    for (const tracker of this.#trackers.values()) until = Math.max(until, tracker.exhaustedUntil(now));
    return until;
  }

  /** True when a quota was used up and has reset since. */
  isResetProbeDue(now: number): boolean {
    for (const tracker of this.#trackers.values()) if (tracker.isResetProbeDue(now)) return true;
    return false;
  }

  /** A request has to wait. */
  recordHeld(now: number): void {
    for (const tracker of this.#trackers.values()) tracker.recordHeld(now);
  }

  /** Name of the field that holds back the next call; undefined without one. */
  heldBy(now: number): string | undefined {
    let last = { at: now, field: undefined as string | undefined };
    for (const tracker of this.#trackers.values()) {
      const at = tracker.nextAt(now);
      if (at > last.at) last = { at, field: tracker.field };
    }
    return last.field;
  }

  /** Names of the fields beyond which calls are accepted. */
  disbelieved(now: number): string[] {
    const fields = [...this.#trackers.values()].flatMap((tracker) =>
      tracker.trust.isDisbelieved(now) ? [tracker.field] : [],
    );
    return [...new Set(fields.filter((field) => field !== undefined))];
  }

  /** A refusal of this call says only that a stated quota is right. */
  explains({ exceedsStated = false }: PermitGrant): boolean {
    return exceedsStated && [...this.#trackers.values()].some((tracker) => tracker.trust.isChecked);
  }

  /** To be called before the call is in flight, or the last one that went. @returns whether it exceeds what is stated */
  take(now: number): boolean {
    let isExcess = false;
    for (const [key, tracker] of this.#trackers) {
      if (tracker.isStale(now)) this.#trackers.delete(key);
      else if (tracker.take(now)) isExcess = true;
    }
    return isExcess;
  }

  settle(now: number, call: PermitGrant, { kind, quotas }: CallResult): void {
    if (call.exceedsStated === true && kind !== 'ended')
      for (const tracker of this.#trackers.values()) tracker.recordExcess(now, call.at, kind === 'accepted');
    if (kind === 'accepted') this.#recordAccepted(now, call, quotas);
    // A call without a response may have been counted by the upstream.
    else if (kind === 'ended') for (const tracker of this.#trackers.values()) tracker.recordUncounted(call.at);
    else for (const tracker of this.#trackers.values()) tracker.recordRefused(call.at);
  }

  #recordAccepted(now: number, call: PermitGrant, quotas: readonly StatedQuota[]): void {
    if (quotas.length === 0 && this.#trackers.size === 0) return;
    const stated = this.#selectUsable(quotas);
    for (const [key, tracker] of this.#trackers) if (!stated.has(key)) tracker.recordUncounted(call.at);
    for (const [key, quota] of stated) {
      const tracker = this.#trackers.get(key) ?? this.#createTracker(key);
      tracker.update(now, call, quota);
    }
  }

  #selectUsable(quotas: readonly StatedQuota[]): Map<string, StatedQuota> {
    const usable = new Map<string, StatedQuota>();
    for (const quota of quotas) {
      const key = keyOf(quota, usable);
      if (isUsable(quota) || (quota.remaining !== undefined && this.#trackers.has(key))) usable.set(key, quota);
    }
    return usable;
  }

  #createTracker(key: string): QuotaTracker {
    if (this.#trackers.size >= MAX_TRACKERS) {
      const [oldest] = [...this.#trackers].sort(([, one], [, other]) => one.observedAt - other.observedAt);
      this.#trackers.delete(oldest?.[0] ?? key);
    }
    const tracker = new QuotaTracker(this.#circumstances);
    this.#trackers.set(key, tracker);
    return tracker;
  }
}

/** Whether a quota states how many calls may be made, and within which time. */
function isUsable({ quota, windowMs, remaining, resetInMs }: StatedQuota): boolean {
  return (
    (remaining ?? quota) !== undefined && (windowMs ?? (remaining === undefined ? undefined : resetInMs)) !== undefined
  );
}

/** Quotas have no names: what they allow identifies them, and equal ones are numbered. */
function keyOf({ quota, windowMs }: StatedQuota, taken: ReadonlyMap<string, unknown>): string {
  const name = `${quota ?? '?'} in ${windowMs ?? '?'}`;
  let key = name;
  for (let count = 2; taken.has(key); count++) key = `${name}, ${count}`;
  return key;
}
