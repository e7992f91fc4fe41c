/**
 * Decides whether a permit may be granted now, and if not, when (pure). It joins governor, permit source and in-flight slots, and
 * keeps them in step as attempts end. Which request gets a permit is the queue's decision.
 */
import type { FleetMembership } from '../fleet-membership.ts';
import { createGovernor } from './governor.ts';
import type { Governor, GovernorOptions, LimitDecision } from './governor-contract.ts';
import type { PermitGrant } from './permit-grant.ts';
import { PermitBucket } from './permit-bucket.ts';
import type { PermitSource } from './permit-source.ts';
import type { LearnedLimit, LimitUsage, PermitReport, RateSettings } from '../throttle.ts';

/** Part of a wait computed from a learned rate that is certain. */
const LEARNED_RATE_SAFETY_FACTOR = 0.8;

export interface PermitGateOptions extends RateSettings, GovernorOptions {
  /** Wraps the source of permits and the rate. */
  readonly fleet?: Pick<FleetMembership, 'wrapPermits' | 'wrapRatePolicy'> | undefined;
}

/** Grants permits one by one; takes back results, slots and unspent permits. */
export class PermitGate {
  readonly #governor: Governor;
  readonly #permits: PermitSource;
  #maxInFlight: number;
  #maxStreams: number;
  #inFlightLimit: number;
  /** The last request that got no permit waits for the upstream's limit, and not for an in-flight slot of ours. */
  #waitsForRate = false;
  #inFlight = 0;
  #streams = 0;

  constructor(options: PermitGateOptions) {
    const { fleet } = options;
    this.#governor = createGovernor(options, fleet && ((own) => fleet.wrapRatePolicy(own)));
    const { rate, burst, inFlightLimit } = this.#governor.ratePolicy;
    const bucket = new PermitBucket(rate, burst);
    this.#permits = fleet?.wrapPermits(bucket) ?? bucket;
    this.#maxInFlight = options.maxInFlight;
    this.#maxStreams = options.maxStreams;
    this.#inFlightLimit = Math.min(inFlightLimit, this.#maxInFlight);
  }

  /** Permits per second, of a whole fleet while it is joined. */
  get rate(): number {
    return this.#permits.rate;
  }

  /** A pause is not over, or its probe has no response yet. */
  get isPaused(): boolean {
    return this.#governor.isPaused;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get streams(): number {
    return this.#streams;
  }

  get inFlightLimit(): number {
    return this.#inFlightLimit;
  }

  /** How many permits `waiting` requests could use now. */
  usablePermits(now: number, waiting: number): number {
    if (this.#governor.openAt(now) > now) return 0;
    return Math.max(0, Math.min(waiting, this.#inFlightLimit - this.#inFlight, this.#governor.isPaused ? 1 : Infinity));
  }

  /**
   * Grants if slots, governor and permit source allow it.
   * @param hasWaited the request was held up before
   */
  tryGrant(now: number, hasWaited: boolean): PermitGrant | undefined {
    const hasSlot = this.#inFlight < this.#inFlightLimit;
    if (!hasSlot || this.#governor.openAt(now) > now || !this.#permits.tryTake(now)) {
      this.#waitsForRate = hasSlot || this.#governor.ratePolicy.limitsConcurrency;
      return undefined;
    }
    this.#inFlight++;
    const isWaitedFor = hasWaited && this.#waitsForRate && this.#permits.isScarce;
    const grant = this.#governor.recordGrant(now, isWaitedFor);
    this.applyRate(now);
    return grant;
  }

  /** When to try again; Infinity when only a freed slot or the fleet can help. */
  nextTryAt(now: number): number {
    if (this.#inFlight >= this.#inFlightLimit) return Infinity;
    return this.#permits.nextAt(now, Math.max(now, this.#governor.openAt(now)));
  }

  /** How many permits could be granted now. */
  grantablePermits(now: number): number {
    if (this.#governor.openAt(now) > now) return 0;
    return Math.max(0, Math.min(this.#inFlightLimit - this.#inFlight, this.#permits.available(now)));
  }

  /**
   * Expected wait behind `ahead` others, from pause and present rate; with `auto` an estimate.
   * @param maxPauseMs of the pause that counts. Default: all of it
   */
  estimateWaitMs(now: number, ahead: number, maxPauseMs = Infinity): number {
    const pausedMs = Math.max(0, this.#governor.currentPause(now).endsAt - now);
    return this.#permits.nthAt(now + Math.min(pausedMs, maxPauseMs), ahead) - now;
  }

  /** Lower bound of the wait behind `ahead` others, from what is configured and what the upstream stated. */
  minWaitMs(now: number, ahead: number): number {
    const knownMs = this.#permits.minWaitMs(ahead);
    if (knownMs !== undefined) return Math.max(knownMs, this.statedPauseUntil(now) - now);
    if (this.#governor.hasConfiguredRate) return this.estimateWaitMs(now, ahead);
    if (this.#governor.ratePolicy.isConfident) return this.estimateWaitMs(now, ahead) * LEARNED_RATE_SAFETY_FACTOR;
    return this.statedPauseUntil(now) - now;
  }

  /** Lower bound of a retry's wait behind `older` ones; with a learned rate only the next permit counts. */
  retryWaitMs(now: number, older: number): number {
    return this.estimateWaitMs(now, this.#governor.hasConfiguredRate ? older : 0);
  }

  /** Until when the upstream itself said to wait; `now` when it said nothing. */
  statedPauseUntil(now: number): number {
    const pause = this.#governor.currentPause(now);
    return pause.isCertain ? Math.max(now, pause.endsAt) : now;
  }

  pausedMs(now: number): number {
    return this.#governor.pausedMs(now);
  }

  rejectsNew(now: number, probeIsTaken: boolean): boolean {
    return this.#governor.rejectsNew(now, probeIsTaken);
  }

  report(now: number, grant: PermitGrant, result: PermitReport): LimitDecision {
    const decision = this.#governor.recordResult(now, grant, result);
    this.applyRate(now);
    return decision;
  }

  /** The attempt's request is sent. */
  recordSent(now: number, grant: PermitGrant): void {
    this.#permits.recordUse(now, grant.at);
  }

  /** The attempt ended without a result. */
  endWithoutResult(now: number, grant: PermitGrant): void {
    this.#governor.recordEnded(now, grant);
  }

  /** The attempt was never made: its permit is unspent. */
  giveBack(now: number, grant: PermitGrant): void {
    this.#permits.giveBack(now);
    this.#governor.recordUnused(now, grant);
  }

  freeSlot(): void {
    this.#inFlight--;
  }

  /** Moves a slot to the streams; false when `maxStreams` are open. */
  moveSlotToStreams(): boolean {
    if (this.#streams >= this.#maxStreams) return false;
    this.#streams++;
    this.#inFlight--;
    return true;
  }

  freeStream(): void {
    this.#streams--;
  }

  learned(wallAt: (at: number) => number): LearnedLimit | undefined {
    return this.#governor.learned(wallAt);
  }

  /** How much of the chosen limit is used; undefined without one. */
  usage(now: number): LimitUsage | undefined {
    const counted = this.#governor.ratePolicy.countUsed(now);
    return counted && { ...counted, opensInMs: Math.max(0, this.nextTryAt(now) - now) };
  }

  snapshot(now: number): object | undefined {
    return this.#governor.snapshot(now);
  }

  restore(now: number, snapshot: unknown, ageMs: number): void {
    this.#governor.restore(now, snapshot, ageMs);
    this.applyRate(now);
  }

  /** Saved-up permits do not become more by it, and calls in flight stay. */
  reconfigure(now: number, settings: RateSettings): void {
    this.#maxInFlight = settings.maxInFlight;
    this.#maxStreams = settings.maxStreams;
    this.#governor.reconfigure(now, settings);
    this.applyRate(now);
  }

  /** Another replica that shares the limit was refused. */
  joinPause(now: number, statedWaitMs: number | undefined): void {
    this.#governor.joinPause(now, statedWaitMs);
  }

  /** Takes over rate and limits from the governor; to be called when something else than this gate may have changed them. */
  applyRate(now: number): void {
    const { rate, burst, inFlightLimit } = this.#governor.ratePolicy;
    this.#inFlightLimit = Math.min(inFlightLimit, this.#maxInFlight);
    this.#permits.setRate(now, rate, burst);
  }
}
