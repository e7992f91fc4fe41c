/**
 * The rate of a replica in a fleet (pure). Before the fleet has learned a limit: its own policy, as if there were no fleet. Then leased
 * permits are the rate. Apart: its part of the last known rate. Calls are collected for the leader at all times.
 */
import type { LeaderElection } from './leader-election.ts';
import type { CallCollector } from './call-report.ts';
import type { QuotaLease } from './quota-lease.ts';
import type { PermitGrant } from '../../throttle/pacing/permit-grant.ts';
import type { RatePolicy, StatedWait } from '../../throttle/pacing/rate-policy.ts';
import type { LearnedLimit, RateSettings } from '../../throttle/throttle.ts';

const INITIAL_IN_FLIGHT = 4;

export interface FleetRatePolicyOptions {
  readonly lease: QuotaLease;
  readonly calls: CallCollector;
  readonly election: LeaderElection;
  /** The policy without a fleet. */
  readonly ownPolicy: RatePolicy;
  /** The present settings: they may change while the policy stays. */
  readonly settings: () => RateSettings;
}

export class FleetRatePolicy implements RatePolicy {
  readonly #options: FleetRatePolicyOptions;
  readonly #isConfigured: boolean;
  #inFlightLimit: number;

  constructor(options: FleetRatePolicyOptions) {
    this.#options = options;
    const { rate, maxInFlight } = options.settings();
    this.#isConfigured = rate !== 'auto';
    this.#inFlightLimit = this.#isConfigured ? maxInFlight : Math.min(INITIAL_IN_FLIGHT, maxInFlight);
  }

  get rate(): number {
    const { lease, ownPolicy } = this.#options;
    if (lease.isLearningAlone) return ownPolicy.rate;
    return lease.state === 'apart' ? lease.ownRate : Infinity;
  }

  get burst(): number {
    const { lease, ownPolicy } = this.#options;
    return lease.isLearningAlone ? ownPolicy.burst : lease.ownBurst;
  }

  get inFlightLimit(): number {
    const { lease, ownPolicy } = this.#options;
    return lease.isLearningAlone ? ownPolicy.inFlightLimit : this.#inFlightLimit;
  }

  get limitsConcurrency(): boolean {
    return this.#options.lease.isLearningAlone && this.#options.ownPolicy.limitsConcurrency;
  }

  get isConfident(): boolean {
    const { lease, ownPolicy } = this.#options;
    // The demand of the other replicas is not known.
    return lease.isLearningAlone ? ownPolicy.isConfident : this.#isConfigured || lease.state === 'apart';
  }

  openAt(now: number, isPaused: boolean): number {
    const { lease, ownPolicy, election } = this.#options;
    const leaderAt = lease.isFleetPaused && lease.isLeader ? election.openAt(now, lease.epoch) : -Infinity;
    if (lease.isLearningAlone) return Math.max(leaderAt, ownPolicy.openAt(now, isPaused));
    if (lease.state === 'apart') return lease.apartOpenAt;
    return leaderAt;
  }

  recordGrant(now: number, waitedFor: boolean): boolean {
    const { lease, ownPolicy } = this.#options;
    return lease.isLearningAlone ? ownPolicy.recordGrant(now, waitedFor) : lease.tookExtra;
  }

  recordAccepted(now: number, grant: PermitGrant, fresh: boolean): void {
    const { lease, ownPolicy } = this.#options;
    this.#recordCall(now, grant, false);
    if (this.#inFlightLimit < this.#options.settings().maxInFlight) this.#inFlightLimit++;
    if (lease.isLearningAlone) ownPolicy.recordAccepted(now, grant, fresh);
    else if (lease.state === 'apart') lease.adjustApartRate(false);
  }

  recordRefused(now: number, grant: PermitGrant, statedWait?: StatedWait): void {
    const { lease, ownPolicy } = this.#options;
    this.#recordCall(now, grant, true);
    if (lease.isLearningAlone) ownPolicy.recordRefused(now, grant, statedWait);
    else if (lease.state === 'apart') lease.adjustApartRate(true);
  }

  recordLateRefusal(now: number, grant: PermitGrant): void {
    const { lease, ownPolicy } = this.#options;
    this.#recordCall(now, grant, true);
    if (lease.isLearningAlone) ownPolicy.recordLateRefusal(now, grant);
  }

  recordEnded(grant: PermitGrant): void {
    const { lease, ownPolicy } = this.#options;
    if (grant.isProbeCall) lease.onExtraEnded();
    if (lease.isLearningAlone) ownPolicy.recordEnded(grant);
  }

  recordUnused(grant: PermitGrant): void {
    const { lease, ownPolicy } = this.#options;
    if (grant.isProbeCall) lease.onExtraEnded();
    if (lease.isLearningAlone) ownPolicy.recordUnused(grant);
  }

  learned(wallAt: (at: number) => number): LearnedLimit | undefined {
    if (this.#isConfigured) return undefined;
    const { lease, ownPolicy, election } = this.#options;
    if (lease.isLearningAlone) return ownPolicy.learned(wallAt);
    const learned = election.learned(wallAt);
    return learned && { ...learned, rate: lease.fleetRate };
  }

  /** A replica sees its own calls only: what it counts says nothing about a quota that others use. */
  countUsed(now: number): ReturnType<RatePolicy['countUsed']> {
    const { lease, ownPolicy } = this.#options;
    return !this.#isConfigured && lease.isLearningAlone ? ownPolicy.countUsed(now) : undefined;
  }

  snapshot(now: number): object | undefined {
    if (this.#isConfigured) return undefined;
    const { lease, ownPolicy, election } = this.#options;
    // What a replica has learned beside others is its part of the limit.
    return lease.isLearningAlone && lease.replicaCount === 1 ? ownPolicy.snapshot(now) : election.snapshot(now);
  }

  restore(now: number, snapshot: unknown, ageMs: number): void {
    this.#options.ownPolicy.restore(now, snapshot, ageMs);
  }

  #recordCall(now: number, { at, isWaitedFor, isPauseProbe, isProbeCall }: PermitGrant, isRefused: boolean): void {
    const { lease, calls } = this.#options;
    if (isProbeCall) lease.onExtraEnded();
    const tookMs = Math.max(0, now - at);
    // A call above the limit uses the whole rate by definition.
    calls.add({ at, count: 1, tookMs, isRefused, isWaitedFor: isWaitedFor || isProbeCall, isProbe: isPauseProbe });
  }
}
