/**
 * The rate of a replica in a fleet (pure). Before the fleet has learned a limit: its own policy, as if there were no fleet. Then leased
 * permits are the rate. Apart: its part of the last known rate. Calls are collected for the leader at all times.
 */
import type { LeaderElection } from './leader-election.ts';
import type { ReportBuffer } from './call-report.ts';
import type { QuotaLease } from './quota-lease.ts';
import type { CallResult, PermitGrant } from '../../throttle/pacing/gate.ts';
import type { RateLearner, RatePolicy } from '../../throttle/pacing/rate-policy.ts';
import type { LearnedLimit, RateSettings } from '../../throttle/throttle.ts';

const INITIAL_IN_FLIGHT = 4;

export class FleetRatePolicy implements RatePolicy, RateLearner {
  readonly learner: RateLearner = this;
  /** The permits of a fleet are always asked for. */
  readonly isUnlimited = false;
  readonly #lease: QuotaLease;
  readonly #election: LeaderElection;
  readonly #reports: ReportBuffer;
  readonly #own: RatePolicy;
  readonly #settings: () => RateSettings;
  readonly #isConfigured: boolean;
  #inFlightLimit: number;

  /** @param settings the present ones: they may change while the policy stays */
  constructor(
    lease: QuotaLease,
    election: LeaderElection,
    reports: ReportBuffer,
    own: RatePolicy,
    settings: () => RateSettings,
  ) {
    this.#lease = lease;
    this.#election = election;
    this.#reports = reports;
    this.#own = own;
    this.#settings = settings;
    const { rate, maxInFlight } = settings();
    this.#isConfigured = rate !== 'auto';
    this.#inFlightLimit = this.#isConfigured ? maxInFlight : Math.min(INITIAL_IN_FLIGHT, maxInFlight);
  }

  get rate(): number {
    if (this.#lease.isLearningAlone) return this.#own.rate;
    return this.#lease.state === 'apart' ? this.#lease.ownRate : Infinity;
  }

  get burst(): number {
    return this.#lease.isLearningAlone ? this.#own.burst : this.#lease.ownBurst;
  }

  get inFlightLimit(): number {
    return this.#lease.isLearningAlone ? this.#own.inFlightLimit : this.#inFlightLimit;
  }

  get limitsConcurrency(): boolean {
    return this.#lease.isLearningAlone && this.#own.limitsConcurrency;
  }

  get isConfident(): boolean {
    // The demand of the other replicas is not known.
    return this.#lease.isLearningAlone ? this.#own.isConfident : this.#isConfigured || this.#lease.state === 'apart';
  }

  nextAt(now: number, isPaused = false): number {
    const lease = this.#lease;
    if (lease.state === 'apart') return lease.apartOpenAt;
    const mustSettle = lease.isFleetPaused && lease.isLeader;
    const leaderAt = mustSettle ? (this.#election.leader?.nextAt(now, lease.epoch) ?? Infinity) : -Infinity;
    return Math.max(leaderAt, this.#ownLearner?.nextAt(now, isPaused) ?? -Infinity);
  }

  take(now: number, isWaitedFor: boolean): boolean {
    if (!this.#lease.isLearningAlone) return this.#lease.tookExtra;
    return this.#own.learner?.take(now, isWaitedFor) ?? false;
  }

  giveBack(now: number, grant: PermitGrant): void {
    if (grant.isLimitProbe) this.#lease.onExtraEnded();
    this.#ownLearner?.giveBack(now, grant);
  }

  settle(now: number, grant: PermitGrant, result: CallResult): boolean {
    if (grant.isLimitProbe) this.#lease.onExtraEnded();
    const { kind, isCurrent, isUnavailable = false } = result;
    const isRefused = kind === 'refused';
    if (kind === 'accepted' || (isRefused && !(isUnavailable && isCurrent))) {
      this.#recordCall(now, grant, isRefused);
      if (!isRefused && this.#inFlightLimit < this.#settings().maxInFlight) this.#inFlightLimit++;
      if (this.#lease.state === 'apart' && !(isRefused && !isCurrent)) this.#lease.adjustApartRate(isRefused);
    }
    this.#ownLearner?.settle(now, grant, result);
    return false;
  }

  adopt(): void {
    // The limits of single operations are each replica's own.
  }

  forgetRefusals(): void {
    this.#own.learner?.forgetRefusals();
  }

  learned(wallAt: (at: number) => number): LearnedLimit | undefined {
    if (this.#isConfigured) return undefined;
    if (this.#lease.isLearningAlone) return this.#own.learner?.learned(wallAt);
    const learned = this.#election.learned(wallAt);
    return learned && { ...learned, rate: this.#lease.fleetRate };
  }

  /** A replica sees its own calls only: what it counts says nothing about a quota that others use. */
  countUsed(now: number): ReturnType<RateLearner['countUsed']> {
    return this.#ownLearner?.countUsed(now);
  }

  snapshot(now: number): object | undefined {
    if (this.#isConfigured) return undefined;
    // What a replica has learned beside others is its part of the limit.
    const isAlone = this.#lease.isLearningAlone && this.#lease.replicaCount === 1;
    return isAlone ? this.#own.learner?.snapshot(now) : this.#election.snapshot(now);
  }

  restore(now: number, snapshot: unknown, ageMs: number): void {
    this.#own.learner?.restore(now, snapshot, ageMs);
  }

  /** Undefined with a configured rate, and while all replicas keep one schedule. */
  get #ownLearner(): RateLearner | undefined {
    return this.#lease.isLearningAlone ? this.#own.learner : undefined;
  }

  #recordCall(now: number, { at, isWaitedFor, isPauseProbe, isLimitProbe }: PermitGrant, isRefused: boolean): void {
    const tookMs = Math.max(0, now - at);
    // A call above the limit uses the whole rate by definition.
    const usesRate = isWaitedFor || isLimitProbe;
    this.#reports.add({ at, count: 1, tookMs, isRefused, isWaitedFor: usesRate, isPauseProbe });
  }
}
