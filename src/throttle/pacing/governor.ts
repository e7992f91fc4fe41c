/**
 * The governor (pure): rate, pause and number in flight, from how attempts end. With a number for `rate` that rate holds and
 * only refusals pause it. With `auto` nothing is paced until the first refusal; then the limit is learned (adaptive/), and what
 * accepted responses state as remaining is kept to. A refusal pauses all calls; then one probe goes first. A response to a call
 * granted before the last pause changes nothing but the length of that pause. Slots and permits are the gate's.
 */
import type { Governor, GovernorOptions, GovernorTerms, GrantPause, LimitDecision } from './governor-contract.ts';
import type { PermitGrant } from './permit-grant.ts';
import { CallLog } from '../adaptive/call-log.ts';
import { LearnedRatePolicy } from '../adaptive/learned-rate-policy.ts';
import { DEFAULT_LEARNING, type LearningParameters } from '../adaptive/learning-parameters.ts';
import { FixedRatePolicy, type RatePolicy, type StatedWait } from './rate-policy.ts';
import { SharedPause } from './pause.ts';
import type { RateLimitSignal } from '../signals/rate-limit-signal.ts';
import { StatedAllowance } from './stated-allowance.ts';
import type { PermitReport, LearnedLimit } from '../throttle.ts';

/**
 * A governor for a configured `rate`, or one that learns it.
 * @param wrap puts another rate policy around its own
 */
export function createGovernor(options: GovernorOptions, wrap: WrapRatePolicy = (policy) => policy): Governor {
  return new PausingGovernor({ ...options, learning: options.learning ?? DEFAULT_LEARNING }, wrap);
}

type WrapRatePolicy = (policy: RatePolicy) => RatePolicy;

const MAX_IN_FLIGHT_CALLS = 65_536;
const MAX_CALL_MS = 86_400_000;
const NOT_LIMITED: LimitDecision = { kind: 'unlimited' };
const NOOP_RATE_POLICY = new FixedRatePolicy(Infinity, 1, 1);

class PausingGovernor implements Governor {
  #terms: GovernorTerms;
  /** Shared with a learned rate policy, so that it sees them change. */
  readonly #bounds: Mutable<Pick<GovernorTerms, 'maxInFlight' | 'maxRate'>>;
  readonly #wrapRatePolicy: WrapRatePolicy;
  /** Of the present mode; only the governor sets it. */
  ratePolicy: RatePolicy;
  readonly #parameters: LearningParameters;
  readonly #pause: SharedPause;
  /** Created by the first response that states a quota. */
  #allowance: StatedAllowance | undefined;
  /** Calls without a response. */
  readonly #inFlightCalls = new CallLog(MAX_IN_FLIGHT_CALLS, MAX_CALL_MS);
  #lastGrantAt = -Infinity;
  #epoch = 0;
  #serial = 0;
  /** Grants up to this one were made by a policy of the other kind: their results say nothing to the present one. */
  #lastSerialBeforeModeChange = 0;
  #previousWas503WithWait = false;

  constructor(options: GovernorOptions & { readonly learning: LearningParameters }, wrap: WrapRatePolicy) {
    this.#wrapRatePolicy = wrap;
    this.#parameters = options.learning;
    this.#terms = options;
    this.#bounds = { maxInFlight: options.maxInFlight, maxRate: options.maxRate };
    this.ratePolicy = this.#createRatePolicy();
    this.#pause = new SharedPause(options);
  }

  get hasConfiguredRate(): boolean {
    return this.#terms.rate !== 'auto';
  }

  openAt(now: number): number {
    const pausedUntil = this.#pause.openAt;
    const policyAt = this.ratePolicy.openAt(now, pausedUntil !== -Infinity);
    return Math.max(pausedUntil, policyAt, this.#allowance?.openAt(now) ?? -Infinity);
  }

  currentPause(now: number): GrantPause {
    const exhaustedUntil = this.#exhaustedUntil(now);
    // While only a probe's response is awaited its duration is unknown, so no pause is reported.
    const pausedUntil = this.#pause.remainingMs(now) > 0 ? this.#pause.openAt : -Infinity;
    if (exhaustedUntil > pausedUntil) return { endsAt: exhaustedUntil, isCertain: true };
    const closedUntil =
      this.hasConfiguredRate || !this.ratePolicy.isConfident ? -Infinity : this.ratePolicy.openAt(now, false);
    if (closedUntil > Math.max(now, pausedUntil)) return { endsAt: closedUntil, isCertain: true };
    return { endsAt: pausedUntil, isCertain: this.#pause.isStated };
  }

  pausedMs(now: number): number {
    return Math.max(this.#pause.remainingMs(now), this.#exhaustedUntil(now) - now, 0);
  }

  rejectsNew(now: number, probeIsTaken: boolean): boolean {
    return this.#pause.rejectsNew(now, probeIsTaken);
  }

  get isPaused(): boolean {
    return this.#pause.openAt !== -Infinity;
  }

  joinPause(now: number, statedWaitMs: number | undefined): void {
    this.#epoch++;
    this.#pause.begin(now, statedWaitMs, true);
  }

  recordGrant(now: number, isWaitedFor: boolean): PermitGrant {
    if (this.#allowance?.isProbeDue(now) === true) this.#pause.requireProbe(now);
    this.#allowance?.recordSent(now);
    this.#lastGrantAt = now;
    const isPauseProbe = this.#pause.recordGrant(now, this.ratePolicy);
    if (isPauseProbe && !this.#parameters.probesAfterPause) this.#pause.recordProbeAccepted();
    const { rate } = this.ratePolicy;
    const inFlight = this.#inFlightCalls.size;
    this.#inFlightCalls.add(now);
    const isProbeCall = this.ratePolicy.recordGrant(now, isWaitedFor);
    const serial = ++this.#serial;
    return { at: now, serial, epoch: this.#epoch, rate, isPauseProbe, isWaitedFor, isProbeCall, inFlight };
  }

  recordResult(now: number, grant: PermitGrant, result: PermitReport): LimitDecision {
    switch (result.kind) {
      case 'accepted':
        this.#recordAccepted(now, grant, result.hint);
        return NOT_LIMITED;
      case 'rate-limited':
        return this.#recordRefused(now, grant, result.signal, result.isConfigured);
      case 'unknown':
        this.recordEnded(now, grant);
        return NOT_LIMITED;
    }
  }

  learned(wallAt: (at: number) => number): LearnedLimit | undefined {
    return this.ratePolicy.learned(wallAt);
  }

  snapshot(now: number): object | undefined {
    return this.ratePolicy.snapshot(now);
  }

  restore(now: number, snapshot: unknown, ageMs: number): void {
    this.ratePolicy.restore(now, snapshot, ageMs);
  }

  reconfigure(now: number, terms: GovernorTerms): void {
    const former = this.#terms;
    const hadConfiguredRate = this.hasConfiguredRate;
    this.#terms = terms;
    this.#bounds.maxInFlight = terms.maxInFlight;
    this.#bounds.maxRate = terms.maxRate;
    this.#pause.setMaxPause(now, terms.maxPauseMs);
    this.#allowance?.setMaxPause(terms.maxPauseMs);
    if (hadConfiguredRate !== this.hasConfiguredRate) {
      this.#lastSerialBeforeModeChange = this.#serial;
      this.#allowance = undefined;
    }
    // A learned policy sees the bounds change, and keeps what it knows.
    const needsNewPolicy =
      terms.rate !== former.rate ||
      (this.hasConfiguredRate && (terms.burst !== former.burst || terms.maxInFlight !== former.maxInFlight));
    if (needsNewPolicy) this.ratePolicy = this.#createRatePolicy();
  }

  recordEnded(now: number, grant: PermitGrant): void {
    this.#inFlightCalls.remove(grant.at);
    this.#allowance?.recordEnded(grant);
    this.#ratePolicyFor(grant).recordEnded(grant);
    if (grant.isPauseProbe && grant.epoch === this.#epoch) this.#pause.recordProbeEnded(now);
  }

  recordUnused(now: number, grant: PermitGrant): void {
    this.#inFlightCalls.remove(grant.at);
    this.#ratePolicyFor(grant).recordUnused(grant);
    if (grant.isPauseProbe && grant.epoch === this.#epoch) this.#pause.recordProbeUnused(now);
  }

  #recordAccepted(now: number, grant: PermitGrant, hint: RateLimitSignal | undefined): void {
    this.#inFlightCalls.remove(grant.at);
    const isCurrent = grant.epoch === this.#epoch;
    this.#previousWas503WithWait = false;
    if (isCurrent && grant.isPauseProbe) this.#pause.recordProbeAccepted();
    this.#ratePolicyFor(grant).recordAccepted(now, grant, isCurrent);
    const quotas = this.#terms.rate === 'auto' ? (hint?.quotas ?? []) : [];
    if (quotas.length > 0)
      this.#allowance ??= new StatedAllowance(this.#terms.maxPauseMs, this.#inFlightCalls, this.#lastGrantAt);
    this.#allowance?.recordAccepted(now, grant, quotas);
  }

  #recordRefused(now: number, grant: PermitGrant, signal: RateLimitSignal, isConfigured = false): LimitDecision {
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
    this.#pause.recordRefusalTime(now - grant.at);
    const isCurrent = grant.epoch === this.#epoch || !this.#parameters.decreasesOncePerEpoch;
    if (isCurrent) {
      if (grant.isPauseProbe) this.#pause.recordProbeRefused();
      if (isUnavailable) this.#ratePolicyFor(grant).recordEnded(grant);
      else this.#ratePolicyFor(grant).recordRefused(now, grant, readStatedWait(signal));
      this.#epoch++;
    } else this.#ratePolicyFor(grant).recordLateRefusal(now, grant);
    this.#pause.begin(now, signal.statedWaitMs, isCurrent);
    return { kind: 'limited', pauseMs: this.#pause.remainingMs(now), stated: this.#pause.isStated };
  }

  #exhaustedUntil(now: number): number {
    return this.#allowance?.exhaustedUntil(now) ?? -Infinity;
  }

  #createRatePolicy(): RatePolicy {
    const { rate, burst, maxInFlight } = this.#terms;
    const learned = { learning: this.#parameters, inFlightCalls: this.#inFlightCalls };
    return this.#wrapRatePolicy(
      rate === 'auto'
        ? new LearnedRatePolicy(Object.assign(this.#bounds, learned))
        : new FixedRatePolicy(rate, burst, maxInFlight),
    );
  }

  #ratePolicyFor(grant: PermitGrant): RatePolicy {
    return grant.serial > this.#lastSerialBeforeModeChange ? this.ratePolicy : NOOP_RATE_POLICY;
  }
}

function readStatedWait({
  statedWaitMs: waitMs,
  waitResolutionMs: resolutionMs = 0,
}: RateLimitSignal): StatedWait | undefined {
  return waitMs === undefined ? undefined : { waitMs, resolutionMs };
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
