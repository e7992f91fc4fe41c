/**
 * The declared limits of one throttle: which of them count a call, their clock and their stores. Limits count in epoch milliseconds, by this
 * machine's clock or, in a fleet, by the store's.
 */
import type { StatedQuota } from '../../platform/rate-limit-fields/stated-quota.ts';
import type { CallResult, PacedCall, PermitGrant } from '../pacing/gate.ts';
import { readSegments, type ReceivedCall } from './call-match.ts';
import { CountedLimit, type LimitGrant, type LimitPart, type LimitReport, type TakenPermits } from './counted-limit.ts';
import type { CountEntry } from './counted-calls.ts';
import type { DeclaredLimit, DeclaredLimitState } from './declared-limit.ts';
import { LimitSet, type LimitContext } from './limit-set.ts';
import { periodMs } from './limit-window.ts';
import { OperationLimit } from './operation-limit.ts';

export interface DeclaredLimitsOptions {
  readonly limits: readonly DeclaredLimit[];
  /** Epoch milliseconds of a monotonic instant. */
  readonly toEpoch: (now: number) => number;
  /** This process's part where no store is known: one of `throttle.share`. */
  readonly part?: LimitPart | undefined;
  /** Asks the store for permits; undefined without a store. Called at each call that finds or leaves few. */
  readonly requestPermits?: (() => void) | undefined;
}

/** The counts of one limit as a store of one process keeps them. */
export interface SavedLimit {
  readonly key: string;
  readonly counts: readonly CountEntry[];
  /** Permits that may have been used beside these. */
  readonly leased: number;
}

/** Statements about shorter windows come too late to be of use. */
const MIN_CORRECTED_MS = periodMs('1h');
/** Blocks of permits of a shorter limit of all calls would need too many exchanges. */
export const MIN_SHARED_MS = 5000;
/** The shortest time to a response doubles within 1400 responses where it has become longer. */
const SHORTEST_GROWTH = 1.0005;
const COMMON_PART = 0.9;
/** Ways there and back differ from call to call by so much. */
const JITTER_MS = 10;
const UNREPRESENTATIVE_RESPONSES = 200;
/** The wall clock shows whole milliseconds, and is behind by up to one. */
const CLOCK_STEPS_MS = 1;
/** A smaller difference is the drift of two clocks. */
const CLOCK_STEP_MS = 1000;
/** Months and days differ in length. */
const WINDOW_TOLERANCE = 0.09;
/** Beyond this number equal sets may become two. */
const MAX_SETS = 1024;

export class DeclaredLimits implements LimitContext {
  readonly forAll: LimitSet;
  readonly requestPermits: (() => void) | undefined;
  readonly #part: LimitPart | undefined;
  #forOperations: readonly OperationLimit[] = [];
  /** By the keys of their limits, so that calls that the same limits count share one. */
  readonly #sets = new Map<string, LimitSet>();
  #toEpoch: (now: number) => number;
  /** From the monotonic clock to the epoch, when it was read last. */
  #offsetMs: number;
  /** The shortest time to a response. */
  #shortestMs = Infinity;
  #responses = 0;

  constructor({ limits, toEpoch, part, requestPermits }: DeclaredLimitsOptions) {
    this.requestPermits = requestPermits;
    this.#part = part;
    this.#toEpoch = toEpoch;
    this.#offsetMs = toEpoch(0);
    this.forAll = new LimitSet([], this);
    this.#declare(limits);
  }

  /** The limits that count this call besides those of all calls; undefined without one. Equal ones are the same object. */
  select({ method, target }: ReceivedCall, now: number): LimitSet | undefined {
    if (this.#forOperations.length === 0) return undefined;
    const readings = readSegments(target);
    const at = this.epochAt(now);
    const limits = this.#forOperations.flatMap((operation) => operation.find(method, readings, at) ?? []);
    if (limits.length === 0) return undefined;
    const key = limits.map((limit) => limit.key).join('\n');
    let set = this.#sets.get(key);
    if (set === undefined || set.limits.some((limit, index) => limit !== limits[index])) {
      if (this.#sets.size >= MAX_SETS) this.#sets.clear();
      set = new LimitSet(limits, this);
      this.#sets.set(key, set);
    }
    return set;
  }

  /** All limits that count this call. */
  limitsOf({ operationLimits }: PacedCall): LimitSet {
    return operationLimits?.withForAll ?? this.forAll;
  }

  /** The calls of a permit had to wait for a connection. */
  recordSentLate(now: number, taken: TakenPermits): void {
    const at = this.epochAt(now);
    for (const one of taken) one.expiresAt = one.limit.resend(at, one.expiresAt);
  }

  /** A call that was not made, or never reached the upstream, costs the partner's day nothing. */
  giveBack(now: number, { declared = [] }: PermitGrant): void {
    const at = this.epochAt(now);
    for (const { limit, expiresAt } of declared) limit.giveBack(at, expiresAt);
  }

  settle(now: number, grant: PermitGrant, { kind, quotas, laterCalls }: CallResult): void {
    if (grant.declared === undefined) return;
    this.#shortestMs = Math.min(now - grant.at, this.#shortestMs * SHORTEST_GROWTH);
    // What every call takes lets none overtake another. The first ones open connections, and say nothing of it.
    const isRepresentative = ++this.#responses > UNREPRESENTATIVE_RESPONSES;
    const commonMs = isRepresentative ? Math.max(0, this.#shortestMs * COMMON_PART - JITTER_MS) : 0;
    const at = this.epochAt(now);
    for (const { limit, expiresAt } of grant.declared) {
      if (kind === 'refused' && !limit.terms.countsRefused) limit.giveBack(at, expiresAt);
      else limit.settle(at + CLOCK_STEPS_MS - commonMs, expiresAt, !isRepresentative);
    }
    const limits = grant.declared.map(({ limit }) => limit);
    if (quotas.length > 0) this.correct(now, grant.at, quotas, grant.inFlight + laterCalls, limits);
  }

  /**
   * Corrects the counts by what a response states.
   * @param grantedAt when its call was granted, monotonic
   * @param uncounted calls in flight then and granted since, which the statement may not contain
   * @param limits that count the call. Default: those of all calls
   */
  correct(
    now: number,
    grantedAt: number,
    quotas: readonly StatedQuota[],
    uncounted: number,
    limits = this.forAll.limits,
  ): void {
    const at = this.epochAt(now);
    for (const limit of limits) {
      const { window } = limit;
      if (window.lengthMs < MIN_CORRECTED_MS) continue;
      const stated = quotas.find((quota) => isOf(quota, limit));
      // The call may belong to the window before.
      if (stated?.remaining === undefined || window.endOf(at - (now - grantedAt)) !== window.endOf(at)) continue;
      if (stated.resetInMs !== undefined) window.adjustEnd(at, at + stated.resetInMs);
      limit.correct(at, stated, uncounted);
    }
  }

  state(now: number): readonly DeclaredLimitState[] {
    const at = this.epochAt(now);
    return [...this.forAll.limits, ...this.#forOperations].map((limit) => limit.state(at));
  }

  /** Limits with the same name, window and `match` keep their counts. A request that waits is counted by those that did when it came. */
  reconfigure(limits: readonly DeclaredLimit[]): void {
    this.#declare(limits);
    this.requestPermits?.();
  }

  /** All counts, for a store of this process alone. Until the next `beginLease` no call may be made that it does not know of. */
  save(now: number): readonly SavedLimit[] {
    const at = this.epochAt(now);
    return this.#limits.map((limit) => ({ key: limit.key, counts: limit.entriesAt(at), leased: 0 }));
  }

  /** As `save`, with permits to be used once this has been stored: `endLease` says so. */
  beginLease(now: number): readonly SavedLimit[] {
    for (const limit of this.#limits) limit.beginLease();
    return this.save(now).map((saved, index) => ({ ...saved, leased: this.#limits[index]?.leaseSize ?? 0 }));
  }

  /** The store has kept what `beginLease` returned last. */
  endLease(): void {
    for (const limit of this.#limits) limit.endLease();
  }

  /** The store has failed: calls go on, and count in memory until it has stored them. */
  goOnWithoutStore(): void {
    for (const limit of this.#limits) limit.leased = Infinity;
  }

  /** Counts what an earlier process has saved. Its leased permits may have been used at any time up to now. */
  restore(saved: readonly SavedLimit[], now: number): void {
    const at = this.epochAt(now);
    for (const { key, counts, leased } of saved) {
      const operation = this.#forOperations.map((one) => one.findKey(key, at)).find((found) => found !== undefined);
      const limit = this.forAll.limits.find((one) => one.key === key) ?? operation;
      limit?.restore(at, counts, leased);
    }
  }

  /**
   * The reports for the fleet's store. A shorter limit of all calls has none, since the rate of the fleet keeps it. Nor has an idle count of an
   * operation that holds no permits.
   * @param isActive calls are to be expected: permits are needed
   */
  report(now: number, isActive: boolean, isHighWaiting: boolean): readonly LimitReport[] {
    const at = this.epochAt(now);
    for (const limit of this.forAll.limits) if (!isShared(limit)) limit.leased = Infinity;
    const reported = this.#shared.filter((limit) => limit.leased !== 0 || !limit.isIdle(at));
    for (const limit of this.#shared) if (!reported.includes(limit)) limit.isReported = false;
    return reported.map((limit) => limit.report(at, isActive && !limit.isIdle(at), isHighWaiting));
  }

  /** @param replicas that share the counts, this one included */
  recordGrants(now: number, grants: readonly LimitGrant[], replicas: number): void {
    const at = this.epochAt(now);
    for (const grant of grants) this.#limits.find(({ key }) => key === grant.key)?.recordGrant(at, grant, replicas);
    // The store leases permits of all limits of all calls, or of none.
    if (this.forAll.isStoreAwaited) for (const limit of this.forAll.limits.filter(isShared)) limit.leased = 0;
  }

  goApart(now: number, part: LimitPart): void {
    const at = this.epochAt(now);
    for (const limit of this.#shared) limit.goApart(at, part);
  }

  /** From now on the limits count by the clock of a store. */
  countBy(toEpoch: (now: number) => number): void {
    this.#toEpoch = toEpoch;
  }

  epochAt(now: number): number {
    const at = this.#toEpoch(now);
    const stepMs = at - now - this.#offsetMs;
    this.#offsetMs += stepMs;
    if (Math.abs(stepMs) > CLOCK_STEP_MS) for (const limit of this.#limits) limit.followClock(at, stepMs);
    return at;
  }

  #declare(declared: readonly DeclaredLimit[]): void {
    const needsLease = this.#limits.some(({ leased }) => Number.isFinite(leased));
    const former = [...this.forAll.limits, ...this.#forOperations];
    const limits = declared.map((terms) => {
      const limit =
        terms.match === undefined ? new CountedLimit(terms, this.#part) : new OperationLimit(terms, this.#part);
      if (needsLease) limit.leased = 0;
      const same = former.find(({ key }) => key === limit.key);
      same?.reconfigure(terms);
      return same ?? limit;
    });
    for (const limit of former) if (!limits.includes(limit)) limit.retire();
    this.forAll.limits = limits.filter((limit) => !(limit instanceof OperationLimit));
    this.#forOperations = limits.filter((limit) => limit instanceof OperationLimit);
    this.#sets.clear();
  }

  get #limits(): readonly CountedLimit[] {
    return [...this.forAll.limits, ...this.#forOperations.flatMap(({ counts }) => counts)];
  }

  get #shared(): readonly CountedLimit[] {
    return this.#limits.filter(isShared);
  }
}

/** The rate of the fleet paces all calls together, so that it can keep no limit of single operations. */
function isShared({ terms, window }: CountedLimit): boolean {
  return terms.match !== undefined || window.lengthMs >= MIN_SHARED_MS;
}

function isOf({ quota, windowMs }: StatedQuota, { terms, window }: CountedLimit): boolean {
  if (windowMs === undefined) return quota === terms.calls;
  return Math.abs(windowMs - window.lengthMs) <= window.lengthMs * WINDOW_TOLERANCE;
}
