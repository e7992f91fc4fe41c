/**
 * The governor (pure): which rate, which pause and how many in flight now, judged from how attempts end. Two ways to pace share
 * one way to pause. With a number for `rate` the pace is the configured one and only refusals hold it back. With `auto` nothing
 * is paced until the first refusal; from then on the limit is inferred (learning/learned-pace.ts has the states), and what accepted
 * answers say is left is kept to. A refusal pauses all; then one probe goes first. An answer to an attempt granted before the
 * last pause teaches nothing new, except a longer stated wait. It grants nothing itself: bucket, slots and timers are the gate's.
 */
import type { Governor, GovernorOptions, GovernorTerms, GrantPause, LimitDecision } from './governor-contract.ts';
import type { PermitGrant } from './permit-grant.ts';
import { CallLog } from '../adaptive/call-log.ts';
import { LearnedRatePolicy } from '../adaptive/learned-rate-policy.ts';
import { DEFAULT_LEARNING, type LearningParameters } from '../adaptive/learning-parameters.ts';
import { FixedRatePolicy, type RatePolicy } from './rate-policy.ts';
import { SharedPause } from './pause.ts';
import type { RateLimitSignal } from '../signals/rate-limit-signal.ts';
import { StatedAllowance } from './stated-allowance.ts';
import type { PermitReport, LearnedLimit } from '../throttle.ts';

/**
 * A governor for a configured `rate`, or one that learns it.
 * @param wrap puts another pace around the one that it would have
 */
export function createGovernor(options: GovernorOptions, wrap: WrapRatePolicy = (pace) => pace): Governor {
  return new PausingGovernor({ ...options, learning: options.learning ?? DEFAULT_LEARNING }, wrap);
}

type WrapRatePolicy = (pace: RatePolicy) => RatePolicy;

const MAX_IN_FLIGHT_CALLS = 65_536;
const MAX_CALL_MS = 86_400_000;
const NOT_LIMITED: LimitDecision = { kind: 'unlimited' };
/** Learns nothing, whatever it is told. */
const NOOP_RATE_POLICY = new FixedRatePolicy(Infinity, 1, 1);

class PausingGovernor implements Governor {
  #terms: GovernorTerms;
  /** What a learned pace keeps to: it sees these change. */
  readonly #bounds: Mutable<Pick<GovernorTerms, 'maxInFlight' | 'maxRate'>>;
  readonly #wrapRatePolicy: WrapRatePolicy;
  #ratePolicy: RatePolicy;
  readonly #parameters: LearningParameters;
  readonly #pause: SharedPause;
  readonly #allowance: StatedAllowance;
  /** Calls without a response. */
  readonly #inFlightCalls = new CallLog(MAX_IN_FLIGHT_CALLS, MAX_CALL_MS);
  #epoch = 0;
  #serial = 0;
  /** Grants up to this one were made at another kind of pace: what becomes of them teaches this one nothing. */
  #lastSerialBeforeModeChange = 0;
  #previousWas503WithWait = false;

  constructor(options: GovernorOptions & { readonly learning: LearningParameters }, wrap: WrapRatePolicy) {
    this.#wrapRatePolicy = wrap;
    this.#parameters = options.learning;
    this.#terms = options;
    this.#bounds = { maxInFlight: options.maxInFlight, maxRate: options.maxRate };
    this.#ratePolicy = this.#createRatePolicy();
    this.#pause = new SharedPause(options);
    this.#allowance = new StatedAllowance(options.maxPauseMs, this.#inFlightCalls);
  }

  get hasConfiguredRate(): boolean {
    return this.#terms.rate !== 'auto';
  }

  get ratePolicy(): RatePolicy {
    return this.#ratePolicy;
  }

  openAt(now: number): number {
    const pausedUntil = this.#pause.openAt;
    return Math.max(pausedUntil, this.#allowance.openAt(now), this.#ratePolicy.openAt(now, pausedUntil !== -Infinity));
  }

  currentPause(now: number): GrantPause {
    const allowanceAt = this.#allowance.exhaustedUntil(now);
    // While only a probe's answer is awaited nobody knows for how long, so that nothing is said to hold.
    const pausedAt = this.#pause.remainingMs(now) > 0 ? this.#pause.openAt : -Infinity;
    if (allowanceAt > pausedAt) return { endsAt: allowanceAt, isCertain: true };
    const closedUntil =
      this.hasConfiguredRate || !this.#ratePolicy.isConfident ? -Infinity : this.#ratePolicy.openAt(now, false);
    if (closedUntil > Math.max(now, pausedAt)) return { endsAt: closedUntil, isCertain: true };
    return { endsAt: pausedAt, isCertain: this.#pause.isStated };
  }

  pausedMs(now: number): number {
    return Math.max(this.#pause.remainingMs(now), this.#allowance.exhaustedUntil(now) - now, 0);
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

  recordGrant(now: number, waitedFor: boolean): PermitGrant {
    if (this.#allowance.isProbeDue(now)) this.#pause.requireProbe(now);
    this.#allowance.recordSent(now);
    const probe = this.#pause.recordGrant(now);
    if (probe && !this.#parameters.probesAfterPause) this.#pause.recordProbeAccepted();
    const { rate } = this.#ratePolicy;
    const inFlight = this.#inFlightCalls.size;
    this.#inFlightCalls.add(now);
    const beyond = this.#ratePolicy.recordGrant(now, waitedFor);
    return {
      at: now,
      serial: ++this.#serial,
      epoch: this.#epoch,
      rate,
      isPauseProbe: probe,
      isWaitedFor: waitedFor,
      isProbeCall: beyond,
      inFlight,
    };
  }

  recordResult(now: number, grant: PermitGrant, result: PermitReport): LimitDecision {
    switch (result.kind) {
      case 'accepted':
        this.#recordAccepted(now, grant, result.hint);
        return NOT_LIMITED;
      case 'rate-limited':
        return this.#recordRefused(now, grant, result.signal);
      case 'unknown':
        this.recordEnded(now, grant);
        return NOT_LIMITED;
    }
  }

  learned(wallAt: (at: number) => number): LearnedLimit | undefined {
    return this.#ratePolicy.learned(wallAt);
  }

  snapshot(now: number): object | undefined {
    return this.#ratePolicy.snapshot(now);
  }

  restore(now: number, snapshot: unknown, ageMs: number): void {
    this.#ratePolicy.restore(now, snapshot, ageMs);
  }

  reconfigure(now: number, terms: GovernorTerms): void {
    const former = this.#terms;
    const wasExact = this.hasConfiguredRate;
    this.#terms = terms;
    this.#bounds.maxInFlight = terms.maxInFlight;
    this.#bounds.maxRate = terms.maxRate;
    this.#pause.setMaxPause(now, terms.maxPauseMs);
    this.#allowance.setMaxPause(terms.maxPauseMs);
    if (wasExact !== this.hasConfiguredRate) {
      this.#lastSerialBeforeModeChange = this.#serial;
      this.#allowance.forget();
    }
    // A learned pace sees the bounds change, and keeps what it knows.
    const isOther =
      terms.rate !== former.rate ||
      (this.hasConfiguredRate && (terms.burst !== former.burst || terms.maxInFlight !== former.maxInFlight));
    if (isOther) this.#ratePolicy = this.#createRatePolicy();
  }

  recordEnded(now: number, grant: PermitGrant): void {
    this.#inFlightCalls.remove(grant.at);
    this.#allowance.recordEnded(grant);
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
    const fresh = grant.epoch === this.#epoch;
    this.#previousWas503WithWait = false;
    if (fresh && grant.isPauseProbe) this.#pause.recordProbeAccepted();
    this.#ratePolicyFor(grant).recordAccepted(now, grant, fresh);
    this.#allowance.recordAccepted(now, grant, this.#terms.rate === 'auto' ? hint : undefined);
  }

  #recordRefused(now: number, grant: PermitGrant, signal: RateLimitSignal): LimitDecision {
    const unavailable = signal.status === 503;
    const agreed = this.#previousWas503WithWait;
    this.#previousWas503WithWait = unavailable && signal.statedWaitMs !== undefined;
    // One node of many may be going away: a 503 holds for all only when the next answer says the same.
    if (unavailable && !(agreed && this.#previousWas503WithWait)) {
      this.recordEnded(now, grant);
      return NOT_LIMITED;
    }
    this.#inFlightCalls.remove(grant.at);
    this.#allowance.recordRefused(grant);
    const fresh = grant.epoch === this.#epoch || !this.#parameters.decreasesOncePerEpoch;
    if (fresh) {
      if (grant.isPauseProbe) this.#pause.recordProbeRefused();
      if (unavailable) this.#ratePolicyFor(grant).recordEnded(grant);
      else this.#ratePolicyFor(grant).recordRefused(now, grant);
      this.#epoch++;
    } else this.#ratePolicyFor(grant).recordLateRefusal(now, grant);
    this.#pause.begin(now, signal.statedWaitMs, fresh);
    return { kind: 'limited', pauseMs: this.#pause.remainingMs(now), stated: this.#pause.isStated };
  }

  #createRatePolicy(): RatePolicy {
    const { rate, burst, maxInFlight } = this.#terms;
    // The bounds are no copy: the pace is to see them change.
    return this.#wrapRatePolicy(
      rate === 'auto'
        ? new LearnedRatePolicy(
            Object.assign(this.#bounds, { learning: this.#parameters, inFlightCalls: this.#inFlightCalls }),
          )
        : new FixedRatePolicy(rate, burst, maxInFlight),
    );
  }

  #ratePolicyFor(grant: PermitGrant): RatePolicy {
    return grant.serial > this.#lastSerialBeforeModeChange ? this.#ratePolicy : NOOP_RATE_POLICY;
  }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
