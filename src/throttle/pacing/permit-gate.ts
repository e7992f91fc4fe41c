/**
 * The gate: may a permit be granted now, and if not, when. It joins governor, bucket and in-flight slots, and keeps them in step
 * as attempts end. Time is a parameter; who waits, in which order and until when is the waiting room's.
 */
import type { FleetMembership } from '../fleet-membership.ts';
import { createGovernor } from './governor.ts';
import type { Governor, GovernorOptions, LimitDecision } from './governor-contract.ts';
import type { PermitGrant } from './permit-grant.ts';
import { PermitBucket } from './permit-bucket.ts';
import type { PermitSource } from './permit-source.ts';
import type { LearnedLimit, PermitReport, RateSettings } from '../throttle.ts';

/** Of a wait computed from a learned rate: what it will be at least. */
const LEARNED_RATE_SAFETY_FACTOR = 0.8;

/** What a gate is made from. */
export interface PermitGateOptions extends RateSettings, GovernorOptions {
  /** Wraps the source of permits and the rate. */
  readonly fleet?: Pick<FleetMembership, 'wrapPermits' | 'wrapRatePolicy'> | undefined;
}

/** Grants permits one by one; takes back what attempts tell, slots and unspent permits. */
export class PermitGate {
  readonly #governor: Governor;
  readonly #permits: PermitSource;
  #maxStreams: number;
  /** The last one who was not granted waits for the upstream's sake, and not for a slot of ours. */
  #waitsForRate = false;
  #inFlight = 0;
  #streams = 0;

  constructor(options: PermitGateOptions) {
    const { fleet } = options;
    this.#governor = createGovernor(options, fleet && ((own) => fleet.wrapRatePolicy(own)));
    const bucket = new PermitBucket(this.#governor.rate, this.#governor.burst);
    this.#permits = fleet?.wrapPermits(bucket) ?? bucket;
    this.#maxStreams = options.maxStreams;
  }

  get rate(): number {
    return this.#permits.rate;
  }

  /** A pause is not over, or its probe not answered. */
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
    return this.#governor.inFlightLimit;
  }

  /** How many permits could be used at this moment by so many that wait. */
  usablePermits(now: number, waiting: number): number {
    if (this.#governor.openAt(now) > now) return 0;
    return Math.max(0, Math.min(waiting, this.#slotsLeft(), this.#governor.isPaused ? 1 : Infinity));
  }

  /** Grants if all three allow it. `hasWaited`: the taker was held up before. */
  tryGrant(now: number, hasWaited: boolean): PermitGrant | undefined {
    const hasSlot = this.#slotsLeft() > 0;
    if (!hasSlot || this.#governor.openAt(now) > now || !this.#permits.tryTake(now)) {
      this.#waitsForRate = hasSlot || this.#governor.limitsConcurrency;
      return undefined;
    }
    this.#inFlight++;
    const waitedFor = hasWaited && this.#waitsForRate && this.#permits.isScarce;
    const grant = this.#governor.recordGrant(now, waitedFor);
    this.applyRate(now);
    return grant;
  }

  /** When to try again; Infinity when only a freed slot can help. */
  nextTryAt(now: number): number {
    if (this.#slotsLeft() <= 0) return Infinity;
    return this.#permits.nextAt(now, Math.max(now, this.#governor.openAt(now)));
  }

  /** How many permits could be granted at this moment. */
  grantablePermits(now: number): number {
    if (this.#governor.openAt(now) > now) return 0;
    return Math.max(0, Math.min(this.#slotsLeft(), this.#permits.available(now)));
  }

  /** How long one would wait behind `ahead` others, as pause and present pace tell: under `auto` a guess. */
  estimateWaitMs(now: number, ahead: number): number {
    return this.#permits.nthAt(Math.max(now, this.#governor.currentPause(now).endsAt), ahead) - now;
  }

  /** How long one behind `ahead` others will wait at least, by what was configured and what the upstream stated. */
  minWaitMs(now: number, ahead: number): number {
    const knownMs = this.#permits.minWaitMs(ahead);
    if (knownMs !== undefined) return Math.max(knownMs, this.statedPauseUntil(now) - now);
    if (this.#governor.hasConfiguredRate) return this.estimateWaitMs(now, ahead);
    if (this.#governor.isConfident) return this.estimateWaitMs(now, ahead) * LEARNED_RATE_SAFETY_FACTOR;
    return this.statedPauseUntil(now) - now;
  }

  /** How long a retry behind `older` ones will wait at least; a learned pace counts for the next permit only. */
  retryWaitMs(now: number, older: number): number {
    return this.estimateWaitMs(now, this.#governor.hasConfiguredRate ? older : 0);
  }

  /** Until when the upstream itself said to wait; `now` when it says nothing. */
  statedPauseUntil(now: number): number {
    const hold = this.#governor.currentPause(now);
    return hold.isCertain ? Math.max(now, hold.endsAt) : now;
  }

  pausedMs(now: number): number {
    return this.#governor.pausedMs(now);
  }

  rejectsNew(now: number, probeIsTaken: boolean): boolean {
    return this.#governor.rejectsNew(now, probeIsTaken);
  }

  report(now: number, grant: PermitGrant, result: PermitReport): LimitDecision {
    const verdict = this.#governor.recordResult(now, grant, result);
    this.applyRate(now);
    return verdict;
  }

  /** The attempt's request goes onto the wire. */
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

  /** Moves a slot over to the streams; false when all of theirs are taken. */
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

  snapshot(now: number): object | undefined {
    return this.#governor.snapshot(now);
  }

  restore(now: number, snapshot: unknown, ageMs: number): void {
    this.#governor.restore(now, snapshot, ageMs);
    this.applyRate(now);
  }

  /** From now on these hold. Nothing that is saved up is made more by it, and what is under way stays. */
  reconfigure(now: number, settings: RateSettings): void {
    this.#maxStreams = settings.maxStreams;
    this.#governor.reconfigure(now, settings);
    this.applyRate(now);
  }

  /** Others who share the limit were refused. */
  joinPause(now: number, statedWaitMs: number | undefined): void {
    this.#governor.joinPause(now, statedWaitMs);
  }

  /** Takes over the governor's rate, which a fleet may have changed. */
  applyRate(now: number): void {
    this.#permits.setRate(now, this.#governor.rate, this.#governor.burst);
  }

  #slotsLeft(): number {
    return this.#governor.inFlightLimit - this.#inFlight;
  }
}
