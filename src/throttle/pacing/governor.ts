/**
 * The governor (pure): which rate, which pause and how many in flight now, judged from how attempts end. Two ways to pace share
 * one way to pause. With a number for `rate` the pace is the configured one and only refusals hold it back. With `auto` nothing
 * is paced until the first refusal; from then on the limit is inferred (learning/learned-pace.ts has the states), and what accepted
 * answers say is left is kept to. A refusal pauses all; then one probe goes first. An answer to an attempt granted before the
 * last pause teaches nothing new, except a longer stated wait. It grants nothing itself: bucket, slots and timers are the gate's.
 */
import type { Governor, GovernorOptions, GovernorTerms, Hold, Verdict } from './governor-contract.ts';
import type { Grant } from './grant.ts';
import { LearnedPace } from '../adaptive/learned-pace.ts';
import { DEFAULT_LEARNING, type LearningParameters } from '../adaptive/parameters.ts';
import { FixedPace, type Pace } from './pace.ts';
import { SharedPause } from './pause.ts';
import type { RateLimitSignal } from '../signals/rate-limit-signal.ts';
import { StatedAllowance } from './stated-allowance.ts';
import type { AttemptResult, LearnedLimit } from '../throttle.ts';

/**
 * A governor for a configured `rate`, or one that learns it.
 * @param wrap puts another pace around the one that it would have
 */
export function createGovernor(options: GovernorOptions, wrap: Wrap = (pace) => pace): Governor {
  return new PausingGovernor({ ...options, learning: options.learning ?? DEFAULT_LEARNING }, wrap);
}

type Wrap = (pace: Pace) => Pace;

const UNLIMITED: Verdict = { kind: 'unlimited' };
/** Learns nothing, whatever it is told. */
const DEAF = new FixedPace(Infinity, 1, 1);

class PausingGovernor implements Governor {
  #terms: GovernorTerms;
  /** What a learned pace keeps to: it sees these change. */
  readonly #bounds: Mutable<Pick<GovernorTerms, 'maxInFlight' | 'maxRate'>>;
  readonly #wrap: Wrap;
  #pace: Pace;
  readonly #learning: LearningParameters;
  readonly #pause: SharedPause;
  readonly #allowance: StatedAllowance;
  #epoch = 0;
  #serial = 0;
  /** Grants up to this one were made at another kind of pace: what becomes of them teaches this one nothing. */
  #lastOfOtherKind = 0;
  #unavailableBefore = false;

  constructor(options: GovernorOptions & { readonly learning: LearningParameters }, wrap: Wrap) {
    this.#wrap = wrap;
    this.#learning = options.learning;
    this.#terms = options;
    this.#bounds = { maxInFlight: options.maxInFlight, maxRate: options.maxRate };
    this.#pace = this.#createPace();
    this.#pause = new SharedPause(options);
    this.#allowance = new StatedAllowance(options.maxPauseMs);
  }

  get exact(): boolean {
    return this.#terms.rate !== 'auto';
  }

  get rate(): number {
    return this.#pace.rate;
  }

  get burst(): number {
    return this.#pace.burst;
  }

  get inFlightLimit(): number {
    return Math.min(this.#pace.inFlightLimit, this.#terms.maxInFlight);
  }

  get limitsSlots(): boolean {
    return this.#pace.limitsSlots;
  }

  get isConfident(): boolean {
    return this.#pace.isConfident;
  }

  openAt(now: number): number {
    const pausedUntil = this.#pause.openAt;
    return Math.max(pausedUntil, this.#allowance.openAt(now), this.#pace.openAt(now, pausedUntil !== -Infinity));
  }

  hold(now: number): Hold {
    const allowanceAt = this.#allowance.usedUpUntil(now);
    // While only a probe's answer is awaited nobody knows for how long, so that nothing is said to hold.
    const pausedAt = this.#pause.leftMs(now) > 0 ? this.#pause.openAt : -Infinity;
    if (allowanceAt > pausedAt) return { until: allowanceAt, stated: true };
    const closedUntil = this.exact || !this.isConfident ? -Infinity : this.#pace.openAt(now, false);
    if (closedUntil > Math.max(now, pausedAt)) return { until: closedUntil, stated: true };
    return { until: pausedAt, stated: this.#pause.stated };
  }

  pausedMs(now: number): number {
    return Math.max(this.#pause.leftMs(now), this.#allowance.usedUpUntil(now) - now, 0);
  }

  turnsAway(now: number, probeIsTaken: boolean): boolean {
    return this.#pause.turnsAway(now, probeIsTaken);
  }

  get isClosed(): boolean {
    return this.#pause.openAt !== -Infinity;
  }

  joinPause(now: number, statedWaitMs: number | undefined): void {
    this.#epoch++;
    this.#pause.begin(now, statedWaitMs, true);
  }

  granted(now: number, waitedFor: boolean): Grant {
    if (this.#allowance.hasRunOut(now)) this.#pause.demandProbe(now);
    this.#allowance.spend(now);
    const probe = this.#pause.granted(now);
    if (probe && !this.#learning.probesFirst) this.#pause.probeAccepted();
    const { rate, abreast } = this.#pace;
    const beyond = this.#pace.granted(now, waitedFor);
    return { at: now, serial: ++this.#serial, epoch: this.#epoch, rate, probe, waitedFor, beyond, abreast };
  }

  reported(now: number, grant: Grant, result: AttemptResult): Verdict {
    switch (result.kind) {
      case 'accepted':
        this.#accepted(now, grant, result.hint);
        return UNLIMITED;
      case 'rate-limited':
        return this.#refused(now, grant, result.signal);
      case 'unknown':
        this.ended(now, grant);
        return UNLIMITED;
    }
  }

  learned(wallAt: (at: number) => number): LearnedLimit | undefined {
    return this.#pace.learned(wallAt);
  }

  snapshot(now: number): object | undefined {
    return this.#pace.snapshot(now);
  }

  restore(now: number, snapshot: unknown, ageMs: number): void {
    this.#pace.restore(now, snapshot, ageMs);
  }

  reconfigure(now: number, terms: GovernorTerms): void {
    const former = this.#terms;
    const wasExact = this.exact;
    this.#terms = terms;
    this.#bounds.maxInFlight = terms.maxInFlight;
    this.#bounds.maxRate = terms.maxRate;
    this.#pause.setMaxPause(now, terms.maxPauseMs);
    this.#allowance.setMaxPause(terms.maxPauseMs);
    if (wasExact !== this.exact) {
      this.#lastOfOtherKind = this.#serial;
      this.#allowance.forget();
    }
    // A learned pace sees the bounds change, and keeps what it knows.
    const isOther =
      terms.rate !== former.rate ||
      (this.exact && (terms.burst !== former.burst || terms.maxInFlight !== former.maxInFlight));
    if (isOther) this.#pace = this.#createPace();
  }

  ended(now: number, grant: Grant): void {
    this.#allowance.ended(grant);
    this.#paceOf(grant).ended(grant);
    if (grant.probe && grant.epoch === this.#epoch) this.#pause.probeEnded(now);
  }

  withdrawn(now: number, grant: Grant): void {
    this.#allowance.giveBack(grant);
    this.#paceOf(grant).withdrawn(grant);
    if (grant.probe && grant.epoch === this.#epoch) this.#pause.probeWithdrawn(now);
  }

  #accepted(now: number, grant: Grant, hint: RateLimitSignal | undefined): void {
    const fresh = grant.epoch === this.#epoch;
    this.#unavailableBefore = false;
    if (fresh && grant.probe) this.#pause.probeAccepted();
    this.#paceOf(grant).accepted(now, grant, fresh);
    this.#allowance.accepted(now, grant, this.exact ? undefined : hint);
  }

  #refused(now: number, grant: Grant, signal: RateLimitSignal): Verdict {
    const unavailable = signal.status === 503;
    const agreed = this.#unavailableBefore;
    this.#unavailableBefore = unavailable && signal.statedWaitMs !== undefined;
    // One node of many may be going away: a 503 holds for all only when the next answer says the same.
    if (unavailable && !(agreed && this.#unavailableBefore)) {
      this.ended(now, grant);
      return UNLIMITED;
    }
    this.#allowance.refused(grant);
    const fresh = grant.epoch === this.#epoch || !this.#learning.cutsOncePerEpoch;
    if (fresh) {
      if (grant.probe) this.#pause.probeRefused();
      if (unavailable) this.#paceOf(grant).ended(grant);
      else this.#paceOf(grant).refused(now, grant);
      this.#epoch++;
    } else this.#paceOf(grant).refusedLate(now, grant);
    this.#pause.begin(now, signal.statedWaitMs, fresh);
    return { kind: 'limited', pauseMs: this.#pause.leftMs(now), stated: this.#pause.stated };
  }

  #createPace(): Pace {
    const { rate, burst, maxInFlight } = this.#terms;
    // The bounds are no copy: the pace is to see them change.
    return this.#wrap(
      rate === 'auto'
        ? new LearnedPace(Object.assign(this.#bounds, { learning: this.#learning }))
        : new FixedPace(rate, burst, maxInFlight),
    );
  }

  #paceOf(grant: Grant): Pace {
    return grant.serial > this.#lastOfOtherKind ? this.#pace : DEAF;
  }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
