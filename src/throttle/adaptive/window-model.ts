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
interface Beginning {
  readonly earliest: number;
  readonly latest: number;
  /** Calls that may have come before `latest` and lie in the window for sure. */
  readonly openers: number;
}

/** How a window is acted on, as shares. */
export interface WindowUse {
  /** Of the limit: what may be saved up and spent at once. */
  readonly burstShare: number;
  /** Of the window: the most that its ends are kept clear of for jitter. */
  readonly guardShare: number;
}

/** Known to within this share of itself, a limit is taken for known. */
const KNOWN = 0.97;
/** Calls nearer to one another were sent at once. */
const SAME_INSTANT_MS = 0.5;
/** Where a clock's windows begin must be known better than this share of the window. */
const BLURRED = 0.9;

/** Bounds are calls within the window. */
export class WindowModel extends LimiterModel {
  readonly kind: WindowKind;
  readonly windowMs: number;
  readonly #log: CallLog;
  readonly #use: WindowUse;
  /** One window began between these; NaN while not known. */
  #from = NaN;
  #to = NaN;
  /** The limit is known, and not yet where its windows begin: until then they are taken for sliding ones, which are stricter. */
  #isRestored = false;

  /** @param log the calls that count: the accepted ones, or all of them */
  constructor(kind: WindowKind, windowMs: number, log: CallLog, use: WindowUse) {
    super();
    this.kind = kind;
    this.windowMs = windowMs;
    this.#log = log;
    this.#use = use;
  }

  get stands(): boolean {
    // Upstreams approximate; for small numbers they do not.
    const slack = this.most < 10 || this.most === Infinity ? 0 : 1 + this.most / 100;
    return this.most >= 1 && this.least <= this.most + slack;
  }

  get usable(): boolean {
    if (this.most === Infinity || this.least < 0.6 * this.most) return false;
    if (this.#isRestored && !this.#isPlaced) return true;
    return this.kind === 'sliding-window' || this.#to - this.#from < BLURRED * this.windowMs;
  }

  get limit(): number {
    const sure = Math.min(this.least, this.most);
    const isKnown = sure >= KNOWN * this.most;
    if (this.agreeing > 1)
      return Math.max(sure, isKnown ? Math.round(this.most * 0.995) : Math.floor(this.most * 0.99));
    return isKnown ? sure : Math.ceil((sure + this.most) / 2);
  }

  get rate(): number {
    return (this.limit * 1000) / this.windowMs;
  }

  get burst(): number {
    return Math.max(1, Math.floor(this.limit * this.#use.burstShare));
  }

  accepted(evidence: Evidence): void {
    if (!this.#isCounted(evidence.at)) return;
    this.least = Math.max(this.least, this.#fewestBefore(evidence) + 1);
  }

  refused(evidence: Evidence): void {
    const { at, jitterMs } = evidence;
    if (!this.#isCounted(at)) return;
    const begun = this.#beginning(at, jitterMs);
    const most = this.#log.count((begun?.earliest ?? at - this.windowMs) - jitterMs, at + jitterMs);
    this.least = Math.max(this.least, begun === undefined ? 0 : this.#fewestBefore(evidence));
    this.noteRefusal(most, evidence.telling, most < this.most * KNOWN - 1);
  }

  override reopened(refusedAt: number, acceptedAt: number, jitterMs: number): void {
    if (this.kind === 'sliding-window') return;
    // What opens a window is the first call after those that were refused.
    const opener = this.#log.at(this.#log.indexOf(refusedAt + SAME_INSTANT_MS));
    let from = (this.kind === 'first-call-window' ? Math.min(opener, acceptedAt) : refusedAt) - jitterMs;
    let to = acceptedAt + jitterMs;
    if (to - from > this.windowMs) return;
    if (this.kind === 'fixed-window' && !Number.isNaN(this.#from)) {
      const shift = Math.round((from + to - this.#from - this.#to) / 2 / this.windowMs) * this.windowMs;
      from = Math.max(from, this.#from + shift);
      to = Math.min(to, this.#to + shift);
      if (from > to) {
        this.dismiss();
        return;
      }
    }
    this.#from = from;
    this.#to = to;
  }

  opensAt(now: number, jitterMs: number): number {
    const guardMs = this.#guardMs(jitterMs);
    if (this.kind === 'sliding-window' || !this.#isPlaced) return this.#slidesOpenAt(now, guardMs);
    if (this.kind === 'first-call-window') this.#follow(now, jitterMs);
    const doubtMs = this.#to - this.#from;
    const begun = this.#begunAt(now, guardMs);
    const counted = this.#log.size - this.#log.indexOf(begun - (this.#isBlurred(guardMs) ? 0 : 2 * guardMs + doubtMs));
    return counted < this.limit ? -Infinity : begun + this.windowMs;
  }

  override isOpening(now: number, jitterMs: number): boolean {
    // The others begin with whatever call comes.
    if (this.kind !== 'fixed-window' || !this.#isPlaced) return false;
    const begun = this.#begunAt(now, this.#guardMs(jitterMs));
    return this.#log.count(begun, Infinity) === 0 && this.#log.count(begun - this.windowMs, begun) >= this.limit - 1;
  }

  isFull(now: number, jitterMs: number): boolean {
    return this.opensAt(now, jitterMs) > now;
  }

  override forget(): void {
    super.forget();
    this.#from = NaN;
    this.#to = NaN;
    this.#isRestored = false;
  }

  /** As it was in an earlier process: `used` calls count as made at `now`. */
  restore(limit: number, used: number, now: number): void {
    this.least = limit;
    this.most = limit;
    this.agreeing = 2;
    this.#isRestored = true;
    for (let count = 0; count < Math.min(used, limit); count++) this.#log.add(now);
  }

  /** Calls that count at `now`. */
  used(now: number): number {
    return this.#log.count(now - this.windowMs, Infinity);
  }

  #guardMs(jitterMs: number): number {
    return Math.min(jitterMs, this.windowMs * this.#use.guardShare);
  }

  #isBlurred(guardMs: number): boolean {
    return this.#to - this.#from > 4 * guardMs;
  }

  /** When the present window began, as it is acted on. */
  #begunAt(now: number, guardMs: number): number {
    const doubtMs = this.#to - this.#from;
    // While much is in doubt the middle of it is tried: whatever comes of that halves the doubt.
    const opening = this.#from + (this.#isBlurred(guardMs) ? doubtMs / 2 : doubtMs + guardMs);
    return opening + Math.floor((now - opening) / this.windowMs) * this.windowMs;
  }

  get #isPlaced(): boolean {
    return this.kind === 'sliding-window' || !Number.isNaN(this.#from);
  }

  #isCounted(at: number): boolean {
    return this.#log.completeSince <= at - this.windowMs;
  }

  /** Calls that were surely in the window before this one. */
  #fewestBefore(evidence: Evidence): number {
    const begun = this.#beginning(evidence.at, evidence.jitterMs);
    const placed = begun === undefined ? 0 : this.#sureSince(begun.latest, evidence) + begun.openers;
    if (this.kind === 'sliding-window') return placed;
    // Of a time as long as the window at least half lies in one window.
    return Math.max(placed, Math.ceil((this.#sureSince(evidence.at - this.windowMs, evidence) + 1) / 2) - 1);
  }

  /** Calls that were surely made since then and before this one, and surely accepted. */
  #sureSince(since: number, { at, jitterMs, pending }: Evidence): number {
    const from = since + jitterMs;
    return Math.max(0, this.#log.count(from, at - jitterMs) - pending.count(from, at - jitterMs));
  }

  /** Of the window in which a call at `at` was judged; undefined when that is not known. */
  #beginning(at: number, jitterMs: number): Beginning | undefined {
    if (this.kind === 'sliding-window') return { earliest: at - this.windowMs, latest: at - this.windowMs, openers: 0 };
    if (!this.#isPlaced) return undefined;
    if (this.kind === 'first-call-window') {
      this.#follow(at, jitterMs);
      const isWithin = at >= this.#to && at < this.#from + this.windowMs;
      return isWithin ? { earliest: this.#from, latest: this.#to, openers: 1 } : undefined;
    }
    const shift = Math.floor((at - this.#from) / this.windowMs) * this.windowMs;
    const earliest = this.#from + shift;
    const latest = this.#to + shift;
    if (at >= latest) return { earliest, latest, openers: 0 };
    return { earliest: earliest - this.windowMs, latest: at, openers: 0 };
  }

  /** A window that begins with a call: from one to the next up to `at`. */
  #follow(at: number, jitterMs: number): void {
    for (;;) {
      // The first call that surely came after the end has opened the next one, or one shortly before it has.
      const sure = this.#log.at(this.#log.indexOf(this.#to + this.windowMs + jitterMs));
      if (!(sure <= at)) return;
      const endsAt = this.#from + this.windowMs;
      this.#from = Math.max(endsAt, this.#log.at(this.#log.indexOf(endsAt - jitterMs)) - jitterMs);
      this.#to = sure + jitterMs;
    }
  }

  #slidesOpenAt(now: number, guardMs: number): number {
    const first = this.#log.indexOf(now - this.windowMs - guardMs);
    const counted = this.#log.size - first;
    if (counted < this.limit) return -Infinity;
    return this.#log.at(first + counted - this.limit) + this.windowMs + guardMs + 0.001;
  }
}
