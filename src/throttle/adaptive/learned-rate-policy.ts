/**
 * `auto`: a rate, a number in flight and the instants to stay away from, learned from what is accepted and refused (pure).
 *   free       nothing has been refused: nothing is paced
 *   holding    an idea of the limit is believed: its rate is used, and its window is not overdrawn
 *   trying     the believed limit is exceeded carefully, so that a raised one is found (trial.ts)
 *   searching  nothing explains the refusals: a rate that only they shape (search.ts)
 * A refusal leads to holding or searching; acceptance that no idea explains, to trying for more. An unforeseen refusal or two of
 * an idea that has foreseen others is put down to jitter: less of its rate is used for a while.
 */
import type { PermitGrant } from '../pacing/permit-grant.ts';
import type { RatePolicy } from '../pacing/rate-policy.ts';
import type { LearnedLimit } from '../throttle.ts';
import { createModelSelector, type ModelSelector } from './model-selector.ts';
import type { CallLog } from './call-log.ts';
import { CallTracker } from './call-tracker.ts';
import { ChangeDetector } from './change-detector.ts';
import {
  describeLimit,
  type ModelSnapshot,
  parseModelSnapshot,
  restoreModel,
  createModelSnapshot,
} from './model-snapshot.ts';
import type { LearningParameters } from './learning-parameters.ts';
import { FallbackRate } from './fallback-rate.ts';
import { LimitProbe } from './limit-probe.ts';

/** A first rate rests on thin evidence. */
const INITIAL_RATE_SHARE = 0.7;
const MIN_INITIAL_RATE = 2;
const MIN_RATE = 1 / 3600;
/** What an earlier process has learned is tried after this. */
const RESTORED_PROBE_DELAY_MS = 5_000;

/** What a learned pace is made from. */
export interface LearnedRatePolicyOptions {
  readonly maxInFlight: number;
  /** Permits per second that are never exceeded; absent: none. */
  readonly maxRate?: number | undefined;
  readonly learning: LearningParameters;
  /** Calls without a response; the governor adds and removes them. */
  readonly inFlightCalls: CallLog;
}

type LearningPhase = 'free' | 'holding' | 'trying' | 'searching';

/** The pace of `auto`. */
export class LearnedRatePolicy implements RatePolicy {
  readonly #options: LearnedRatePolicyOptions;
  readonly #callTracker: CallTracker;
  readonly #modelSelector: ModelSelector;
  readonly #limitProbe: LimitProbe;
  readonly #fallbackRate: FallbackRate;
  #phase: LearningPhase = 'free';
  #inFlightLimit: number;
  #lastDecreaseAt = -Infinity;
  readonly #changeDetector = new ChangeDetector();

  constructor(options: LearnedRatePolicyOptions) {
    this.#options = options;
    const { learning, maxInFlight, inFlightCalls } = options;
    this.#inFlightLimit = Math.min(4, maxInFlight);
    this.#callTracker = new CallTracker(learning.jitterDeviations, inFlightCalls);
    this.#modelSelector = createModelSelector(learning, this.#callTracker.notRefused, this.#callTracker.sent);
    this.#limitProbe = new LimitProbe(learning);
    this.#fallbackRate = new FallbackRate(MIN_INITIAL_RATE, learning.decreaseFactor);
  }

  get rate(): number {
    return Math.min(this.#rate, this.#options.maxRate ?? Infinity);
  }

  /** Permits per second without a trial that has not succeeded yet. */
  get confirmedRate(): number {
    return this.#phase === 'trying' && this.#modelSelector.selected
      ? Math.min(this.rate, this.#selectedRate)
      : this.rate;
  }

  get burst(): number {
    return this.#phase === 'holding' ? (this.#modelSelector.selected?.burst ?? 1) : 1;
  }

  get inFlightLimit(): number {
    if (this.#phase === 'free') return this.#inFlightLimit;
    const believed = this.#modelSelector.selected;
    if (believed?.kind !== 'concurrency') return this.#inFlightLimit;
    const more = this.#phase === 'trying' ? 1 + Math.floor(this.#limitProbe.acceptedCalls / 20) : 0;
    return Math.min(this.#inFlightLimit, Math.max(1, believed.limit + more));
  }

  get limitsConcurrency(): boolean {
    return this.#modelSelector.selected?.kind === 'concurrency';
  }

  get isConfident(): boolean {
    return this.#phase === 'holding' && this.#modelSelector.selected?.isTrusted === true;
  }

  openAt(now: number, isPaused: boolean): number {
    if (this.#phase === 'free') return -Infinity;
    const believed = this.#modelSelector.selected;
    if (believed === undefined) return -Infinity;
    if (this.#phase === 'trying' && !isPaused) return this.#limitProbe.openAt(now);
    return Math.min(
      Math.max(believed.openAt(now, this.#callTracker.jitterMs), this.#callTracker.probeUntil),
      this.#limitProbe.dueAt,
    );
  }

  recordGrant(now: number, waitedFor: boolean): boolean {
    if (this.#phase === 'free') {
      this.#callTracker.recordGrant(now);
      return false;
    }
    const believed = this.#modelSelector.selected;
    this.#callTracker.recordGrant(
      now,
      this.#phase === 'holding' && believed?.isFirstCallOfWindow(now, this.#callTracker.jitterMs) === true,
    );
    const isBeyond =
      this.#phase === 'trying' && believed?.isFull(now, this.#callTracker.jitterMs, this.#callTracker.pending) === true;
    if (isBeyond) this.#limitProbe.recordProbeCallSent(now);
    this.#limitProbe.countCall(now);
    const inUse = waitedFor || !this.#options.learning.growsOnlyWhenUsed;
    if (this.#phase === 'holding' && inUse && now >= this.#limitProbe.dueAt) {
      this.#limitProbe.start(this.#selectedRate);
      this.#phase = 'trying';
    }
    return isBeyond;
  }

  recordAccepted(now: number, grant: PermitGrant, fresh: boolean): void {
    this.#recordResponse(now, grant);
    if (this.#inFlightLimit < this.#options.maxInFlight) this.#inFlightLimit++;
    if (this.#phase === 'free') return;
    const rate = this.#rate;
    if (this.#phase === 'holding') this.#modelSelector.selected?.recoverSafetyFactor(now);
    this.#modelSelector.recordAccepted(this.#callTracker.evaluateResponse(grant, true));
    if (!this.#modelSelector.isConsistent) {
      this.#recordContradiction(now);
      this.#limitProbe.continueFrom(Number.isFinite(rate) ? rate : this.#callTracker.recentCallsPerSecond(now, 2000));
      this.#phase = 'trying';
      return;
    }
    if (this.#modelSelector.selected === undefined) this.#selectModel(now, rate);
    if (fresh) this.#increaseRate(now, grant);
  }

  recordRefused(now: number, grant: PermitGrant): void {
    this.#recordResponse(now, grant);
    if (this.#phase === 'trying') this.#limitProbe.end();
    const rate = this.#rate;
    this.#callTracker.recordRefused(grant);
    if (this.#tolerateRefusal(now, grant)) return;
    this.#evaluateRefusal(now, grant);
    this.#decreaseFallbackRate(now, grant, rate);
    this.#selectModel(now, this.#fallbackRate.rate, true);
  }

  recordLateRefusal(now: number, grant: PermitGrant): void {
    this.#recordResponse(now, grant);
    this.#callTracker.recordRefused(grant);
  }

  recordEnded(grant: PermitGrant): void {
    this.#callTracker.recordEnded(grant);
    if (grant.isProbeCall) this.#limitProbe.recordProbeCallEnded();
  }

  recordUnused(grant: PermitGrant): void {
    this.#callTracker.recordUnused(grant);
    if (grant.isProbeCall) this.#limitProbe.recordProbeCallEnded();
  }

  learned(wallAt: (at: number) => number): LearnedLimit | undefined {
    if (this.#phase === 'free') return undefined;
    return describeLimit(this.#modelSelector.selected, this.rate, wallAt(this.#modelSelector.selectedAt));
  }

  snapshot(now: number): ModelSnapshot | undefined {
    const believed = this.#modelSelector.selected;
    return believed === undefined ? undefined : createModelSnapshot(believed, now);
  }

  restore(now: number, snapshot: unknown, ageMs: number): void {
    this.#callTracker.keepSent();
    const learned = parseModelSnapshot(snapshot);
    const model = learned && restoreModel(this.#modelSelector, learned, now, ageMs);
    if (model === undefined) return;
    this.#phase = 'holding';
    this.#changeDetector.start(now);
    this.#inFlightLimit = this.#options.maxInFlight;
    this.#limitProbe.scheduleFirst(now, RESTORED_PROBE_DELAY_MS);
  }

  get #rate(): number {
    if (this.#phase === 'free') return Infinity;
    if (this.#phase === 'searching') return this.#fallbackRate.rate;
    return this.#phase === 'trying' ? this.#limitProbe.rate : this.#selectedRate;
  }

  get #selectedRate(): number {
    const believed = this.#modelSelector.selected;
    if (believed === undefined) return this.#fallbackRate.rate;
    const { windowRateShare, bucketRateShare } = this.#options.learning;
    const share = believed.kind === 'bucket' ? bucketRateShare : windowRateShare;
    return Math.max(MIN_RATE, believed.rate * believed.safetyFactor * share);
  }

  #recordResponse(now: number, grant: PermitGrant): void {
    this.#callTracker.recordResponse(now, grant);
    if (grant.isProbeCall) this.#limitProbe.recordProbeCallEnded();
  }

  /** An idea that has foreseen others is not given up for a refusal that it has not. */
  #tolerateRefusal(now: number, grant: PermitGrant): boolean {
    const believed = this.#modelSelector.selected;
    if (this.#phase !== 'holding' || grant.isPauseProbe || believed === undefined) return false;
    const { bucketToleratedRefusals, otherToleratedRefusals, toleratedRefusalFactor } = this.#options.learning;
    if (
      !believed.tolerateRefusal(
        now,
        believed.kind === 'bucket' ? bucketToleratedRefusals : otherToleratedRefusals,
        toleratedRefusalFactor,
      )
    )
      return false;
    if (believed.kind === 'concurrency')
      this.#modelSelector.correctSelected(this.#callTracker.evaluateResponse(grant, false));
    return true;
  }

  #evaluateRefusal(now: number, grant: PermitGrant): void {
    const believed = this.#modelSelector.selected;
    const evidence = this.#callTracker.evaluateResponse(grant, false);
    if (this.#phase === 'free') {
      this.#changeDetector.start(now);
      this.#modelSelector.replayAccepted(this.#callTracker.notRefused, evidence);
    }
    this.#modelSelector.recordRefused(evidence);
    if (!this.#modelSelector.isConsistent) {
      this.#recordContradiction(now);
      this.#modelSelector.recordRefused(evidence);
    }
    this.#limitProbe.scheduleAfterRefusal(
      now,
      believed?.isConsistent !== true || this.#modelSelector.selected === undefined,
    );
  }

  /** The rate to go by if nothing explains this. */
  #decreaseFallbackRate(now: number, grant: PermitGrant, rate: number): void {
    const seen = this.#callTracker.recentCallsPerSecond(now, Math.max(500, Math.min(5000, now - this.#lastDecreaseAt)));
    this.#lastDecreaseAt = now;
    if (this.#phase === 'free')
      this.#fallbackRate.restart(
        Math.max(MIN_INITIAL_RATE, this.#callTracker.recentCallsPerSecond(now, 2000) * INITIAL_RATE_SHARE),
      );
    else if (!grant.isPauseProbe) this.#fallbackRate.decrease(this.#phase === 'holding' ? rate : grant.rate, seen);
    else if (this.#phase !== 'holding') this.#fallbackRate.decreaseAfterProbe();
  }

  #selectModel(now: number, rate: number, afterRefusal = false): void {
    const best = this.#modelSelector.selectBest(now, this.#changeDetector.contradictionLevel);
    if (this.#phase === 'trying' && !afterRefusal) return;
    if (best === undefined && this.#phase === 'holding' && !afterRefusal) this.#fallbackRate.continueFrom(rate);
    this.#phase = best === undefined ? 'searching' : 'holding';
  }

  #recordContradiction(now: number): void {
    if (this.#changeDetector.recordContradiction(now)) this.#limitProbe.recordLimitChange(now);
    this.#modelSelector.reset();
  }

  #increaseRate(now: number, grant: PermitGrant): void {
    const inUse = grant.isWaitedFor || !this.#options.learning.growsOnlyWhenUsed;
    if (this.#phase === 'trying')
      this.#limitProbe.recordAccepted(now, grant.isProbeCall, inUse, this.#modelSelector.selected === undefined);
    else if (this.#phase === 'searching' && inUse)
      this.#fallbackRate.increase(1000 / grant.rate, 1 + this.#changeDetector.contradictionLevel);
  }
}
