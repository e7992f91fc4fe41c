/**
 * The pace of a replica in a fleet (pure). While it is joined nothing is learned here: slots are the pace, and what became of calls is
 * noted for the leader. Apart it keeps to its part of the last known rate. Before anything is known it goes by a pace of its own,
 * as if there were no fleet.
 */
import type { LeaderElection } from './leader-election.ts';
import type { CallCollector } from './call-report.ts';
import type { QuotaLease } from './quota-lease.ts';
import type { PermitGrant } from '../../throttle/pacing/permit-grant.ts';
import type { RatePolicy } from '../../throttle/pacing/rate-policy.ts';
import type { LearnedLimit, RateSettings } from '../../throttle/throttle.ts';

const INITIAL_IN_FLIGHT = 4;

/** What a fleet’s pace is made from. */
export interface FleetRatePolicyOptions {
  readonly lease: QuotaLease;
  readonly calls: CallCollector;
  readonly election: LeaderElection;
  /** The pace without a fleet. */
  readonly ownPolicy: RatePolicy;
  /** As they are now: they may change under a pace that stays. */
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
    if (lease.state === 'joined') return Infinity;
    return lease.state === 'apart' ? lease.ownRate : ownPolicy.rate;
  }

  get burst(): number {
    const { lease, ownPolicy } = this.#options;
    return lease.state === 'unknown' ? ownPolicy.burst : lease.ownBurst;
  }

  get inFlightLimit(): number {
    const { lease, ownPolicy } = this.#options;
    return lease.state === 'unknown' ? ownPolicy.inFlightLimit : this.#inFlightLimit;
  }

  get limitsConcurrency(): boolean {
    return this.#options.lease.state === 'unknown' && this.#options.ownPolicy.limitsConcurrency;
  }

  get isConfident(): boolean {
    const { lease, ownPolicy } = this.#options;
    // What others will ask for is not known.
    return lease.state === 'unknown' ? ownPolicy.isConfident : this.#isConfigured || lease.state === 'apart';
  }

  openAt(now: number, isPaused: boolean): number {
    const { lease, ownPolicy, election } = this.#options;
    if (lease.state === 'unknown') return ownPolicy.openAt(now, isPaused);
    if (lease.state === 'apart') return lease.apartOpenAt;
    return lease.isFleetPaused && lease.isLeader ? election.openAt(now, lease.epoch) : -Infinity;
  }

  recordGrant(now: number, waitedFor: boolean): boolean {
    const { lease, ownPolicy } = this.#options;
    return lease.state === 'unknown' ? ownPolicy.recordGrant(now, waitedFor) : lease.tookExtra;
  }

  recordAccepted(now: number, grant: PermitGrant, fresh: boolean): void {
    const { lease, ownPolicy } = this.#options;
    this.#recordCall(now, grant, false);
    if (this.#inFlightLimit < this.#options.settings().maxInFlight) this.#inFlightLimit++;
    if (lease.state === 'unknown') ownPolicy.recordAccepted(now, grant, fresh);
    else if (lease.state === 'apart') lease.adjustApartRate(false);
  }

  recordRefused(now: number, grant: PermitGrant): void {
    const { lease, ownPolicy } = this.#options;
    this.#recordCall(now, grant, true);
    if (lease.state === 'unknown') ownPolicy.recordRefused(now, grant);
    else if (lease.state === 'apart') lease.adjustApartRate(true);
  }

  recordLateRefusal(now: number, grant: PermitGrant): void {
    const { lease, ownPolicy } = this.#options;
    this.#recordCall(now, grant, true);
    if (lease.state === 'unknown') ownPolicy.recordLateRefusal(now, grant);
  }

  recordEnded(grant: PermitGrant): void {
    const { lease, ownPolicy } = this.#options;
    if (grant.isProbeCall) lease.onExtraEnded();
    if (lease.state === 'unknown') ownPolicy.recordEnded(grant);
  }

  recordUnused(grant: PermitGrant): void {
    const { lease, ownPolicy } = this.#options;
    if (grant.isProbeCall) lease.onExtraEnded();
    if (lease.state === 'unknown') ownPolicy.recordUnused(grant);
  }

  learned(wallAt: (at: number) => number): LearnedLimit | undefined {
    if (this.#isConfigured) return undefined;
    const { lease, ownPolicy, election } = this.#options;
    if (lease.state === 'unknown') return ownPolicy.learned(wallAt);
    const learned = election.learned(wallAt);
    return learned && { ...learned, rate: lease.fleetRate };
  }

  snapshot(now: number): object | undefined {
    if (this.#isConfigured) return undefined;
    const { lease, ownPolicy, election } = this.#options;
    return lease.state === 'unknown' ? ownPolicy.snapshot(now) : election.snapshot(now);
  }

  restore(now: number, snapshot: unknown, ageMs: number): void {
    this.#options.ownPolicy.restore(now, snapshot, ageMs);
  }

  #recordCall(now: number, { at, isWaitedFor, isPauseProbe, isProbeCall }: PermitGrant, isRefused: boolean): void {
    const { lease, calls } = this.#options;
    if (isProbeCall) lease.onExtraEnded();
    const tookMs = Math.max(0, now - at);
    // What was sent beyond the limit was waited for by definition.
    calls.add({ at, count: 1, tookMs, isRefused, isWaitedFor: isWaitedFor || isProbeCall, isProbe: isPauseProbe });
  }
}
