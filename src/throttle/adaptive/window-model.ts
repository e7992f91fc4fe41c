/**
 * A number of calls per window of time (pure), in three kinds: `sliding-window` counts the time before each call,
 * `fixed-window` follows the upstream's clock, `first-call-window` opens with the first call after the previous window. Where
 * windows begin is inferred from when the upstream refused and accepted again. A call that may or may not lie in a window (jitter, no
 * response yet, uncertain start) counts for the upper bound and not for the lower one, so uncertainty widens the bounds and never
 * falsifies them.
 */
import type { CallLog } from './call-log.ts';
import { type Evidence, LimiterModel, RESTORED_REFUSALS } from './limiter-model.ts';

export type WindowKind = 'sliding-window' | 'fixed-window' | 'first-call-window';

/** The window in which a call was counted begins between these two instants. */
interface WindowStart {
  readonly earliestAt: number;
  readonly latestAt: number;
  /** Calls that certainly lie in the window although they may have been sent before `latestAt`. */
  readonly certainCalls: number;
}

/** How cautiously a window is used, as shares. */
export interface WindowPolicy {
  /** Share of the limit that may be saved up and spent at once. */
  readonly burstShare: number;
  /** Share of the window: the longest distance to keep from its ends because of jitter. */
  readonly guardShare: number;
}

/** The limit is known when the lower bound is at least this share of the upper one. */
const KNOWN_SHARE = 0.97;
/** Calls closer together than this were sent at once. */
const SAME_INSTANT_MS = 0.5;
/** A model is usable while its window's start is known better than this share of the window. */
const MAX_START_UNCERTAINTY = 0.9;

/** The bounds are calls per window. */
export class WindowModel extends LimiterModel {
  readonly kind: WindowKind;
  readonly windowMs: number;
  readonly #counted: CallLog;
  readonly #policy: WindowPolicy;
  /** One window began between these instants; NaN while unknown, and always for sliding windows. */
  #earliestStartAt = NaN;
  #latestStartAt = NaN;
  /** Restored: usable before the start is known; until then the window is taken for a sliding one, which is stricter. */
  #isRestored = false;

  /** @param counted the calls that this limiter counts: those not refused, or all */
  constructor(kind: WindowKind, windowMs: number, counted: CallLog, policy: WindowPolicy) {
    super();
    this.kind = kind;
    this.windowMs = windowMs;
    this.#counted = counted;
    this.#policy = policy;
  }

  get isConsistent(): boolean {
    // Limiters with large limits approximate; those with small ones are exact.
    const slack = this.upperBound < 10 || this.upperBound === Infinity ? 0 : 1 + this.upperBound / 100;
    return this.upperBound >= 1 && this.lowerBound <= this.upperBound + slack;
  }

  get isUsable(): boolean {
    if (this.upperBound === Infinity || this.lowerBound < 0.6 * this.upperBound) return false;
    if (this.kind === 'sliding-window') return true;
    return this.#isStartKnown ? this.#startUncertaintyMs < MAX_START_UNCERTAINTY * this.windowMs : this.#isRestored;
  }

  get limit(): number {
    const proven = Math.min(this.lowerBound, this.upperBound);
    const isKnown = proven >= KNOWN_SHARE * this.upperBound;
    if (this.explainedRefusals > 1)
      return Math.max(proven, isKnown ? Math.round(this.upperBound * 0.995) : Math.floor(this.upperBound * 0.99));
    return isKnown ? proven : Math.ceil((proven + this.upperBound) / 2);
  }

  get rate(): number {
    return (this.limit * 1000) / this.windowMs;
  }

  get burst(): number {
    return Math.max(1, Math.floor(this.limit * this.#policy.burstShare));
  }

  recordAccepted(evidence: Evidence): void {
    if (!this.#isLogComplete(evidence.at)) return;
    const start = this.#findWindowStart(evidence.at, evidence.jitterMs);
    this.lowerBound = Math.max(this.lowerBound, this.#minCallsBefore(evidence, start) + 1);
  }

  recordRefused(evidence: Evidence): void {
    const { at, jitterMs } = evidence;
    if (!this.#isLogComplete(at)) return;
    const start = this.#findWindowStart(at, jitterMs);
    const atMost = this.#counted.count((start?.earliestAt ?? at - this.windowMs) - jitterMs, at + jitterMs);
    if (start !== undefined) this.lowerBound = Math.max(this.lowerBound, this.#minCallsBefore(evidence, start));
    this.lowerUpperBound(atMost, evidence.isInformative, atMost < this.upperBound * KNOWN_SHARE - 1);
    if (this.kind === 'fixed-window' && this.#isStartKnown) this.#narrowStart(evidence);
  }

  /**
   * A used-up window holds as many calls as its limit, so it began before the first of them and after the call before that one. After
   * a stated wait no call shows when the window reopened, so this is all that is known of its start.
   */
  #narrowStart({ at, jitterMs, pending }: Evidence): void {
    const certainlyBefore = this.#counted.firstIndexFrom(at - jitterMs);
    const possiblyBefore = this.#counted.firstIndexFrom(at + jitterMs);
    const atMost = this.upperBound + pending.count(at - this.windowMs - jitterMs, at);
    const earliestAt = this.#counted.at(certainlyBefore - atMost - 1) - jitterMs;
    const latestAt = this.#counted.at(possiblyBefore - Math.max(1, this.lowerBound)) + jitterMs;
    // NaN, when the log is too short, is not within the window either.
    if (!(latestAt - earliestAt <= this.windowMs)) return;
    const { from, to } = this.#intersectWithStart(earliestAt, latestAt);
    if (from > to) return;
    this.#earliestStartAt = from;
    this.#latestStartAt = to;
  }

  override recordReopening(refusedAt: number, acceptedAt: number, jitterMs: number): void {
    if (this.kind === 'sliding-window') return;
    // The first call after the refused ones opens a window that begins with a call.
    const opener = this.#counted.at(this.#counted.firstIndexFrom(refusedAt + SAME_INSTANT_MS));
    let from = (this.kind === 'first-call-window' ? Math.min(opener, acceptedAt) : refusedAt) - jitterMs;
    let to = acceptedAt + jitterMs;
    if (to - from > this.windowMs) return;
    if (this.kind === 'fixed-window' && this.#isStartKnown) {
      ({ from, to } = this.#intersectWithStart(from, to));
      if (from > to) {
        this.invalidate();
        return;
      }
    }
    this.#earliestStartAt = from;
    this.#latestStartAt = to;
  }

  override openAt(now: number, jitterMs: number): number {
    const guardMs = this.#guardMs(jitterMs);
    if (!this.#isStartKnown) return this.#slidingOpenAt(now, guardMs);
    if (this.kind === 'first-call-window') this.#advanceWindow(now, jitterMs);
    const startAt = this.#estimateStart(now, guardMs);
    const marginMs = this.#isStartUncertain(guardMs) ? 0 : 2 * guardMs + this.#startUncertaintyMs;
    const used = this.#counted.size - this.#counted.firstIndexFrom(startAt - marginMs);
    return used < this.limit ? -Infinity : startAt + this.windowMs;
  }

  override isFirstCallOfWindow(now: number, jitterMs: number): boolean {
    // The other kinds have no start to be wrong about: their windows begin with any call.
    if (this.kind !== 'fixed-window' || !this.#isStartKnown) return false;
    const startAt = this.#estimateStart(now, this.#guardMs(jitterMs));
    return (
      this.#counted.count(startAt, Infinity) === 0 &&
      this.#counted.count(startAt - this.windowMs, startAt) >= this.limit - 1
    );
  }

  wouldRefuse(now: number, jitterMs: number): boolean {
    return this.openAt(now, jitterMs) > now;
  }

  override reset(): void {
    super.reset();
    this.#earliestStartAt = NaN;
    this.#latestStartAt = NaN;
    this.#isRestored = false;
  }

  /**
   * Continues with what an earlier process learned.
   * @param used calls that count as sent at `now`
   */
  restore(limit: number, used: number, now: number): void {
    this.lowerBound = limit;
    this.upperBound = limit;
    this.explainedRefusals = RESTORED_REFUSALS;
    this.#isRestored = true;
    for (let count = 0; count < Math.min(used, limit); count++) this.#counted.add(now);
  }

  /** Calls within the last window's length. */
  countUsed(now: number): number {
    return this.#counted.count(now - this.windowMs, Infinity);
  }

  /** The part of the interval in which a window can have begun, as far as is known; `from` > `to`: none. */
  #intersectWithStart(from: number, to: number): { readonly from: number; readonly to: number } {
    const shift =
      Math.round((from + to - this.#earliestStartAt - this.#latestStartAt) / 2 / this.windowMs) * this.windowMs;
    return {
      from: Math.max(from, this.#earliestStartAt + shift),
      to: Math.min(to, this.#latestStartAt + shift),
    };
  }

  get #isStartKnown(): boolean {
    return !Number.isNaN(this.#earliestStartAt);
  }

  get #startUncertaintyMs(): number {
    return this.#latestStartAt - this.#earliestStartAt;
  }

  #isStartUncertain(guardMs: number): boolean {
    return this.#startUncertaintyMs > 4 * guardMs;
  }

  #guardMs(jitterMs: number): number {
    return Math.min(jitterMs, this.windowMs * this.#policy.guardShare);
  }

  #isLogComplete(at: number): boolean {
    return this.#counted.completeSinceAt <= at - this.windowMs;
  }

  /** Estimated start of the window that contains `now`. */
  #estimateStart(now: number, guardMs: number): number {
    // A large uncertainty is bisected: whether a call at its middle is accepted halves it.
    const offsetMs = this.#isStartUncertain(guardMs)
      ? this.#startUncertaintyMs / 2
      : this.#startUncertaintyMs + guardMs;
    const startAt = this.#earliestStartAt + offsetMs;
    return startAt + Math.floor((now - startAt) / this.windowMs) * this.windowMs;
  }

  /** Calls that were certainly in the window before this one. */
  #minCallsBefore(evidence: Evidence, start: WindowStart | undefined): number {
    const sinceStart = start === undefined ? 0 : this.#certainCallsSince(start.latestAt, evidence) + start.certainCalls;
    if (this.kind === 'sliding-window') return sinceStart;
    // A time as long as the window touches two windows at most: one of them holds at least half of its calls.
    return Math.max(
      sinceStart,
      Math.ceil((this.#certainCallsSince(evidence.at - this.windowMs, evidence) + 1) / 2) - 1,
    );
  }

  /** Calls that certainly arrived after `since` and before this one, and were certainly accepted. */
  #certainCallsSince(since: number, { at, jitterMs, pending }: Evidence): number {
    const from = since + jitterMs;
    return Math.max(0, this.#counted.count(from, at - jitterMs) - pending.count(from, at - jitterMs));
  }

  /** The start of the window in which a call at `at` was counted; undefined while unknown. */
  #findWindowStart(at: number, jitterMs: number): WindowStart | undefined {
    if (this.kind === 'sliding-window')
      return { earliestAt: at - this.windowMs, latestAt: at - this.windowMs, certainCalls: 0 };
    if (!this.#isStartKnown) return undefined;
    if (this.kind === 'first-call-window') {
      this.#advanceWindow(at, jitterMs);
      const isWithin = at >= this.#latestStartAt && at < this.#earliestStartAt + this.windowMs;
      return isWithin
        ? { earliestAt: this.#earliestStartAt, latestAt: this.#latestStartAt, certainCalls: 1 }
        : undefined;
    }
    const shift = Math.floor((at - this.#earliestStartAt) / this.windowMs) * this.windowMs;
    const earliestAt = this.#earliestStartAt + shift;
    const latestAt = this.#latestStartAt + shift;
    if (at >= latestAt) return { earliestAt, latestAt, certainCalls: 0 };
    return { earliestAt: earliestAt - this.windowMs, latestAt: at, certainCalls: 0 };
  }

  /** Moves a window that begins with a call on to the one that was open at `at`. */
  #advanceWindow(at: number, jitterMs: number): void {
    for (;;) {
      // The first call that certainly came after the end opened the next window, unless one within the jitter did.
      const opener = this.#counted.at(this.#counted.firstIndexFrom(this.#latestStartAt + this.windowMs + jitterMs));
      if (!(opener <= at)) return;
      const endsAt = this.#earliestStartAt + this.windowMs;
      const firstCandidate = this.#counted.at(this.#counted.firstIndexFrom(endsAt - jitterMs));
      this.#earliestStartAt = Math.max(endsAt, firstCandidate - jitterMs);
      this.#latestStartAt = opener + jitterMs;
    }
  }

  #slidingOpenAt(now: number, guardMs: number): number {
    const first = this.#counted.firstIndexFrom(now - this.windowMs - guardMs);
    const used = this.#counted.size - first;
    if (used < this.limit) return -Infinity;
    return this.#counted.at(first + used - this.limit) + this.windowMs + guardMs + 0.001;
  }
}
