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
    const most = this.#log.count(this.#beginning(at, jitterMs).earliest - jitterMs, at + jitterMs);
    this.least = Math.max(this.least, this.#isPlaced ? this.#fewestBefore(evidence) : 0);
    this.noteRefusal(most, evidence.telling, most < this.most * KNOWN - 1);
  }

  override reopened(refusedAt: number, acceptedAt: number, jitterMs: number): void {
    if (this.kind === 'sliding-window') return;
    // What opens a window is the first call that was not refused any more.
    const opener = this.#log.at(this.#log.indexOf(refusedAt + Number.EPSILON * refusedAt));
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
    const guardMs = Math.min(jitterMs, this.windowMs * this.#use.guardShare);
    if (this.kind === 'sliding-window' || Number.isNaN(this.#from)) return this.#slidesOpenAt(now, guardMs);
    if (this.kind === 'first-call-window') this.#follow(now, jitterMs);
    const doubtMs = this.#to - this.#from;
    // While much is in doubt the middle of it is tried: whatever comes of that halves the doubt.
    const isBlurred = doubtMs > 4 * guardMs;
    const opening = this.#from + (isBlurred ? doubtMs / 2 : doubtMs + guardMs);
    const begun = opening + Math.floor((now - opening) / this.windowMs) * this.windowMs;
    const counted = this.#log.size - this.#log.indexOf(begun - (isBlurred ? 0 : 2 * (guardMs + doubtMs / 2)));
    return counted < this.limit ? -Infinity : begun + this.windowMs;
  }

  isFull(now: number, jitterMs: number): boolean {
    return this.opensAt(now, jitterMs) > now;
  }

  override forget(): void {
    super.forget();
    this.#from = NaN;
    this.#to = NaN;
  }

  /** As it was in an earlier process: `used` calls count as made at `now`. */
  restore(limit: number, used: number, now: number): void {
    this.least = limit;
    this.most = limit;
    this.agreeing = 2;
    for (let count = 0; count < Math.min(used, limit); count++) this.#log.add(now);
  }

  /** Calls that count at `now`. */
  used(now: number): number {
    return this.#log.count(now - this.windowMs, Infinity);
  }

  get #isPlaced(): boolean {
    return this.kind === 'sliding-window' || !Number.isNaN(this.#from);
  }

  #isCounted(at: number): boolean {
    return this.#log.completeSince <= at - this.windowMs;
  }

  /** Calls that were surely in the window before this one. */
  #fewestBefore({ at, jitterMs, pending }: Evidence): number {
    const from = (this.#isPlaced ? this.#beginning(at, jitterMs).latest : at - this.windowMs) + jitterMs;
    const sure = this.#log.count(from, at - jitterMs) - pending.count(from, at - jitterMs);
    // Of a time as long as the window at least half lies in one window.
    return Math.max(0, this.#isPlaced ? sure : Math.ceil((sure + 1) / 2) - 1);
  }

  #beginning(at: number, jitterMs: number): Beginning {
    const unknown = { earliest: at - this.windowMs, latest: at };
    if (this.kind === 'sliding-window') return { earliest: at - this.windowMs, latest: at - this.windowMs };
    if (Number.isNaN(this.#from)) return unknown;
    if (this.kind === 'first-call-window') {
      this.#follow(at, jitterMs);
      const isWithin = at >= this.#to && at < this.#from + this.windowMs;
      return isWithin ? { earliest: this.#from, latest: this.#to } : unknown;
    }
    const shift = Math.floor((at - this.#from) / this.windowMs) * this.windowMs;
    const earliest = this.#from + shift;
    const latest = this.#to + shift;
    return at >= latest ? { earliest, latest } : { earliest: earliest - this.windowMs, latest: at };
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
