/**
 * What the leader learns of the shared limit (pure): one learned rate policy, fed with the grants and responses of all replicas in the
 * order in which they happened. Reports come late, so it works a little in the past; a pause brings it up to the present at once.
 */
import { ENDED, type PermitGrant } from '../../throttle/pacing/gate.ts';
import type { ReportedCalls } from './call-report.ts';
import { CallLog } from '../../throttle/adaptive/call-log.ts';
import { LearnedRatePolicy, type LearnedRatePolicyOptions } from '../../throttle/adaptive/learned-rate-policy.ts';

/** The limit that the fleet keeps. */
export interface FleetLimit {
  /** Permits per second; Infinity while no limit is known. */
  readonly rate: number;
  readonly burst: number;
}

/** Refusals in a row that agree with the learned limit before all replicas keep to it together. */
const MIN_EXPLAINED_REFUSALS = 3;

/** Share of a window's limit that may be saved up: reports show a full window too late to wait for it. */
const WINDOW_BURST_SHARE = 0.02;
/** Calls that took longer are reported after this delay. */
const MAX_REPORT_LAG_MS = 1_000;
/**
 * A refusal of a call made within this time after another one says nothing new: its replica did not know of the first. Before a limit is
 * known nothing is pushed to the others, and all begin at once.
 */
const UNAWARE_MS = 50;
const UNAWARE_ALONE_MS = 1_000;
/** Separate refusals after which replicas that learn alone disturb each other: no limit fits what they cause together. */
const MAX_SEPARATE_REFUSALS = 3;
/** The calls of this time say how fast the replicas were. */
const RECENT_MS = 2_000;
const MAX_RECENT_CALLS = 16_384;
const MAX_RECENT_AGE_MS = 120_000;
const MAX_PENDING_CALLS = 65_536;
/** After a loss of reports the counters have seen too few calls for as long as the known limit counts them, within these bounds. */
const MIN_INCOMPLETE_MS = 3_000;
const MAX_INCOMPLETE_MS = 60_000;
const UNKNOWN_MEMORY_MS = 10_000;
const MAX_CALL_MS = 86_400_000;

export type FleetLearnerOptions = Omit<LearnedRatePolicyOptions, 'inFlightCalls'>;

/** A call that the policy has granted and whose response it has not seen. */
interface OpenCall {
  readonly respondedAt: number;
  readonly isRefused: boolean;
  readonly grant: PermitGrant;
}

/** What all replicas together have learned. */
export class FleetLimitLearner {
  // Only this class writes the public fields.
  /**
   * One limit holds for all replicas. Until enough refusals agree with it, or until replicas that learn alone disturb each other, each of
   * them learns alone.
   */
  isShared = false;
  /** Calls that ended before this instant are learned. */
  learnedUntil = -Infinity;
  policy: LearnedRatePolicy;
  readonly #options: LearnedRatePolicyOptions;
  readonly #recentAccepted = new CallLog(MAX_RECENT_CALLS, MAX_RECENT_AGE_MS);
  #separateRefusals = 0;
  #restartedAt = -Infinity;
  #lostAt = -Infinity;
  #incompleteUntil = -Infinity;
  readonly #inFlightCalls = new CallLog(MAX_PENDING_CALLS, MAX_CALL_MS);
  /** Reported calls that are not granted yet. */
  #pendingCalls: ReportedCalls[] = [];
  /** Sorted by response, the first at the end. */
  readonly #openCalls: OpenCall[] = [];
  /** A restored limit has explained the refusals before this instant. */
  #knownUntil = -Infinity;
  #epoch = 0;
  #lastRefusedAt = -Infinity;
  #replicaCount = 1;
  #longestTookMs = 0;
  #serial = 0;
  /** Burst of the known limit, also while more is probed. */
  #burst = 1;

  constructor(options: FleetLearnerOptions) {
    this.#options = { ...options, inFlightCalls: this.#inFlightCalls };
    this.policy = new LearnedRatePolicy(this.#options);
  }

  /** No limit explains the refusals. */
  get isTentative(): boolean {
    return this.policy.learned(identity)?.limit === undefined;
  }

  addCalls(calls: readonly ReportedCalls[]): void {
    for (const call of calls) {
      this.#pendingCalls.push(call);
      this.#longestTookMs = Math.max(call.tookMs, this.#longestTookMs * 0.95);
    }
    if (this.#pendingCalls.length > MAX_PENDING_CALLS)
      this.#pendingCalls.splice(0, this.#pendingCalls.length - MAX_PENDING_CALLS);
  }

  /**
   * What is known stays: until the counters are complete again a refusal says nothing.
   * @param at calls made before this were not all reported
   */
  recordLoss(at: number): void {
    if (!(at > this.#lostAt)) return;
    this.#lostAt = at;
    this.policy.postponeLimitProbe(at);
    const { rate, limit, windowMs } = this.policy.learned(identity) ?? {};
    const memoryMs =
      limit === undefined || rate === undefined ? UNKNOWN_MEMORY_MS : (windowMs ?? (limit * 1000) / rate);
    this.#incompleteUntil = at + Math.min(MAX_INCOMPLETE_MS, Math.max(MIN_INCOMPLETE_MS, memoryMs));
  }

  /**
   * @param until all calls made before this are reported, except those without a response
   * @param replicaCount replicas, this one included
   * @param isPaused learns up to `until`: no further calls are in flight. Otherwise calls that are still in flight get time to be reported
   */
  ingest(until: number, replicaCount: number, isPaused: boolean): void {
    this.#replicaCount = replicaCount;
    this.#pendingCalls.sort((one, other) => one.at - other.at);
    const end = isPaused ? until : until - Math.min(MAX_REPORT_LAG_MS, 2 * this.#longestTookMs);
    let learned = 0;
    for (const calls of this.#pendingCalls) {
      if (calls.at > end) break;
      this.#learnResponses(calls.at);
      for (let count = 0; count < calls.count; count++) this.#learnGrant(calls);
      learned++;
    }
    this.#pendingCalls.splice(0, learned);
    this.#learnResponses(end);
    this.isShared ||= this.policy.explainedRefusals >= MIN_EXPLAINED_REFUSALS;
    if (this.extraRate === 0) this.#burst = Math.max(1, this.policy.burst);
  }

  get limit(): FleetLimit {
    const rate = this.policy.confirmedRate;
    const { kind, limit, windowMs } = this.policy.learned(identity) ?? { kind: 'free' };
    if (kind !== 'window' || limit === undefined || windowMs === undefined) return { rate, burst: this.#burst };
    const burst = Math.max(1, Math.min(this.#burst, Math.floor(limit * WINDOW_BURST_SHARE)));
    // The burst and a window's permits together stay below the limit.
    const safeRate = Math.max(limit - burst, limit / 2) * (1000 / windowMs);
    return { rate: Math.min(rate, safeRate), burst };
  }

  /** Permits per second above the published limit, while a probe is in progress. */
  get extraRate(): number {
    const { rate, confirmedRate } = this.policy;
    return Number.isFinite(rate) ? Math.max(0, rate - confirmedRate) : 0;
  }

  /** @param knownUntil refusals before this instant are known to the snapshot; calls that are reported as accepted still count */
  restore(now: number, snapshot: unknown, knownUntil: number): void {
    this.policy.restore(now, snapshot, 0);
    this.#knownUntil = knownUntil;
    // A restored limit has proved itself with the former leader.
    this.isShared = this.policy.explainedRefusals > 0;
  }

  #isUnaware(grant: PermitGrant): boolean {
    if (grant.at < this.#incompleteUntil || grant.at < this.#knownUntil) return true;
    if (!this.isShared || grant.at < this.#restartedAt + UNAWARE_ALONE_MS)
      return grant.at < this.#lastRefusedAt + UNAWARE_ALONE_MS;
    return !grant.isPauseProbe && (grant.epoch !== this.#epoch || grant.at < this.#lastRefusedAt + UNAWARE_MS);
  }

  /** All keep one schedule from now on. It begins with the calls that they made, and forgets the refusals that they have caused alone. */
  #restart(now: number): void {
    this.isShared = true;
    this.#restartedAt = now;
    this.policy = new LearnedRatePolicy(this.#options);
    // With calls left out a window would seem to allow fewer.
    for (let index = 0; index < this.#recentAccepted.size; index++)
      this.policy.take(this.#recentAccepted.at(index), false);
  }

  /**
   * A replica may wait for its lease where the rate is not used: a rate above twice of what was accepted proves nothing and does not
   * grow. Less than one call is no measure.
   */
  #isRateInUse(now: number, rate: number): boolean {
    const accepted = this.#recentAccepted.count(now - RECENT_MS, Infinity);
    return ((accepted + 1) * 1000) / RECENT_MS >= rate / 2;
  }

  #learnGrant({ at: madeAt, tookMs, isRefused, isWaitedFor: hasWaited, isPauseProbe }: ReportedCalls): void {
    // A call that was reported too late counts as made now.
    const at = Math.max(madeAt, this.learnedUntil);
    this.learnedUntil = at;
    const { rate } = this.policy;
    const isWaitedFor = hasWaited && this.#isRateInUse(at, rate);
    const inFlight = this.#inFlightCalls.size;
    this.#inFlightCalls.add(at);
    const isLimitProbe = this.policy.take(at, isWaitedFor);
    const serial = ++this.#serial;
    const grant = { at, serial, epoch: this.#epoch, rate, isWaitedFor, isLimitProbe, inFlight, isPauseProbe };
    this.#addOpenCall({ respondedAt: Math.max(at, madeAt + tookMs), isRefused, grant });
  }

  #addOpenCall(call: OpenCall): void {
    let index = this.#openCalls.length;
    // Calls take about equally long, so that the place is near the begin.
    const before = this.#openCalls.findIndex(({ respondedAt }) => respondedAt <= call.respondedAt);
    if (before >= 0) index = before;
    this.#openCalls.splice(index, 0, call);
  }

  #learnResponses(until: number): void {
    for (let call = this.#openCalls.at(-1); call !== undefined && call.respondedAt <= until;) {
      this.#openCalls.pop();
      this.#learnResponse(call);
      call = this.#openCalls.at(-1);
    }
  }

  #learnResponse({ respondedAt, isRefused, grant }: OpenCall): void {
    this.learnedUntil = Math.max(this.learnedUntil, respondedAt);
    this.#inFlightCalls.remove(grant.at);
    const isCurrent = grant.epoch === this.#epoch;
    if (!isRefused) {
      this.policy.settle(respondedAt, grant, { ...ENDED, kind: 'accepted', isCurrent });
      this.#recentAccepted.add(grant.at);
    } else if (this.#isUnaware(grant)) this.policy.giveBack(respondedAt, grant);
    else {
      this.#lastRefusedAt = respondedAt;
      this.#epoch++;
      if (!this.isShared && this.#replicaCount > 1 && ++this.#separateRefusals >= MAX_SEPARATE_REFUSALS)
        this.#restart(respondedAt);
      this.policy.settle(respondedAt, grant, { ...ENDED, kind: 'refused' });
    }
  }
}

function identity(at: number): number {
  return at;
}
