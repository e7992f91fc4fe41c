/**
 * What the leader learns of the shared limit (pure): one learned rate policy, fed with the calls of all replicas in the order in
 * which they were made. Reports come late, so it works a little in the past; a refusal brings it up to the present at once.
 */
import type { PermitGrant } from '../../throttle/pacing/permit-grant.ts';
import type { ReportedCalls } from './call-report.ts';
import { CallLog } from '../../throttle/adaptive/call-log.ts';
import { LearnedRatePolicy, type LearnedRatePolicyOptions } from '../../throttle/adaptive/learned-rate-policy.ts';
import type { LearnedLimit } from '../../throttle/throttle.ts';

/** The limit that the fleet keeps. */
export interface FleetLimit {
  /** Permits per second; Infinity while no limit is known. */
  readonly rate: number;
  readonly burst: number;
}

/** Share of a window's limit that may be saved up: reports show a full window too late to wait for it. */
const WINDOW_BURST_SHARE = 0.02;
/** Calls that took longer are reported after this delay. */
const MAX_REPORT_LAG_MS = 1_000;
const MAX_PENDING_CALLS = 65_536;

export type FleetLearnerOptions = Omit<LearnedRatePolicyOptions, 'inFlightCalls'>;

export class FleetLimitLearner {
  readonly #policy: LearnedRatePolicy;
  /** Reports come after responses: a call is in flight only while it is learned from. */
  readonly #inFlightCalls = new CallLog(1, Infinity);
  #pendingCalls: ReportedCalls[] = [];
  #lastAt = -Infinity;
  #lastRefusedAt = -Infinity;
  #longestTookMs = 0;
  #serial = 0;
  /** Burst of the known limit, also while more is probed. */
  #burst = 1;

  constructor(options: FleetLearnerOptions) {
    // The number of other replicas' calls in flight is not known.
    const kinds = options.learning.kinds.filter((kind) => kind !== 'concurrency');
    this.#policy = new LearnedRatePolicy({
      ...options,
      learning: { ...options.learning, kinds },
      inFlightCalls: this.#inFlightCalls,
    });
  }

  /** Calls of one replica, in any order. */
  addCalls(calls: readonly ReportedCalls[]): void {
    for (const call of calls) {
      this.#pendingCalls.push(call);
      this.#longestTookMs = Math.max(call.tookMs, this.#longestTookMs * 0.95);
    }
    if (this.#pendingCalls.length > MAX_PENDING_CALLS)
      this.#pendingCalls.splice(0, this.#pendingCalls.length - MAX_PENDING_CALLS);
  }

  /** @param until all calls made before this are reported, except those without a response */
  ingest(until: number): void {
    this.#pendingCalls.sort((one, other) => one.at - other.at);
    const settledAt = until - Math.min(MAX_REPORT_LAG_MS, 2 * this.#longestTookMs);
    const isUrgent = this.#pendingCalls.some(({ at, isRefused }) => isRefused && at <= until);
    const end = this.#pendingCalls.findIndex(({ at }) => at > (isUrgent ? until : settledAt));
    for (const calls of this.#pendingCalls.splice(0, end < 0 ? this.#pendingCalls.length : end))
      this.#learnCalls(calls);
    if (this.extraRate === 0) this.#burst = Math.max(1, this.#policy.burst);
  }

  get limit(): FleetLimit {
    const rate = this.#policy.confirmedRate;
    const { kind, limit, windowMs } = this.#policy.learned(identity) ?? { kind: 'free' };
    if (limit === undefined || windowMs === undefined || !kind.endsWith('window')) return { rate, burst: this.#burst };
    const burst = Math.max(1, Math.floor(limit * WINDOW_BURST_SHARE));
    // The burst and a window's permits together stay below the limit.
    const safeRate = Math.max(limit - burst, limit / 2) * (1000 / windowMs);
    return { rate: Math.min(rate, safeRate), burst };
  }

  /** Permits per second above the published limit, while a probe is in progress. */
  get extraRate(): number {
    const { rate, confirmedRate } = this.#policy;
    return Number.isFinite(rate) ? Math.max(0, rate - confirmedRate) : 0;
  }

  /** When the limit allows the next call; past or -Infinity: now. */
  openAt(now: number): number {
    return this.#policy.openAt(now, true);
  }

  learned(wallAt: (at: number) => number): LearnedLimit | undefined {
    return this.#policy.learned(wallAt);
  }

  snapshot(now: number): object | undefined {
    return this.#policy.snapshot(now);
  }

  restore(now: number, snapshot: unknown, ageMs: number): void {
    this.#policy.restore(now, snapshot, ageMs);
  }

  #learnCalls(calls: ReportedCalls): void {
    for (let count = 0; count < calls.count; count++) this.#learnCall(calls);
  }

  #learnCall({ at: madeAt, tookMs, isRefused, isWaitedFor, isProbe }: ReportedCalls): void {
    // A call that was reported too late counts as made now.
    const at = Math.max(madeAt, this.#lastAt);
    this.#lastAt = at;
    const { rate } = this.#policy;
    this.#inFlightCalls.add(at);
    const isProbeCall = this.#policy.recordGrant(at, isWaitedFor);
    this.#inFlightCalls.remove(at);
    const common = { at, serial: ++this.#serial, epoch: 0, rate, isWaitedFor, isProbeCall, inFlight: 0 };
    const grant: PermitGrant = { ...common, isPauseProbe: isProbe };
    const respondedAt = at + tookMs;
    if (!isRefused) this.#policy.recordAccepted(respondedAt, grant, madeAt > this.#lastRefusedAt);
    else if (madeAt <= this.#lastRefusedAt && !isProbe) this.#policy.recordLateRefusal(respondedAt, grant);
    else {
      this.#lastRefusedAt = respondedAt;
      this.#policy.recordRefused(respondedAt, grant);
    }
  }
}

function identity(at: number): number {
  return at;
}
