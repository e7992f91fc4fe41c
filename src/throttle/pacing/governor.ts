/**
 * Decides when a permit may go, and what follows from how attempts end (pure). A permit needs a free slot in flight, and that all gates let
 * it go: pause, learner (adaptive/), what responses state as remaining, declared limits and the rate. Which request gets a permit is the
 * queue's decision. A response to a call granted before the last pause changes nothing but the length of that pause. Results come in any
 * order, each grant's at most once.
 */
import type { Random } from '../../platform/clock.ts';
import { CallLog } from '../adaptive/call-log.ts';
import { LearnedRatePolicy, type LearnedRatePolicyOptions } from '../adaptive/learned-rate-policy.ts';
import { DeclaredLimits } from '../declared/declared-limits.ts';
import type { FleetMembership } from '../fleet-membership.ts';
import type { LimitUsage, PermitReport, RateLimitReport, RateSettings, SuspectReport } from '../throttle.ts';
import { AssumedRefusals, MAX_ASSUMED_WAIT_MS } from './assumed-refusals.ts';
import { ANY_CALL, type CallResult, ENDED, type LimitDecision, type PacedCall, type PermitGrant } from './gate.ts';
import { BACKOFF_BASE_MS, SharedPause } from './pause.ts';
import { PermitBucket, type PermitSource } from './permit-bucket.ts';
import type { RateLearner, RatePolicy } from './rate-policy.ts';
import { StatedAllowance } from './stated-allowance.ts';

export interface GovernorOptions extends RateSettings {
  readonly random: Random;
  readonly fleet?: Pick<FleetMembership, 'wrapPermits' | 'wrapRatePolicy'> | undefined;
  /** Epoch milliseconds of a monotonic instant, for declared limits. Default: the instants of this governor are such already. */
  readonly toEpoch?: ((now: number) => number) | undefined;
  /** Asks the store of the declared limits for permits. Default: there is none. */
  readonly requestPermits?: (() => void) | undefined;
}

const MAX_IN_FLIGHT_CALLS = 65_536;
const MAX_CALL_MS = 86_400_000;
/** Part of a wait computed from a learned rate that is certain. */
const LEARNED_RATE_SAFETY_FACTOR = 0.8;
const NOT_LIMITED: LimitDecision = { kind: 'unlimited' };
const ASSUMED: LimitDecision = { kind: 'assumed' };
/** A refusal that states nothing. */
const UNSTATED = { statedWaitMs: undefined, remaining: undefined, resetInMs: undefined, quotas: [] };
const ACCEPTED: CallResult = { ...ENDED, kind: 'accepted' };

/** The gate of one throttle, which is open when all gates behind it are, and a slot in flight is free. */
export class Governor {
  readonly permits: PermitSource;
  readonly pause: SharedPause;
  readonly assumedRefusals: AssumedRefusals;
  #ratePolicy: RatePolicy;
  #declared: DeclaredLimits | undefined;
  /** Created by the first response that states a quota. */
  #allowance: StatedAllowance | undefined;
  #inFlight = 0;
  #streams = 0;
  #inFlightLimit: number;
  #settings: RateSettings;
  readonly #random: Random;
  readonly #wrapRatePolicy: ((own: RatePolicy) => RatePolicy) | undefined;
  /** Shared with a learned rate policy, so that it sees `maxInFlight` and `maxRate` change. */
  readonly #learnedRateOptions: { -readonly [K in keyof LearnedRatePolicyOptions]: LearnedRatePolicyOptions[K] };
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
  /** The limit in use rests on assumed refusals alone. */
  #isAssumed = false;
  /** The upstream says itself when it refuses a call for its rate: nothing is assumed. */
  #hasCertainRefusal = false;

  constructor(options: GovernorOptions) {
    const { fleet, random, maxInFlight, maxRate, maxPauseMs } = options;
    this.#settings = options;
    this.#random = random;
    this.#wrapRatePolicy = fleet && ((own) => fleet.wrapRatePolicy(own));
    this.#learnedRateOptions = { maxInFlight, maxRate, inFlightCalls: this.#inFlightCalls };
    this.pause = new SharedPause(maxPauseMs, random, () => this.#ratePolicy.limitsConcurrency);
    const { toEpoch = (now: number) => now, requestPermits } = options;
    this.assumedRefusals = new AssumedRefusals(this.#inFlightCalls);
    this.#createDeclared = ({ limits = [], share = 1 }) => {
      const part = { parts: share, index: share - 1 };
      return limits.length === 0 ? undefined : new DeclaredLimits({ limits, part, toEpoch, requestPermits });
    };
    this.#declared = this.#createDeclared(options);
    this.#ratePolicy = this.#createRatePolicy();
    const { rate, burst, inFlightLimit } = this.#ratePolicy;
    const bucket = new PermitBucket(rate, burst);
    this.permits = fleet?.wrapPermits(bucket) ?? bucket;
    this.#inFlightLimit = Math.min(inFlightLimit, maxInFlight);
  }

  get ratePolicy(): RatePolicy {
    return this.#ratePolicy;
  }

  /** Undefined until one is declared. */
  get declared(): DeclaredLimits | undefined {
    return this.#declared;
  }

  /** The limit in use rests on assumed refusals alone: it may delay a call by `MAX_ASSUMED_WAIT_MS`, and reject none. */
  get isAssumed(): boolean {
    return this.#isAssumed;
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

  /** When this call may go; Infinity when only a freed slot, the fleet or a store can help. */
  nextAt(now: number, call: PacedCall): number {
    if (this.#inFlight >= this.#inFlightLimit) return Infinity;
    const declaredAt = this.#declared?.limitsOf(call).nextAt(now, call.isHigh) ?? -Infinity;
    return this.permits.nextAt(now, Math.max(now, this.openAt(now), declaredAt));
  }

  /** As `nextAt`, apart from slots, rate and declared limits; a past instant or -Infinity: now. */
  openAt(now: number): number {
    const pausedUntil = this.pause.nextAt();
    const learnerAt = this.#ratePolicy.learner?.nextAt(now, pausedUntil !== -Infinity) ?? -Infinity;
    return Math.max(pausedUntil, learnerAt, this.#allowance?.nextAt(now) ?? -Infinity);
  }

  /** As `nextAt`, for the declared limits alone and the call behind `ahead` others; leased permits do not count. */
  declaredAt(now: number, ahead: number, call: PacedCall): number {
    return this.#declared?.limitsOf(call).nthAt(now, ahead, call.isHigh) ?? -Infinity;
  }

  /**
   * When the call behind `ahead` others is expected to go, from pause and present rate; with `auto` an estimate.
   * @param maxPauseMs of the pause that counts. Default: all of it
   */
  nthAt(now: number, ahead: number, call = ANY_CALL, maxPauseMs = Infinity): number {
    const pausedMs = Math.max(0, this.#reopening(now).at - now);
    const pacedAt = this.permits.nthAt(now + Math.min(pausedMs, maxPauseMs), ahead);
    const permitAt = this.#isAssumed ? Math.min(pacedAt, this.certainAt(now) + MAX_ASSUMED_WAIT_MS) : pacedAt;
    return Math.max(permitAt, this.declaredAt(now, ahead, { isHigh: true, operationLimits: call.operationLimits }));
  }

  /** As `nthAt`, for a retry behind `older` ones: with a learned rate only the next permit counts. */
  retryAt(now: number, older: number, call: PacedCall): number {
    return this.nthAt(now, this.#settings.rate === 'auto' ? 0 : older, call);
  }

  /** Before this the call behind `ahead` others cannot go, by what is configured and what the upstream stated. */
  earliestAt(now: number, ahead: number, call: PacedCall): number {
    if (this.#isAssumed) return this.certainAt(now);
    const leastMs = this.permits.minWaitMs(ahead);
    if (leastMs !== undefined) return Math.max(now + leastMs, this.certainAt(now));
    if (this.#settings.rate !== 'auto') return this.nthAt(now, ahead, call);
    if (this.#ratePolicy.isConfident) return now + (this.nthAt(now, ahead, call) - now) * LEARNED_RATE_SAFETY_FACTOR;
    return this.certainAt(now);
  }

  /** Until when the upstream itself said to wait, or a trusted model computed it; `now` when there is no such wait. */
  certainAt(now: number): number {
    const { at, isCertain } = this.#reopening(now);
    return isCertain ? Math.max(now, at) : now;
  }

  /** Permits that may be granted now. */
  available(now: number, call: PacedCall): number {
    return Math.max(0, Math.min(this.permits.available(now), this.#usable(now, call)));
  }

  /** How many permits a fleet should lease for `waiting` requests now, of which this one goes first. */
  wanted(now: number, waiting: number, first: PacedCall): number {
    return Math.min(waiting, this.pause.isClosed ? 1 : Infinity, this.#usable(now, first));
  }

  /** Milliseconds left of the pause; 0 without one. */
  pausedMs(now: number): number {
    return Math.max(this.pause.remainingMs(now), (this.#allowance?.nthAt(now) ?? -Infinity) - now, 0);
  }

  /** Name of the partner's field that alone holds back the next call. */
  heldBy(now: number): string | undefined {
    const allowedAt = this.#allowance?.nextAt(now) ?? -Infinity;
    return allowedAt > now && allowedAt === this.openAt(now) ? this.#allowance?.heldBy(now) : undefined;
  }

  /** Names of the partner's fields beyond which calls are accepted. */
  disbelievedFields(now: number): readonly string[] {
    return this.#allowance?.disbelieved(now) ?? [];
  }

  usage(now: number): LimitUsage | undefined {
    const counted = this.#ratePolicy.learner?.countUsed(now);
    return counted && { ...counted, opensInMs: Math.max(0, this.nextAt(now, ANY_CALL) - now) };
  }

  /** @param hasWaited the request was held up before */
  tryTake(now: number, hasWaited: boolean, call: PacedCall): PermitGrant | undefined {
    const hasSlot = this.#inFlight < this.#inFlightLimit;
    if (this.#isUnpaced) {
      this.#waitsForRate = false;
      if (!hasSlot) return undefined;
      this.#inFlight++;
      return this.take(now, false);
    }
    if (hasSlot && this.#declared?.limitsOf(call).isOpen(now, call.isHigh) === false) {
      // Waiting for a declared limit says nothing about the learned one.
      this.#waitsForRate = false;
      return undefined;
    }
    if (!hasSlot || this.openAt(now) > now || !this.permits.tryTake(now)) {
      this.recordHeld(now);
      return undefined;
    }
    this.#inFlight++;
    const isWaitedFor = hasWaited && this.#waitsForRate && this.permits.isScarce;
    const grant = this.take(now, isWaitedFor, call);
    this.applyRate(now);
    return grant;
  }

  /** A request has to wait for this governor. */
  recordHeld(now: number): void {
    this.#waitsForRate = this.#inFlight < this.#inFlightLimit || this.#ratePolicy.limitsConcurrency;
    // A replica that keeps to its part can exceed what is stated for all, and learn nothing of it.
    if ((this.#settings.share ?? 1) === 1) this.#allowance?.recordHeld(now);
  }

  /** As `tryTake`, for a call that an assumed limit may hold up no longer. */
  tryTakeOverdue(now: number, call: PacedCall): PermitGrant | undefined {
    const isHeldUp = this.#declared?.limitsOf(call).isOpen(now, call.isHigh) === false || this.certainAt(now) > now;
    // The number in flight may be limited by what is assumed, too.
    if (this.#inFlight >= this.#settings.maxInFlight || isHeldUp) return undefined;
    this.#inFlight++;
    const grant = this.take(now, false, call);
    if (this.assumedRefusals.recordOverdue(now)) this.#forgetAssumed();
    return grant;
  }

  /** A call goes out without regard to rate and slots. */
  take(now: number, isWaitedFor: boolean, call = ANY_CALL): PermitGrant {
    if (this.#allowance?.isResetProbeDue(now) === true) this.pause.requirePauseProbe(now);
    const exceedsStated = this.#allowance?.take(now);
    this.#lastGrantAt = now;
    const isPauseProbe = !this.#isUnpaced && this.pause.take(now);
    const rate = this.#isUnpaced ? Infinity : this.#ratePolicy.rate;
    const inFlight = this.#inFlightCalls.size;
    this.#inFlightCalls.add(now);
    const isLimitProbe = this.#ratePolicy.learner?.take(now, isWaitedFor) ?? false;
    return {
      at: now,
      serial: ++this.#serial,
      epoch: this.#epoch,
      rate,
      isPauseProbe,
      isWaitedFor,
      isLimitProbe,
      exceedsStated,
      inFlight,
      declared: this.#declared?.limitsOf(call).take(now),
    };
  }

  /** The attempt was never made: its permit is unspent. */
  giveBack(now: number, grant: PermitGrant): void {
    this.permits.giveBack(now);
    this.#declared?.giveBack(now, grant);
    this.#inFlightCalls.remove(grant.at);
    this.#learnerOf(grant)?.giveBack(now, grant);
    if (grant.epoch === this.#epoch) this.pause.giveBack(now, grant);
  }

  /** The call was refused by a limit that another governor keeps: it says nothing here. */
  disregard(now: number, grant: PermitGrant): void {
    this.#inFlightCalls.remove(grant.at);
    this.#learnerOf(grant)?.giveBack(now, grant);
    this.#allowance?.settle(now, grant, ENDED);
    if (grant.epoch === this.#epoch) this.pause.settle(now, grant, ENDED);
    this.applyRate(now);
  }

  /** What this governor would have granted to a call of another one before its present pause. */
  grantFor(grant: PermitGrant): PermitGrant {
    const epoch = this.pause.isClosed ? -1 : this.#epoch;
    return { ...grant, serial: Infinity, epoch, rate: Infinity, isPauseProbe: false, isLimitProbe: false };
  }

  /** Other limits explain the refusals from which it was learned. */
  forgetLearned(now: number): void {
    this.#ratePolicy.learner?.forgetRefusals();
    this.applyRate(now);
  }

  /** @param report `suspect` says nothing here: see `settleSuspect` */
  settle(now: number, grant: PermitGrant, report: PermitReport): LimitDecision {
    const isCurrent = grant.epoch === this.#epoch;
    if (report.kind === 'accepted') this.#previousWas503WithWait = false;
    const isOrdinary = report.kind === 'accepted' && report.hint === undefined && isCurrent;
    if (this.#isUnpaced && isOrdinary && grant.serial > this.#lastSerialBeforeModeChange) {
      this.#inFlightCalls.remove(grant.at);
      this.#ratePolicy.learner?.settle(now, grant, ACCEPTED);
      // All that an accepted call changes.
      this.#inFlightLimit = Math.min(this.#ratePolicy.inFlightLimit, this.#settings.maxInFlight);
      return NOT_LIMITED;
    }
    const laterCalls = this.#serial - grant.serial;
    let result: CallResult = { ...ENDED, isCurrent, laterCalls };
    if (report.kind === 'rate-limited') result = { ...result, ...this.#evaluateRefusal(report) };
    else if (report.kind === 'accepted') result = { ...result, kind: 'accepted', quotas: report.hint?.quotas ?? [] };
    const isAlone = this.#settleGates(now, grant, result);
    const isRefused = result.kind === 'refused';
    if (isRefused && !isAlone && isCurrent) this.#epoch++;
    this.#declared?.settle(now, grant, result);
    this.applyRate(now);
    if (isAlone) return { kind: 'alone', delayMs: result.wait?.statedWaitMs ?? this.#random() * BACKOFF_BASE_MS };
    if (!isRefused) return NOT_LIMITED;
    return { kind: 'limited', pauseMs: this.pause.remainingMs(now), stated: this.pause.isStated };
  }

  /** As `settle`. @param endpoint of the call, as `describeEndpoint` names it */
  settleSuspect(now: number, grant: PermitGrant, { status }: SuspectReport, endpoint: string): LimitDecision {
    const { rate, assumeRefusals = true } = this.#settings;
    const mayAssume = rate === 'auto' && assumeRefusals && !this.#hasCertainRefusal;
    const suspicion = mayAssume ? this.assumedRefusals.recordSuspect(grant.at, status, endpoint) : 'not assumed';
    if (suspicion === 'assumed') {
      this.#isAssumed = true;
      this.settle(now, grant, { kind: 'rate-limited', signal: { status, ...UNSTATED }, isAssumed: true });
      return ASSUMED;
    }
    if (suspicion === 'contradicted') this.#forgetAssumed();
    // A 5xx is no success: it neither raises the number in flight nor the rate.
    return this.settle(now, grant, { kind: status < 500 ? 'accepted' : 'unknown' });
  }

  /**
   * The attempt ended, and nothing was reported of it.
   * @param isSent the upstream may have received it
   * @param isTimedOut no response came in time. Default: false
   */
  settleUnreported(now: number, grant: PermitGrant, isSent: boolean, isTimedOut = false): void {
    // A call that never got a connection costs the partner's day nothing.
    if (!isSent) this.#declared?.giveBack(now, grant);
    const isCurrent = grant.epoch === this.#epoch;
    this.#settleGates(now, grant, { ...ENDED, isCurrent, isTimedOut: isSent && isTimedOut });
    if (isTimedOut) this.applyRate(now);
  }

  takeSlot(): void {
    this.#inFlight++;
  }

  freeSlot(): void {
    this.#inFlight--;
  }

  /** @returns false when `maxStreams` are open */
  moveSlotToStreams(): boolean {
    if (this.#streams >= this.#settings.maxStreams) return false;
    this.#streams++;
    this.#inFlight--;
    return true;
  }

  freeStream(): void {
    this.#streams--;
  }

  /** Another replica was refused: pauses as for a refusal here, and learns nothing. */
  joinPause(now: number, statedWaitMs: number | undefined): void {
    this.#epoch++;
    this.pause.begin(now, statedWaitMs, true);
  }

  restore(now: number, snapshot: unknown, ageMs: number): void {
    this.#ratePolicy.learner?.restore(now, snapshot, ageMs);
    this.applyRate(now);
  }

  /** A pause goes on, calls in flight stay, and saved-up permits do not become more. What was learned stays while the rate is `auto`. */
  reconfigure(now: number, settings: RateSettings): void {
    const former = this.#settings;
    const { rate, burst, maxInFlight, maxRate, maxPauseMs } = settings;
    const hasOtherMode = (settings.mode === 'observe') !== (former.mode === 'observe');
    this.#settings = settings;
    Object.assign(this.#learnedRateOptions, { maxInFlight, maxRate });
    // In another mode an even spread begins anew.
    if (hasOtherMode || JSON.stringify(settings.limits) !== JSON.stringify(former.limits)) {
      if (this.#declared === undefined) this.#declared = this.#createDeclared(settings);
      else this.#declared.reconfigure(settings.limits ?? []);
    }
    this.pause.setMaxPause(now, maxPauseMs);
    if (hasOtherMode) this.pause.end();
    if (hasOtherMode || (former.rate === 'auto') !== (rate === 'auto')) this.#allowance = undefined;
    if ((former.rate === 'auto') !== (rate === 'auto')) this.#lastSerialBeforeModeChange = this.#serial;
    if (hasOtherMode || rate !== 'auto' || settings.assumeRefusals === false) this.#forgetAssumed();
    // A learned policy sees the bounds change, and keeps what it knows.
    const hasOtherBounds = burst !== former.burst || maxInFlight !== former.maxInFlight;
    if (rate !== former.rate || (rate !== 'auto' && hasOtherBounds)) this.#ratePolicy = this.#createRatePolicy();
    this.applyRate(now);
  }

  /** Takes over rate and limits from the policy; to be called when something else than this governor may have changed them. */
  applyRate(now: number): void {
    const { rate, burst, inFlightLimit } = this.#ratePolicy;
    this.#inFlightLimit = Math.min(inFlightLimit, this.#settings.maxInFlight);
    this.permits.setRate(now, rate, burst);
    this.#isUnpaced =
      rate === Infinity &&
      this.#ratePolicy.learner?.isUnlimited === true &&
      !this.pause.isClosed &&
      this.#allowance === undefined &&
      this.#declared === undefined &&
      this.#wrapRatePolicy === undefined;
  }

  /** A single node may be shutting down: a 503 counts as a refusal only when the response before stated a wait as well. */
  #evaluateRefusal({
    signal,
    isConfigured = false,
    isAssumed = false,
  }: RateLimitReport): Pick<CallResult, 'kind' | 'wait' | 'isUnavailable'> {
    const isConfirmed = this.#previousWas503WithWait;
    const isUnavailable = signal.status === 503 && !isConfigured && !isAssumed;
    this.#previousWas503WithWait = isUnavailable && signal.statedWaitMs !== undefined;
    const isRefused = !isUnavailable || (isConfirmed && this.#previousWas503WithWait);
    if (isRefused && !isUnavailable && !isAssumed) this.#hasCertainRefusal = true;
    if (this.#hasCertainRefusal) this.#isAssumed = false;
    return { kind: isRefused ? 'refused' : 'ended', wait: signal, isUnavailable };
  }

  /** @returns true when a refusal concerns this call alone: it comes at any rate, so that a pause would not prevent the next */
  #settleGates(now: number, grant: PermitGrant, result: CallResult): boolean {
    this.#inFlightCalls.remove(grant.at);
    // What a stated quota explains is no reason to look for another limit.
    const isExplained = result.kind === 'refused' && this.#allowance?.explains(grant) === true;
    const learned: CallResult = isExplained ? { ...result, kind: 'ended' } : result;
    const isAlone = this.#learnerOf(grant)?.settle(now, grant, learned) === true;
    if (!isAlone) this.pause.settle(now, grant, result);
    if (result.quotas.length > 0 && this.#settings.rate === 'auto')
      this.#allowance ??= new StatedAllowance({
        maxPauseMs: () => this.#settings.maxPauseMs,
        inFlightCalls: this.#inFlightCalls,
        lastSentAt: () => this.#lastGrantAt,
      });
    this.#allowance?.settle(now, grant, result);
    return isAlone;
  }

  /** When all calls may go again, not only a probe; in the past without a pause, used-up quota or closed limit. */
  #reopening(now: number): { readonly at: number; readonly isCertain: boolean } {
    const exhaustedUntil = this.#allowance?.nthAt(now) ?? -Infinity;
    const pausedUntil = this.pause.nthAt(now);
    if (exhaustedUntil > pausedUntil) return { at: exhaustedUntil, isCertain: true };
    const { learner, isConfident } = this.#ratePolicy;
    const learns = this.#settings.rate === 'auto' && isConfident && !this.#isAssumed;
    const closedUntil = learns ? (learner?.nextAt(now, false) ?? -Infinity) : -Infinity;
    if (closedUntil > Math.max(now, pausedUntil)) return { at: closedUntil, isCertain: true };
    return { at: pausedUntil, isCertain: this.pause.isStated };
  }

  #forgetAssumed(): void {
    this.assumedRefusals.reset();
    if (!this.#isAssumed) return;
    this.#isAssumed = false;
    this.#lastSerialBeforeModeChange = this.#serial;
    if (!this.pause.isStated) this.pause.end();
    this.#learnedRateOptions.startInFlight = this.#settings.maxInFlight;
    this.#ratePolicy = this.#createRatePolicy();
  }

  /** How many permits requests could use now if the rate allowed any number. */
  #usable(now: number, call: PacedCall): number {
    if (this.openAt(now) > now) return 0;
    const declared = this.#declared?.limitsOf(call).available(now, call.isHigh) ?? Infinity;
    return Math.max(0, Math.min(this.#inFlightLimit - this.#inFlight, declared));
  }

  #createRatePolicy(): RatePolicy {
    const { rate, burst, maxInFlight } = this.#settings;
    const own: RatePolicy =
      rate === 'auto'
        ? new LearnedRatePolicy(this.#learnedRateOptions)
        : { rate, burst, inFlightLimit: maxInFlight, limitsConcurrency: false, isConfident: true, learner: undefined };
    return this.#wrapRatePolicy?.(own) ?? own;
  }

  #learnerOf(grant: PermitGrant): RateLearner | undefined {
    return grant.serial > this.#lastSerialBeforeModeChange ? this.#ratePolicy.learner : undefined;
  }
}
