/**
 * A number of calls within a time (pure): counted over the time before each call, in windows that follow one another by the
 * clock, or in windows that begin with the first call after the last one. When the windows of a clock begin is found out from
 * when the upstream was seen closed and open again. Counting is by intervals: what may or may not have been in the window at
 * the call's arrival widens the bounds and never falsifies them.
 */
import type { CallLog } from './call-log.ts';
import { type Evidence, LimiterModel } from './limiter-model.ts';

export type WindowKind = 'sliding-window' | 'fixed-window' | 'first-call-window';

/** Where a window begins: not before, and not after. */
interface WindowStart {
  readonly earliestAt: number;
  readonly latestAt: number;
  /** Calls that may have come before `latest` and lie in the window for sure. */
  readonly certainCalls: number;
}

/** How a window is acted on, as shares. */
export interface WindowPolicy {
  /** Of the limit: what may be saved up and spent at once. */
  readonly burstShare: number;
  /** Of the window: the most that its ends are kept clear of for jitter. */
  readonly guardShare: number;
}

/** Known to within this share of itself, a limit is taken for known. */
const KNOWN_SHARE = 0.97;
/** Calls nearer to one another were sent at once. */
const SAME_INSTANT_MS = 0.5;
/** Where a clock's windows begin must be known better than this share of the window. */
const MAX_START_UNCERTAINTY = 0.9;

/** Bounds are calls within the window. */
export class WindowModel extends LimiterModel {
  readonly kind: WindowKind;
  readonly windowMs: number;
  readonly #log: CallLog;
  readonly #policy: WindowPolicy;
  /** One window began between these; NaN while not known. */
  #earliestStartAt = NaN;
  #latestStartAt = NaN;
  /** The limit is known, and not yet where its windows begin: until then they are taken for sliding ones, which are stricter. */
  #isRestored = false;

  /** @param log the calls that count: the accepted ones, or all of them */
  constructor(kind: WindowKind, windowMs: number, log: CallLog, use: WindowPolicy) {
    super();
    this.kind = kind;
    this.windowMs = windowMs;
    this.#log = log;
    this.#policy = use;
  }

  get isConsistent(): boolean {
    // Upstreams approximate; for small numbers they do not.
    const slack = this.upperBound < 10 || this.upperBound === Infinity ? 0 : 1 + this.upperBound / 100;
    return this.upperBound >= 1 && this.lowerBound <= this.upperBound + slack;
  }

  get isUsable(): boolean {
    if (this.upperBound === Infinity || this.lowerBound < 0.6 * this.upperBound) return false;
    if (this.#isRestored && !this.#isStartKnown) return true;
    return (
      this.kind === 'sliding-window' ||
      this.#latestStartAt - this.#earliestStartAt < MAX_START_UNCERTAINTY * this.windowMs
    );
  }

  get limit(): number {
    const sure = Math.min(this.lowerBound, this.upperBound);
    const isKnown = sure >= KNOWN_SHARE * this.upperBound;
    if (this.explainedRefusals > 1)
      return Math.max(sure, isKnown ? Math.round(this.upperBound * 0.995) : Math.floor(this.upperBound * 0.99));
    return isKnown ? sure : Math.ceil((sure + this.upperBound) / 2);
  }

  get rate(): number {
    return (this.limit * 1000) / this.windowMs;
  }

  get burst(): number {
    return Math.max(1, Math.floor(this.limit * this.#policy.burstShare));
  }

  recordAccepted(evidence: Evidence): void {
    if (!this.#isLogComplete(evidence.at)) return;
    this.lowerBound = Math.max(this.lowerBound, this.#minCallsBefore(evidence) + 1);
  }

  recordRefused(evidence: Evidence): void {
    const { at, jitterMs } = evidence;
    if (!this.#isLogComplete(at)) return;
    const begun = this.#startOfWindow(at, jitterMs);
    const most = this.#log.count((begun?.earliestAt ?? at - this.windowMs) - jitterMs, at + jitterMs);
    this.lowerBound = Math.max(this.lowerBound, begun === undefined ? 0 : this.#minCallsBefore(evidence));
    this.lowerUpperBound(most, evidence.isInformative, most < this.upperBound * KNOWN_SHARE - 1);
  }

  override recordReopening(refusedAt: number, acceptedAt: number, jitterMs: number): void {
    if (this.kind === 'sliding-window') return;
    // What opens a window is the first call after those that were refused.
    const opener = this.#log.at(this.#log.firstIndexFrom(refusedAt + SAME_INSTANT_MS));
    let from = (this.kind === 'first-call-window' ? Math.min(opener, acceptedAt) : refusedAt) - jitterMs;
    let to = acceptedAt + jitterMs;
    if (to - from > this.windowMs) return;
    if (this.kind === 'fixed-window' && !Number.isNaN(this.#earliestStartAt)) {
      const shift =
        Math.round((from + to - this.#earliestStartAt - this.#latestStartAt) / 2 / this.windowMs) * this.windowMs;
      from = Math.max(from, this.#earliestStartAt + shift);
      to = Math.min(to, this.#latestStartAt + shift);
      if (from > to) {
        this.invalidate();
        return;
      }
    }
    this.#earliestStartAt = from;
    this.#latestStartAt = to;
  }

  openAt(now: number, jitterMs: number): number {
    const guardMs = this.#guardMs(jitterMs);
    if (this.kind === 'sliding-window' || !this.#isStartKnown) return this.#slidingOpenAt(now, guardMs);
    if (this.kind === 'first-call-window') this.#advanceWindow(now, jitterMs);
    const doubtMs = this.#latestStartAt - this.#earliestStartAt;
    const begun = this.#windowStartAt(now, guardMs);
    const counted =
      this.#log.size - this.#log.firstIndexFrom(begun - (this.#isStartUncertain(guardMs) ? 0 : 2 * guardMs + doubtMs));
    return counted < this.limit ? -Infinity : begun + this.windowMs;
  }

  override isFirstCallOfWindow(now: number, jitterMs: number): boolean {
    // The others begin with whatever call comes.
    if (this.kind !== 'fixed-window' || !this.#isStartKnown) return false;
    const begun = this.#windowStartAt(now, this.#guardMs(jitterMs));
    return this.#log.count(begun, Infinity) === 0 && this.#log.count(begun - this.windowMs, begun) >= this.limit - 1;
  }

  isFull(now: number, jitterMs: number): boolean {
    return this.openAt(now, jitterMs) > now;
  }

  override reset(): void {
    super.reset();
    this.#earliestStartAt = NaN;
    this.#latestStartAt = NaN;
    this.#isRestored = false;
  }

  /** As it was in an earlier process: `used` calls count as made at `now`. */
  restore(limit: number, used: number, now: number): void {
    this.lowerBound = limit;
    this.upperBound = limit;
    this.explainedRefusals = 2;
    this.#isRestored = true;
    for (let count = 0; count < Math.min(used, limit); count++) this.#log.add(now);
  }

  /** Calls that count at `now`. */
  countUsed(now: number): number {
    return this.#log.count(now - this.windowMs, Infinity);
  }

  #guardMs(jitterMs: number): number {
    return Math.min(jitterMs, this.windowMs * this.#policy.guardShare);
  }

  #isStartUncertain(guardMs: number): boolean {
    return this.#latestStartAt - this.#earliestStartAt > 4 * guardMs;
  }

  /** When the present window began, as it is acted on. */
  #windowStartAt(now: number, guardMs: number): number {
    const doubtMs = this.#latestStartAt - this.#earliestStartAt;
    // While much is in doubt the middle of it is tried: whatever comes of that halves the doubt.
    const opening = this.#earliestStartAt + (this.#isStartUncertain(guardMs) ? doubtMs / 2 : doubtMs + guardMs);
    return opening + Math.floor((now - opening) / this.windowMs) * this.windowMs;
  }

  get #isStartKnown(): boolean {
    return this.kind === 'sliding-window' || !Number.isNaN(this.#earliestStartAt);
  }

  #isLogComplete(at: number): boolean {
    return this.#log.completeSinceAt <= at - this.windowMs;
  }

  /** Calls that were surely in the window before this one. */
  #minCallsBefore(evidence: Evidence): number {
    const begun = this.#startOfWindow(evidence.at, evidence.jitterMs);
    const placed = begun === undefined ? 0 : this.#certainCallsSince(begun.latestAt, evidence) + begun.certainCalls;
    if (this.kind === 'sliding-window') return placed;
    // Of a time as long as the window at least half lies in one window.
    return Math.max(placed, Math.ceil((this.#certainCallsSince(evidence.at - this.windowMs, evidence) + 1) / 2) - 1);
  }

  /** Calls that were surely made since then and before this one, and surely accepted. */
  #certainCallsSince(since: number, { at, jitterMs, pending }: Evidence): number {
    const from = since + jitterMs;
    return Math.max(0, this.#log.count(from, at - jitterMs) - pending.count(from, at - jitterMs));
  }

  /** Of the window in which a call at `at` was judged; undefined when that is not known. */
  #startOfWindow(at: number, jitterMs: number): WindowStart | undefined {
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
    const earliest = this.#earliestStartAt + shift;
    const latest = this.#latestStartAt + shift;
    if (at >= latest) return { earliestAt: earliest, latestAt: latest, certainCalls: 0 };
    return { earliestAt: earliest - this.windowMs, latestAt: at, certainCalls: 0 };
  }

  /** A window that begins with a call: from one to the next up to `at`. */
  #advanceWindow(at: number, jitterMs: number): void {
    for (;;) {
      // The first call that surely came after the end has opened the next one, or one shortly before it has.
      const sure = this.#log.at(this.#log.firstIndexFrom(this.#latestStartAt + this.windowMs + jitterMs));
      if (!(sure <= at)) return;
      const endsAt = this.#earliestStartAt + this.windowMs;
      this.#earliestStartAt = Math.max(endsAt, this.#log.at(this.#log.firstIndexFrom(endsAt - jitterMs)) - jitterMs);
      this.#latestStartAt = sure + jitterMs;
    }
  }

  #slidingOpenAt(now: number, guardMs: number): number {
    const first = this.#log.firstIndexFrom(now - this.windowMs - guardMs);
    const counted = this.#log.size - first;
    if (counted < this.limit) return -Infinity;
    return this.#log.at(first + counted - this.limit) + this.windowMs + guardMs + 0.001;
  }
}
