/**
 * Decides when a permit may go, and what follows from how attempts end (pure). A permit needs a free slot in flight, no pause and the rate:
 * configured, or learned (adaptive/) and kept below what responses state as remaining. Which request gets a permit is the queue's decision.
 * A response to a call granted before the last pause changes nothing but the length of that pause. Results come in any order, each grant's
 * at most once.
 */
import type { Random } from '../../platform/clock.ts';
import { CallLog } from '../adaptive/call-log.ts';
import { LearnedRatePolicy, type LearnedRatePolicyOptions } from '../adaptive/learned-rate-policy.ts';
import { DEFAULT_LEARNING, type LearningParameters } from '../adaptive/learning-parameters.ts';
import { DeclaredLimits } from '../declared/declared-limits.ts';
import type { FleetMembership } from '../fleet-membership.ts';
import type { RateLimitSignal } from '../signals/rate-limit-signal.ts';
import type { LimitUsage, PermitReport, RateLimitReport, RateSettings } from '../throttle.ts';
import { SharedPause } from './pause.ts';
import { PermitBucket, type PermitSource } from './permit-bucket.ts';
import type { PermitGrant, RateLearner, RatePolicy } from './rate-policy.ts';
import { StatedAllowance } from './stated-allowance.ts';

export interface GovernorOptions extends RateSettings {
  readonly random: Random;
  /** For experiments. */
  readonly learning?: LearningParameters | undefined;
  readonly fleet?: Pick<FleetMembership, 'wrapPermits' | 'wrapRatePolicy'> | undefined;
  /** Epoch milliseconds of a monotonic instant, for declared limits. Default: the instants of this governor are such already. */
  readonly toEpoch?: ((now: number) => number) | undefined;
  /** Asks the store of the declared limits for permits. Default: there is none. */
  readonly requestPermits?: (() => void) | undefined;
}

export type LimitDecision =
  | { readonly kind: 'unlimited' }
  | { readonly kind: 'limited'; readonly pauseMs: number; readonly stated: boolean };

/** A time in which no permit is granted, as far as it is known now. */
interface GrantPause {
  /** When the next permit may be granted; in the past when there is no pause. */
  readonly endsAt: number;
  /** The upstream stated it, or a trusted model computed it. */
  readonly isCertain: boolean;
}

const MAX_IN_FLIGHT_CALLS = 65_536;
const MAX_CALL_MS = 86_400_000;
/** Part of a wait computed from a learned rate that is certain. */
const LEARNED_RATE_SAFETY_FACTOR = 0.8;
const NOT_LIMITED: LimitDecision = { kind: 'unlimited' };

/** Its public fields are written here only. */
export class Governor {
  ratePolicy: RatePolicy;
  readonly permits: PermitSource;
  readonly pause: SharedPause;
  /** Undefined until one is declared. */
  declared: DeclaredLimits | undefined;
  inFlight = 0;
  streams = 0;
  inFlightLimit: number;
  #settings: RateSettings;
  readonly #wrapRatePolicy: ((own: RatePolicy) => RatePolicy) | undefined;
  /** Shared with a learned rate policy, so that it sees `maxInFlight` and `maxRate` change. */
  readonly #learnedRateOptions: { -readonly [K in keyof LearnedRatePolicyOptions]: LearnedRatePolicyOptions[K] };
  /** Created by the first response that states a quota. */
  #allowance: StatedAllowance | undefined;
  readonly #createDeclared: (settings: RateSettings) => DeclaredLimits | undefined;
  readonly #inFlightCalls = new CallLog(MAX_IN_FLIGHT_CALLS, MAX_CALL_MS);
  /** The last request that got no permit waits for the upstream's limit, and not for an in-flight slot of ours. */
  #waitsForRate = false;
  /** Nothing but slots in flight holds up a call: nothing was refused or declared, and nothing is shared. */
  #isUnpaced = false;
  #lastGrantAt = -Infinity;
  #epoch = 0;
  #serial = 0;
  /** Grants up to this one were made by a policy of the other kind: their results say nothing to the present one. */
  #lastSerialBeforeModeChange = 0;
  #previousWas503WithWait = false;

  constructor(options: GovernorOptions) {
    const { fleet, random, maxInFlight, maxRate, maxPauseMs, learning = DEFAULT_LEARNING } = options;
    this.#settings = options;
    this.#wrapRatePolicy = fleet && ((own) => fleet.wrapRatePolicy(own));
    this.#learnedRateOptions = { maxInFlight, maxRate, learning, inFlightCalls: this.#inFlightCalls };
    this.pause = new SharedPause(maxPauseMs, random);
    const { toEpoch = (now: number) => now, requestPermits } = options;
    this.#createDeclared = ({ limits = [], share = 1 }) => {
      const part = { parts: share, index: share - 1 };
      return limits.length === 0 ? undefined : new DeclaredLimits({ limits, part, toEpoch, requestPermits });
    };
    this.declared = this.#createDeclared(options);
    this.ratePolicy = this.#createRatePolicy();
    const { rate, burst, inFlightLimit } = this.ratePolicy;
    const bucket = new PermitBucket(rate, burst);
    this.permits = fleet?.wrapPermits(bucket) ?? bucket;
    this.inFlightLimit = Math.min(inFlightLimit, maxInFlight);
  }

  /**
   * @param hasWaited the request was held up before
   * @param isHigh it may use the reserve of the declared limits
   */
  tryGrant(now: number, hasWaited: boolean, isHigh: boolean): PermitGrant | undefined {
    const hasSlot = this.inFlight < this.inFlightLimit;
    if (this.#isUnpaced) {
      this.#waitsForRate = false;
      if (!hasSlot) return undefined;
      this.inFlight++;
      return this.recordGrant(now, false);
    }
    if (hasSlot && this.declared?.isOpen(now, isHigh) === false) {
      // It says nothing about the learned limit.
      this.#waitsForRate = false;
      return undefined;
    }
    if (!hasSlot || this.openAt(now) > now || !this.permits.tryTake(now)) {
      this.#waitsForRate = hasSlot || this.ratePolicy.limitsConcurrency;
      return undefined;
    }
    this.inFlight++;
    const isWaitedFor = hasWaited && this.#waitsForRate && this.permits.isScarce;
    const grant = this.recordGrant(now, isWaitedFor);
    this.applyRate(now);
    return grant;
  }

  /** A call goes out without regard to rate and slots. */
  recordGrant(now: number, isWaitedFor: boolean): PermitGrant {
    if (this.#allowance?.isResetProbeDue(now) === true) this.pause.requirePauseProbe(now);
    this.#allowance?.recordSent(now);
    this.#lastGrantAt = now;
    const { learner } = this.ratePolicy;
    const isPauseProbe = this.pause.isClosed && this.pause.recordGrant(now, this.ratePolicy);
    const rate = this.#isUnpaced ? Infinity : this.ratePolicy.rate;
    const inFlight = this.#inFlightCalls.size;
    this.#inFlightCalls.add(now);
    const isLimitProbe = learner?.recordGrant(now, isWaitedFor) ?? false;
    const serial = ++this.#serial;
    const declared = this.declared?.take(now);
    return { at: now, serial, epoch: this.#epoch, rate, isPauseProbe, isWaitedFor, isLimitProbe, inFlight, declared };
  }

  recordResult(now: number, grant: PermitGrant, result: PermitReport): LimitDecision {
    const isOrdinary = result.kind === 'accepted' && result.hint === undefined && grant.epoch === this.#epoch;
    if (this.#isUnpaced && isOrdinary && grant.serial > this.#lastSerialBeforeModeChange) {
      this.#inFlightCalls.remove(grant.at);
      this.#previousWas503WithWait = false;
      this.ratePolicy.learner?.recordAccepted(now, grant, true);
      // All that an accepted call changes.
      this.inFlightLimit = Math.min(this.ratePolicy.inFlightLimit, this.#settings.maxInFlight);
      return NOT_LIMITED;
    }
    let decision = NOT_LIMITED;
    if (result.kind === 'accepted') this.#recordAccepted(now, grant, result.hint);
    else if (result.kind === 'rate-limited') decision = this.#recordRefused(now, grant, result);
    else this.recordEnded(now, grant);
    if (grant.declared !== undefined) this.#settleDeclared(now, grant, result, decision.kind === 'limited');
    this.applyRate(now);
    return decision;
  }

  /** @param isSent the upstream may have received it. Default true */
  recordEnded(now: number, grant: PermitGrant, isSent = true): void {
    // A call that never got a connection costs the partner's day nothing.
    if (!isSent && grant.declared !== undefined) this.declared?.giveBack(now, grant.declared);
    this.#inFlightCalls.remove(grant.at);
    this.#allowance?.recordEnded(grant);
    this.#learnerOf(grant)?.recordEnded(grant);
    if (grant.isPauseProbe && grant.epoch === this.#epoch) this.pause.recordPauseProbeEnded(now);
  }

  /** The attempt was never made: its permit is unspent. */
  recordUnused(now: number, grant: PermitGrant): void {
    this.permits.giveBack(now);
    if (grant.declared !== undefined) this.declared?.giveBack(now, grant.declared);
    this.#inFlightCalls.remove(grant.at);
    this.#learnerOf(grant)?.recordUnused(grant);
    if (grant.isPauseProbe && grant.epoch === this.#epoch) this.pause.recordPauseProbeUnused(now);
  }

  freeSlot(): void {
    this.inFlight--;
  }

  /** @returns false when `maxStreams` are open */
  moveSlotToStreams(): boolean {
    if (this.streams >= this.#settings.maxStreams) return false;
    this.streams++;
    this.inFlight--;
    return true;
  }

  freeStream(): void {
    this.streams--;
  }

  /** When the next permit may be granted, apart from slots and rate; a past instant or -Infinity: now. */
  openAt(now: number): number {
    const pausedUntil = this.pause.openAt;
    const learnerAt = this.ratePolicy.learner?.openAt(now, pausedUntil !== -Infinity) ?? -Infinity;
    return Math.max(pausedUntil, learnerAt, this.#allowance?.openAt(now) ?? -Infinity);
  }

  /**
   * When to try again; Infinity when only a freed slot, the fleet or a store can help.
   * @param isHigh of the request that waits
   */
  nextTryAt(now: number, isHigh: boolean): number {
    const declaredAt = this.#declaredAt(now, 0, isHigh);
    const awaitsStore = declaredAt <= now && this.declared?.isStoreAwaited === true;
    if (this.inFlight >= this.inFlightLimit || awaitsStore) return Infinity;
    const openAt = Math.max(now, this.openAt(now), declaredAt);
    return this.permits.nextAt(now, openAt);
  }

  grantablePermits(now: number, isHigh: boolean): number {
    if (this.openAt(now) > now) return 0;
    const declared = this.declared?.available(now, isHigh) ?? Infinity;
    return Math.max(0, Math.min(this.inFlightLimit - this.inFlight, this.permits.available(now), declared));
  }

  /** How many permits `waiting` requests could use now, one of them of high priority if `isHigh`. */
  usablePermits(now: number, waiting: number, isHigh: boolean): number {
    if (this.openAt(now) > now) return 0;
    const declared = this.declared?.available(now, isHigh) ?? Infinity;
    const most = Math.min(this.inFlightLimit - this.inFlight, this.pause.isClosed ? 1 : Infinity, declared);
    return Math.max(0, Math.min(waiting, most));
  }

  /** Only requests of high priority may go: a reserve of a declared limit is left, and nothing else. */
  isReservedForHigh(now: number): boolean {
    return this.#declaredAt(now, 0, false) > now && this.#declaredAt(now, 0, true) <= now;
  }

  /** How long the declared limits alone hold up the request behind `ahead` others. */
  declaredWaitMs(now: number, ahead: number, isHigh: boolean): number {
    return Math.max(0, this.#declaredAt(now, ahead, isHigh) - now);
  }

  /** The pause or used-up quota that holds at `now`. */
  currentPause(now: number): GrantPause {
    const exhaustedUntil = this.#allowance?.exhaustedUntil(now) ?? -Infinity;
    // While only a probe's response is awaited its duration is unknown, so no pause is reported.
    const pausedUntil = this.pause.remainingMs(now) > 0 ? this.pause.openAt : -Infinity;
    if (exhaustedUntil > pausedUntil) return { endsAt: exhaustedUntil, isCertain: true };
    const { learner, isConfident } = this.ratePolicy;
    const learns = this.#settings.rate === 'auto' && isConfident;
    const closedUntil = learns ? (learner?.openAt(now, false) ?? -Infinity) : -Infinity;
    if (closedUntil > Math.max(now, pausedUntil)) return { endsAt: closedUntil, isCertain: true };
    return { endsAt: pausedUntil, isCertain: this.pause.isStated };
  }

  /** Milliseconds left of the pause; 0 without one. */
  pausedMs(now: number): number {
    return Math.max(this.pause.remainingMs(now), (this.#allowance?.exhaustedUntil(now) ?? -Infinity) - now, 0);
  }

  /** Until when the upstream itself said to wait; `now` when it said nothing. */
  statedPauseUntil(now: number): number {
    const pause = this.currentPause(now);
    return pause.isCertain ? Math.max(now, pause.endsAt) : now;
  }

  /**
   * Expected wait behind `ahead` others, from pause and present rate; with `auto` an estimate.
   * @param maxPauseMs of the pause that counts. Default: all of it
   */
  estimateWaitMs(now: number, ahead: number, maxPauseMs = Infinity): number {
    const pausedMs = Math.max(0, this.currentPause(now).endsAt - now);
    const permitAt = this.permits.nthAt(now + Math.min(pausedMs, maxPauseMs), ahead);
    return Math.max(permitAt, this.#declaredAt(now, ahead, true)) - now;
  }

  /** Lower bound of the wait behind `ahead` others, from what is configured and what the upstream stated. */
  minWaitMs(now: number, ahead: number): number {
    const knownMs = this.permits.minWaitMs(ahead);
    if (knownMs !== undefined) return Math.max(knownMs, this.statedPauseUntil(now) - now);
    if (this.#settings.rate !== 'auto') return this.estimateWaitMs(now, ahead);
    if (this.ratePolicy.isConfident) return this.estimateWaitMs(now, ahead) * LEARNED_RATE_SAFETY_FACTOR;
    return this.statedPauseUntil(now) - now;
  }

  /** Lower bound of a retry's wait behind `older` ones; with a learned rate only the next permit counts. */
  retryWaitMs(now: number, older: number): number {
    return this.estimateWaitMs(now, this.#settings.rate === 'auto' ? 0 : older);
  }

  usage(now: number): LimitUsage | undefined {
    const counted = this.ratePolicy.learner?.countUsed(now);
    return counted && { ...counted, opensInMs: Math.max(0, this.nextTryAt(now, false) - now) };
  }

  /** Another replica was refused: pauses as for a refusal here, and learns nothing. */
  joinPause(now: number, statedWaitMs: number | undefined): void {
    this.#epoch++;
    this.pause.begin(now, statedWaitMs, true);
  }

  restore(now: number, snapshot: unknown, ageMs: number): void {
    this.ratePolicy.learner?.restore(now, snapshot, ageMs);
    this.applyRate(now);
  }

  /** A pause goes on, calls in flight stay, and saved-up permits do not become more. What was learned stays while the rate is `auto`. */
  reconfigure(now: number, settings: RateSettings): void {
    const former = this.#settings;
    const { rate, burst, maxInFlight, maxRate, maxPauseMs } = settings;
    this.#settings = settings;
    Object.assign(this.#learnedRateOptions, { maxInFlight, maxRate });
    if (JSON.stringify(settings.limits) !== JSON.stringify(former.limits)) {
      if (this.declared === undefined) this.declared = this.#createDeclared(settings);
      else this.declared.reconfigure(settings.limits ?? []);
    }
    this.pause.setMaxPause(now, maxPauseMs);
    this.#allowance?.setMaxPause(maxPauseMs);
    if ((former.rate === 'auto') !== (rate === 'auto')) {
      this.#lastSerialBeforeModeChange = this.#serial;
      this.#allowance = undefined;
    }
    // A learned policy sees the bounds change, and keeps what it knows.
    const hasOtherBounds = burst !== former.burst || maxInFlight !== former.maxInFlight;
    if (rate !== former.rate || (rate !== 'auto' && hasOtherBounds)) this.ratePolicy = this.#createRatePolicy();
    this.applyRate(now);
  }

  /** Takes over rate and limits from the policy; to be called when something else than this governor may have changed them. */
  applyRate(now: number): void {
    const { rate, burst, inFlightLimit } = this.ratePolicy;
    this.inFlightLimit = Math.min(inFlightLimit, this.#settings.maxInFlight);
    this.permits.setRate(now, rate, burst);
    this.#isUnpaced =
      this.ratePolicy.learner?.isUnlimited === true &&
      rate === Infinity &&
      !this.pause.isClosed &&
      this.#allowance === undefined &&
      this.declared === undefined &&
      this.#wrapRatePolicy === undefined;
  }

  #recordAccepted(now: number, grant: PermitGrant, hint: RateLimitSignal | undefined): void {
    this.#inFlightCalls.remove(grant.at);
    const isCurrent = grant.epoch === this.#epoch;
    this.#previousWas503WithWait = false;
    if (isCurrent && grant.isPauseProbe) this.pause.recordPauseProbeAccepted();
    this.#learnerOf(grant)?.recordAccepted(now, grant, isCurrent);
    const quotas = this.#settings.rate === 'auto' ? (hint?.quotas ?? []) : [];
    if (quotas.length > 0)
      this.#allowance ??= new StatedAllowance(this.#settings.maxPauseMs, this.#inFlightCalls, this.#lastGrantAt);
    this.#allowance?.recordAccepted(now, grant, quotas);
  }

  #recordRefused(now: number, grant: PermitGrant, { signal, isConfigured = false }: RateLimitReport): LimitDecision {
    const isUnavailable = signal.status === 503 && !isConfigured;
    const isConfirmed = this.#previousWas503WithWait;
    this.#previousWas503WithWait = isUnavailable && signal.statedWaitMs !== undefined;
    // A single node may be shutting down: a 503 counts as a refusal only when the response before stated a wait as well.
    if (isUnavailable && !(isConfirmed && this.#previousWas503WithWait)) {
      this.recordEnded(now, grant);
      return NOT_LIMITED;
    }
    this.#inFlightCalls.remove(grant.at);
    this.#allowance?.recordRefused(grant);
    this.pause.recordRefusalTime(now - (grant.startedAt ?? grant.at));
    const learner = this.#learnerOf(grant);
    const isCurrent = grant.epoch === this.#epoch;
    if (isCurrent) {
      if (grant.isPauseProbe) this.pause.recordPauseProbeRefused();
      if (isUnavailable) learner?.recordEnded(grant);
      else learner?.recordRefused(now, grant, signal);
      this.#epoch++;
    } else learner?.recordLateRefusal(now, grant);
    this.pause.begin(now, signal.statedWaitMs, isCurrent);
    return { kind: 'limited', pauseMs: this.pause.remainingMs(now), stated: this.pause.isStated };
  }

  #settleDeclared(now: number, grant: PermitGrant, result: PermitReport, isRefused: boolean): void {
    const { declared } = this;
    if (declared === undefined || grant.declared === undefined) return;
    declared.settle(now, grant.at, grant.declared, isRefused);
    const quotas = (result.kind === 'accepted' ? result.hint?.quotas : undefined) ?? [];
    if (quotas.length > 0) declared.correct(now, grant.at, quotas, grant.inFlight + this.#serial - grant.serial);
  }

  #declaredAt(now: number, ahead: number, isHigh: boolean): number {
    return this.declared?.nthAt(now, ahead, isHigh) ?? -Infinity;
  }

  #createRatePolicy(): RatePolicy {
    const { rate, burst, maxInFlight } = this.#settings;
    const own =
      rate === 'auto' ? new LearnedRatePolicy(this.#learnedRateOptions) : fixedRatePolicy(rate, burst, maxInFlight);
    return this.#wrapRatePolicy?.(own) ?? own;
  }

  #learnerOf(grant: PermitGrant): RateLearner | undefined {
    return grant.serial > this.#lastSerialBeforeModeChange ? this.ratePolicy.learner : undefined;
  }
}

function fixedRatePolicy(rate: number, burst: number, inFlightLimit: number): RatePolicy {
  return { rate, burst, inFlightLimit, limitsConcurrency: false, isConfident: true, learner: undefined };
}
