/**
 * The gate: may a permit be granted now, and if not, when. It joins governor, bucket and in-flight slots, and keeps them in step
 * as attempts end. Time is a parameter; who waits, in which order and until when is the waiting room's.
 */
import type { QuotaLease } from '../fleet/quota-lease.ts';
import { createGovernor } from './governor.ts';
import type { Governor, GovernorOptions, GovernorTerms, LimitDecision } from './governor-contract.ts';
import type { PermitGrant } from './permit-grant.ts';
import type { RatePolicy } from './rate-policy.ts';
import { PermitBucket } from './permit-bucket.ts';
import type { PermitReport, LearnedLimit } from '../throttle.ts';

/** Of a wait computed from a learned rate: what it will be at least. */
const LEARNED_RATE_SAFETY_FACTOR = 0.8;

/** What is configured, and may change: the governor’s share, the bucket’s and the slots’. */
export interface PermitGateTerms extends GovernorTerms {
  readonly maxStreams: number;
}

/** What a gate is made from. */
export interface PermitGateOptions extends PermitGateTerms, GovernorOptions {
  /** Where permits come from while a fleet is joined, and the pace for that. */
  readonly fleet?: { readonly lease: QuotaLease; createRatePolicy(own: RatePolicy): RatePolicy } | undefined;
}

/** Grants permits one by one; takes back what attempts tell, slots and unspent permits. */
export class PermitGate {
  readonly #governor: Governor;
  readonly #bucket: PermitBucket;
  readonly #share: QuotaLease | undefined;
  #maxStreams: number;
  #bucketRate: number;
  #bucketBurst: number;
  /** The last one who was not granted waits for the upstream's sake, and not for a slot of ours. */
  #waitsForRate = false;
  #inFlight = 0;
  #streams = 0;

  constructor(options: PermitGateOptions) {
    const { fleet } = options;
    this.#share = fleet?.lease;
    this.#governor = createGovernor(options, fleet && ((own) => fleet.createRatePolicy(own)));
    this.#bucketRate = this.#governor.rate;
    this.#bucketBurst = this.#governor.burst;
    this.#bucket = new PermitBucket(this.#bucketRate, this.#bucketBurst);
    this.#maxStreams = options.maxStreams;
  }

  get rate(): number {
    return this.#joinedShare?.fleetRate ?? this.#governor.rate;
  }

  /** A pause is not over, or its probe not answered. */
  get isClosed(): boolean {
    return this.#governor.isClosed;
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
    return Math.max(0, Math.min(waiting, this.#slotsLeft(), this.#governor.isClosed ? 1 : Infinity));
  }

  /** Grants if all three allow it. `hasWaited`: the taker was held up before. */
  tryGrant(now: number, hasWaited: boolean): PermitGrant | undefined {
    const hasSlot = this.#slotsLeft() > 0;
    if (!hasSlot || this.#governor.openAt(now) > now || !this.#takePermit(now)) {
      this.#waitsForRate = hasSlot || this.#governor.limitsConcurrency;
      return undefined;
    }
    this.#inFlight++;
    // To wait for an answer of the board is not to wait for a permit.
    const waitedFor = hasWaited && this.#waitsForRate && this.#joinedShare?.isScarce !== false;
    const grant = this.#governor.recordGrant(now, waitedFor);
    this.#applyRate(now);
    return grant;
  }

  /** When to try again; Infinity when only a freed slot can help. */
  nextTryAt(now: number): number {
    if (this.#slotsLeft() <= 0) return Infinity;
    const openAt = this.#governor.openAt(now);
    // Permits of a fleet are asked for when they can be used, and not before.
    if (this.#joinedShare !== undefined && openAt > now) return openAt;
    if (this.#joinedShare?.isFleetPaused === true && !this.#governor.isClosed) return Infinity;
    return Math.max(openAt, this.#permitSource.nextAt(now));
  }

  /** How many permits could be granted at this moment. */
  grantablePermits(now: number): number {
    if (this.#governor.openAt(now) > now) return 0;
    return Math.max(0, Math.min(this.#slotsLeft(), this.#permitSource.available(now)));
  }

  /** How long one would wait behind `ahead` others, as pause and present pace tell: under `auto` a guess. */
  estimateWaitMs(now: number, ahead: number): number {
    return this.#permitSource.nthAt(Math.max(now, this.#governor.currentPause(now).endsAt), ahead) - now;
  }

  /** How long one behind `ahead` others will wait at least, by what was configured and what the upstream stated. */
  minWaitMs(now: number, ahead: number): number {
    const joined = this.#joinedShare;
    if (joined !== undefined) return Math.max(joined.minWaitMs(ahead), this.statedPauseUntil(now) - now);
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
    this.#applyRate(now);
    return verdict;
  }

  /** The attempt's request goes onto the wire. */
  recordSent(now: number, grant: PermitGrant): void {
    this.#bucket.recordUse(now, grant.at);
  }

  /** The attempt ended without a result. */
  endWithoutResult(now: number, grant: PermitGrant): void {
    this.#governor.recordEnded(now, grant);
  }

  /** The attempt was never made: its permit is unspent. */
  giveBack(now: number, grant: PermitGrant): void {
    this.#bucket.giveBack(now);
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
    this.#applyRate(now);
  }

  /** From now on these hold. Nothing that is saved up is made more by it, and what is under way stays. */
  reconfigure(now: number, terms: PermitGateTerms): void {
    this.#maxStreams = terms.maxStreams;
    this.#governor.reconfigure(now, terms);
    this.#applyRate(now);
  }

  /** Takes up what the fleet has changed. */
  refresh(now: number): void {
    this.#applyRate(now);
  }

  /** Others who share the limit were refused. */
  joinPause(now: number, statedWaitMs: number | undefined): void {
    this.#governor.joinPause(now, statedWaitMs);
  }

  #applyRate(now: number): void {
    const { rate, burst } = this.#governor;
    if (rate === this.#bucketRate && burst === this.#bucketBurst) return;
    this.#bucketRate = rate;
    this.#bucketBurst = burst;
    this.#bucket.setRate(now, rate, burst);
  }

  /** The share of a fleet's quota, while it is what permits come from. */
  get #joinedShare(): QuotaLease | undefined {
    return this.#share?.state === 'joined' ? this.#share : undefined;
  }

  #takePermit(now: number): boolean {
    const joined = this.#joinedShare;
    if (joined === undefined) return this.#bucket.tryTake(now);
    // While all are paused only the probe goes.
    return (!joined.isFleetPaused || this.#governor.isClosed) && joined.tryTake(now);
  }

  get #permitSource(): QuotaLease | PermitBucket {
    return this.#joinedShare ?? this.#bucket;
  }

  #slotsLeft(): number {
    return this.#governor.inFlightLimit - this.#inFlight;
  }
}
