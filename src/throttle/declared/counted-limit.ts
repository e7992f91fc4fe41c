/**
 * One declared limit and the calls that count for it (pure). `own` are the calls of this process that no store has confirmed, `known` those
 * that a store has: of an earlier process, or of all replicas. Alone, a process may use its configured share; in a fleet permits are leased
 * from the store, and while the store is away each replica keeps to its part of what was left. Instants are epoch milliseconds.
 */
import type { StatedQuota } from '../../platform/rate-limit-fields/stated-quota.ts';
import { CountedCalls, type CountEntry } from './counted-calls.ts';
import type { DeclaredLimit, DeclaredLimitState } from './declared-limit.ts';
import { createLimitWindow, type LimitWindow } from './limit-window.ts';

/** The report on one limit for a store. */
export interface LimitReport {
  /** Names the limit and its window: counts of another window are of no use. */
  readonly key: string;
  readonly calls: number;
  /** Calls that the store does not know of. */
  readonly counts: readonly CountEntry[];
  /** Permits that may have been used beside these: leased ones, and calls made since. */
  readonly held: number;
  /** The leased ones among them. */
  readonly leased: number;
  /** When those stop to count should this replica be gone. */
  readonly heldUntil: number;
  /** What all replicas have used, as far as this one knows or must assume: for a store that may have lost its data. */
  readonly known: readonly CountEntry[];
  /** Further permits that are needed; one request of high priority waits: also of the reserve. */
  readonly want: number;
  /** Not part of the last report. */
  readonly isNew: boolean;
  /** Calls of other operations need no permit. */
  readonly isOfOperation: boolean;
  /** Calls that the store keeps back: `reserve`, or 0 while a request of high priority waits. */
  readonly reserve: number;
}

/** What a store grants, and what it knows. */
export interface LimitGrant {
  readonly key: string;
  readonly granted: number;
  /** What all replicas have used. */
  readonly counts: readonly CountEntry[];
  /** Permits that other replicas hold. */
  readonly heldByOthers: number;
}

/** When the permit that a call took of each limit stops to count. */
export type TakenPermits = readonly { readonly limit: CountedLimit; expiresAt: number }[];

/** Keeps each replica to its part. `index` from 0 decides who gets the rest of a division. */
export interface LimitPart {
  readonly parts: number;
  readonly index: number;
}

/** The part of calls that a lease holds: a crash counts as many too many. At full rate it lasts half a second at least. */
const LEASED_PART = 0.02;
const MIN_LEASE_MS = 500;
const MAX_LEASED_PART = 0.5;
const MAX_LEASED_CALLS = 1000;
/** An upstream counts a call between its sending and its response: a sliding count holds until then, this part of the window at most. */
const ARRIVAL_PART = 1 / 20;
const MIN_ARRIVAL_MS = 200;
const MAX_ARRIVAL_MS = 2000;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
/** The rate of a shorter time says too little. */
const MIN_RATE_MS = 5 * MINUTE_MS;
/** Within this time a store finds out that a replica is gone. */
const MAX_UNNOTICED_MS = 15_000;
/** The calls of other replicas are counted over this time at least. */
const MIN_SHARED_RATE_MS = 1000;
/** Resets are stated in whole seconds, by another clock. */
const RESET_ERROR_MS = 2000;
const WHOLE: LimitPart = { parts: 1, index: 0 };

/** DeclaredLimits sets `leased`, since a store leases permits of all limits or of none. */
export class CountedLimit {
  terms: DeclaredLimit;
  readonly key: string;
  readonly window: LimitWindow;
  /** Permits that may be used before the store has to know of more; Infinity without a store. */
  leased = Infinity;
  /** How many of the counted calls wait; Infinity, which bounds no wait, for a limit of all calls. */
  waiting: number;
  /** The store knows it, as of the last exchange. */
  isReported = false;
  /** What this process may use alone. */
  part: LimitPart;
  readonly #arrivalMs: number;
  #known = new CountedCalls();
  #heldByOthers = 0;
  /** What other replicas may have used since the last reply of a store that is away. */
  #assumed = new CountedCalls();
  readonly #own = new CountedCalls();
  /** Reported, and not confirmed yet; part of `own`. */
  #reported: CountedCalls | undefined;
  /** All three together, until one of them changes. */
  #merged: { readonly known: CountedCalls; readonly version: number; readonly calls: CountedCalls } | undefined;
  /** Replicas that take from the same count. */
  #sharers = 1;
  /** The store has been lost after this limit was shared. */
  #isApart = false;
  /** When the store has replied last, and what the other replicas have used since `sharedRateSince`. */
  #grantedAt = 0;
  #sharedRateSince = 0;
  #usedByOthers = 0;
  #othersPerMs = 0;
  readonly #recent = new CountedCalls();
  #recentSince = Infinity;
  /** With an even spread the next call may go then. */
  #evenAt = -Infinity;
  /** Calls since a store began to write; undefined while it does not. */
  #takenSinceLease: number | undefined;

  /**
   * @param part of a process that knows no store
   * @param calls names those that it counts. Default: all
   */
  constructor(terms: DeclaredLimit, part: LimitPart = WHOLE, calls?: string) {
    const { name, per, window, timeZone } = terms;
    this.terms = terms;
    const zone = window === 'calendar' ? timeZone : undefined;
    this.key = [name, per, window, zone, calls].filter((part) => part !== undefined).join(' ');
    this.window = createLimitWindow(terms);
    this.part = part;
    this.waiting = calls === undefined ? Infinity : 0;
    const { lengthMs } = this.window;
    const arrivalMs = Math.min(MAX_ARRIVAL_MS, Math.max(MIN_ARRIVAL_MS, lengthMs * ARRIVAL_PART));
    this.#arrivalMs = window === 'sliding' ? arrivalMs : 0;
  }

  /** Permits that one lease holds. */
  get leaseSize(): number {
    const part = Math.max(LEASED_PART, Math.min(MAX_LEASED_PART, MIN_LEASE_MS / this.window.lengthMs));
    return Math.min(MAX_LEASED_CALLS, Math.ceil(this.terms.calls * part));
  }

  /** No call of this process counts or waits. */
  isIdle(at: number): boolean {
    return this.waiting === 0 && this.#own.countAt(at) === 0;
  }

  /** @param terms with the same name and window */
  reconfigure(terms: DeclaredLimit): void {
    this.terms = terms;
    this.#evenAt = -Infinity;
  }

  /** The limit is no longer declared: calls that still wait for it may go. */
  retire(): void {
    this.reconfigure({ ...this.terms, calls: Infinity, reserve: 0, spread: 'none' });
    this.leased = Infinity;
  }

  /** Calls that the limit leaves to this process now; 0 or less: none. */
  left(at: number, isHigh: boolean): number {
    const kept = isHigh ? 0 : this.terms.reserve;
    const free = this.terms.calls - kept - this.#known.countAt(at) - this.#assumed.countAt(at) - this.#heldByOthers;
    const { parts, index } = this.part;
    return Math.floor((free + parts - 1 - index) / parts) - this.#own.countAt(at);
  }

  /** When the call behind `ahead` others may go, leases apart; a past instant: now. Infinity when that cannot be. */
  nthAt(at: number, ahead: number, isHigh: boolean): number {
    const { terms, window } = this;
    const missing = ahead + 1 - this.left(at, isHigh);
    const isEven = terms.spread === 'even' && !this.#usesReserve(isHigh);
    const evenAt = isEven ? Math.max(at, this.#evenAt) + ahead * this.#evenIntervalMs(at) : -Infinity;
    return missing <= 0 ? evenAt : Math.max(evenAt, this.#freedAt(at, missing, window.lengthMs));
  }

  /** Whether a call may go now. */
  isOpen(at: number, isHigh: boolean): boolean {
    return this.leased >= 1 && (this.#evenAt <= at || this.#usesReserve(isHigh)) && this.left(at, isHigh) >= 1;
  }

  /** A call goes. @returns the instant at which it stops to count */
  take(at: number): number {
    const expiresAt = this.window.expiryAt(at + this.#arrivalMs);
    this.#own.add(expiresAt, 1);
    this.leased--;
    if (this.#takenSinceLease !== undefined) this.#takenSinceLease++;
    this.#addRecent(at, 1);
    if (this.terms.spread === 'even') this.#evenAt = Math.max(at, this.#evenAt) + this.#evenIntervalMs(at);
    return expiresAt;
  }

  /** The call got its connection only now. @returns the instant at which it stops to count */
  resend(at: number, expiresAt: number): number {
    return this.settle(at + this.#arrivalMs, expiresAt, true);
  }

  /**
   * The upstream has counted the call by `at`.
   * @param mayCountLonger than was assumed when it was sent
   * @returns the instant at which it stops to count
   */
  settle(at: number, expiresAt: number, mayCountLonger: boolean): number {
    const settledAt = this.window.expiryAt(at);
    if (settledAt === expiresAt || (settledAt > expiresAt && !mayCountLonger)) return expiresAt;
    this.#own.add(expiresAt, -1);
    this.#own.add(settledAt, 1);
    return settledAt;
  }

  /** The upstream does not count the call. */
  giveBack(at: number, expiresAt: number): void {
    this.#own.add(expiresAt, -1);
    this.#evenAt = -Infinity;
    this.#addRecent(at, -1);
  }

  /** The clock was set: what slides goes on for as long as before, and no calendar window ends later than the one after the present. */
  followClock(at: number, stepMs: number): void {
    const isSliding = this.window.endOf(at) === undefined;
    const latest = this.#latestEnd(at);
    this.#own.moveEnds((expiresAt) => (isSliding ? expiresAt + stepMs : Math.min(expiresAt, latest)));
    this.#evenAt += stepMs;
  }

  /**
   * The upstream states what it leaves.
   * @param uncounted calls that it may not have counted for this statement
   */
  correct(at: number, { quota, remaining = NaN, resetInMs = Infinity }: StatedQuota, uncounted: number): void {
    const { calls } = this.terms;
    if (this.part.parts > 1 || !(remaining >= 0 && remaining <= (quota ?? calls))) return;
    const certain = this.#known.countAt(at) + this.#own.countAt(at);
    const missing = Math.floor(calls - remaining - certain - this.#heldByOthers);
    // For a sliding window the upstream does not say when these calls were made: they may be the newest.
    const missingUntil = Math.min(this.window.expiryAt(at), Math.ceil(at + resetInMs) + RESET_ERROR_MS);
    if (missing > 0) this.#own.add(missingUntil, missing);
    // A statement about another limit than the declared one, or about many replicas, cannot lower what is used here.
    if ((quota ?? calls) !== calls || this.#sharers > 1) return;
    let excess = certain - (calls - remaining) - uncounted;
    // The calls that end first go: the count must not fall again when they would have ended.
    for (const [expiresAt, counted] of copyEntries(this.#entriesAt(at))) {
      const removed = Math.max(0, Math.min(counted, excess));
      if (removed > 0) this.#own.add(expiresAt, -removed);
      excess -= removed;
    }
  }

  state(at: number): DeclaredLimitState {
    const { name, calls, per, reserve } = this.terms;
    const used = this.#known.countAt(at) + this.#heldByOthers + this.#own.countAt(at);
    const [oldest] = this.#entriesAt(at);
    const resetsAt = this.window.endOf(at) ?? oldest?.[0] ?? Infinity;
    return { name, calls, per, used: Math.max(0, used), reserve, usedUpAt: this.#usedUpAt(at), resetsAt };
  }

  /** All counted calls, for another process. */
  entriesAt(at: number): readonly CountEntry[] {
    return copyEntries(this.#entriesAt(at));
  }

  /** Takes over what an earlier process has counted, and the permits that it may have used up to now. */
  restore(at: number, entries: readonly CountEntry[], leased: number): void {
    // The clock may have been set back since.
    const latest = this.#latestEnd(at);
    for (const [expiresAt, calls] of entries) this.#own.add(Math.min(expiresAt, latest), calls);
    if (leased > 0) this.#own.add(this.window.expiryAt(at), leased);
  }

  /** A store begins to write `leaseSize` permits beside the present counts. */
  beginLease(): void {
    this.#takenSinceLease = 0;
  }

  /** The store has written them. Does nothing for a limit that did not exist when it began. */
  endLease(): void {
    if (this.#takenSinceLease !== undefined) this.leased = this.leaseSize - this.#takenSinceLease;
    this.#takenSinceLease = undefined;
  }

  /** The report for a store of many replicas; it repeats its calls until the store confirms them. Without `isActive` all permits are given back. */
  report(at: number, isActive: boolean, isHighWaiting: boolean): LimitReport {
    this.#reported ??= new CountedCalls(this.#own.entriesAt(at));
    // After a time without the store calls go on while it is asked; before the first reply they wait.
    if (isActive && this.#isApart) this.leased = Math.max(0, Math.min(this.leaseSize, this.left(at, false)));
    else if (!isActive || this.leased === Infinity) this.leased = 0;
    const leased = Math.max(0, this.leased);
    const held = Math.max(0, this.#own.countAt(at) - this.#reported.countAt(at)) + leased;
    const want = isActive ? Math.max(0, this.leaseSize - leased) : 0;
    const { calls, reserve } = this.terms;
    return {
      key: this.key,
      calls,
      reserve: isHighWaiting ? 0 : reserve,
      held,
      leased,
      want,
      isNew: !this.isReported,
      isOfOperation: this.terms.match !== undefined,
      counts: this.#reported.entriesAt(at),
      heldUntil: this.window.expiryAt(at + MAX_UNNOTICED_MS),
      known: new CountedCalls([...this.#known.entriesAt(at), ...this.#assumed.entriesAt(at)]).entriesAt(at),
    };
  }

  /** The store has confirmed the last report. */
  recordGrant(at: number, { granted, counts, heldByOthers }: LimitGrant, replicas: number): void {
    const before = this.#known.countAt(at) + this.#own.countAt(at);
    for (const [expiresAt, calls] of this.#reported?.entriesAt(at) ?? []) this.#own.add(expiresAt, -calls);
    this.#reported = undefined;
    this.#known = new CountedCalls(counts);
    const byOthers = Math.max(0, this.#known.countAt(at) + this.#own.countAt(at) - before);
    this.#addRecent(at, byOthers);
    this.#usedByOthers += byOthers;
    if (at - this.#sharedRateSince >= MIN_SHARED_RATE_MS) {
      this.#othersPerMs = this.#usedByOthers / (at - this.#sharedRateSince);
      this.#sharedRateSince = at;
      this.#usedByOthers = 0;
    }
    this.#grantedAt = at;
    this.isReported = true;
    this.#heldByOthers = heldByOthers;
    this.part = WHOLE;
    this.#isApart = false;
    this.#assumed = new CountedCalls();
    this.#sharers = replicas;
    this.leased = Math.max(0, this.leased) + granted;
  }

  /**
   * The store is away: each replica keeps to its part of what is left, and counts as used what the others may have used since the last
   * reply: one lease each, and as much as they have used before in that time. A limit that was never shared keeps its configured part.
   */
  goApart(at: number, part: LimitPart): void {
    this.leased = Infinity;
    if (this.#isApart || this.#grantedAt === 0) return;
    const leasedByOthers = Math.max(this.#heldByOthers, (part.parts - 1) * this.leaseSize);
    const sinceReply = Math.ceil(this.#othersPerMs * (at - this.#grantedAt));
    this.#assumed.add(this.window.expiryAt(at + this.#arrivalMs), leasedByOthers + sinceReply);
    this.#heldByOthers = 0;
    this.part = part;
    this.#isApart = true;
    this.#sharers = 1;
  }

  #entriesAt(at: number): readonly CountEntry[] {
    const own = this.#own.entriesAt(at);
    const known = this.#known.entriesAt(at);
    const assumed = this.#assumed.entriesAt(at);
    if (known.length + assumed.length === 0) return own;
    const { version } = this.#own;
    // The others are replaced as a whole, or end.
    const isSame = this.#merged?.known === this.#known && this.#merged.version === version;
    if (!isSame || assumed.length > 0)
      this.#merged = { known: this.#known, version, calls: new CountedCalls([...known, ...assumed, ...own]) };
    return this.#merged?.calls.entriesAt(at) ?? [];
  }

  /** No call counts for longer than one that is made now. */
  #latestEnd(at: number): number {
    return this.window.expiryAt(this.window.endOf(at) ?? at + this.#arrivalMs);
  }

  /** A request of high priority, for which calls are kept, does not wait for an even spread. */
  #usesReserve(isHigh: boolean): boolean {
    return isHigh && this.terms.reserve > 0;
  }

  /** When `missing` more calls have stopped to count. */
  #freedAt(at: number, missing: number, lengthMs: number): number {
    let left = missing;
    const entries = this.#entriesAt(at);
    for (const [expiresAt, calls] of entries) {
      left -= calls / this.part.parts;
      if (left <= 0) return expiresAt;
    }
    // All of them have ended, and as many calls as the limit allows go in each window after that.
    const windows = Math.ceil((left * this.part.parts) / (this.terms.calls - this.terms.reserve));
    return (entries.at(-1)?.[0] ?? at) + windows * lengthMs;
  }

  #evenIntervalMs(at: number): number {
    const { calls, reserve } = this.terms;
    const end = this.window.endOf(at);
    const sharers = this.#sharers * this.part.parts;
    if (end === undefined) return (this.window.lengthMs * sharers) / (calls - reserve);
    return ((end - at) * this.#sharers) / Math.max(1, this.left(at, false) + 1);
  }

  #addRecent(at: number, calls: number): void {
    this.#recentSince = Math.min(this.#recentSince, at);
    this.#recent.add((Math.floor(at / MINUTE_MS) + 1) * MINUTE_MS + HOUR_MS, calls);
  }

  #usedUpAt(at: number): number {
    if (this.window.lengthMs < HOUR_MS) return Infinity;
    const recent = this.#recent.countAt(at);
    const rate = recent / Math.min(HOUR_MS, Math.max(MIN_RATE_MS, at - this.#recentSince));
    let left = this.terms.calls - this.#known.countAt(at) - this.#heldByOthers - this.#own.countAt(at);
    if (left <= 0) return at;
    const end = this.window.endOf(at);
    if (end !== undefined) return rate * (end - at) >= left ? at + left / rate : Infinity;
    if (rate * this.window.lengthMs < this.terms.calls) return Infinity;
    let from = at;
    for (const [expiresAt, calls] of this.#entriesAt(at)) {
      if (rate * (expiresAt - from) >= left) break;
      left += calls - rate * (expiresAt - from);
      from = expiresAt;
    }
    return from + left / rate;
  }
}

function copyEntries(entries: readonly CountEntry[]): readonly CountEntry[] {
  return entries.filter(([, calls]) => calls !== 0).map(([expiresAt, calls]) => [expiresAt, calls]);
}
