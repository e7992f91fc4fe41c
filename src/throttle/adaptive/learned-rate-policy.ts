/**
 * `throttle.rate: auto`: learns the upstream's limit from accepted and refused calls (pure). How it works, in order:
 *   unlimited  Nothing was refused yet: calls are recorded and not paced.
 *   tracking   At a refusal about sixty models (limiter-model.ts: windows of 15 lengths, a token bucket, a limit in flight) narrow the
 *              bounds of their capacity; contradicted models are dropped. The best of the others is selected (model-selector.ts), and
 *              calls keep slightly below its rate and within its window. The first call of a new window goes alone.
 *   probing    From time to time single calls exceed the selected limit, so that a raised limit is found (limit-probe.ts).
 *   fallback   No model explains the refusals: a rate that refusals cut and use raises (fallback-rate.ts). After every model was
 *              contradicted all begin again, and more evidence is asked for (change-detector.ts).
 * A trusted model survives a few unexpected refusals: they come from jitter, so less of its rate is used for a while.
 */
import type { PermitGrant } from '../pacing/permit-grant.ts';
import type { RatePolicy, StatedWait } from '../pacing/rate-policy.ts';
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

/** Share of the accepted rate to begin with after the first refusal: one refusal is little evidence. */
const INITIAL_RATE_SHARE = 0.7;
const MIN_INITIAL_RATE = 2;
const MIN_RATE = 1 / 3600;
/** What a refusal without a stated wait costs: its backoff and the round trip of its probe. */
const UNSTATED_PAUSE_MS = 200;
/** Share of a window whose loss does not count. */
const NEGLIGIBLE_SHARE = 0.02;
/** A limit in flight frees a slot within a round trip: a wait of more round trips than this is evidence against it. */
const LONG_WAIT_ROUND_TRIPS = 5;
/** Refusals in a row that it must have explained then. */
const MIN_EXPLAINED_DESPITE_WAIT = 9;
/** A restored limit is probed after this time. */
const RESTORED_PROBE_DELAY_MS = 5_000;

/** Read again at every use, so that a reload can change `maxInFlight` and `maxRate`. */
export interface LearnedRatePolicyOptions {
  readonly maxInFlight: number;
  /** Permits per second that are never exceeded. Default: none. */
  readonly maxRate?: number | undefined;
  readonly learning: LearningParameters;
  /** Calls without a response; the governor adds and removes them. */
  readonly inFlightCalls: CallLog;
}

type LearningPhase = 'unlimited' | 'tracking' | 'probing' | 'fallback';

/** The rate policy of `auto`. */
export class LearnedRatePolicy implements RatePolicy {
  readonly #options: LearnedRatePolicyOptions;
  readonly #callTracker: CallTracker;
  readonly #modelSelector: ModelSelector;
  readonly #limitProbe: LimitProbe;
  readonly #fallbackRate: FallbackRate;
  readonly #changeDetector = new ChangeDetector();
  #phase: LearningPhase = 'unlimited';
  #inFlightLimit: number;
  #lastDecreaseAt = -Infinity;
  /** Of the last refusal. */
  #waitResolutionMs = 0;
  #statedWaitMs = 0;
  /** End of the wait that the last refusal stated. */
  #pausedUntil = -Infinity;

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

  /** Permits per second without what a probe in progress adds. */
  get confirmedRate(): number {
    return this.#phase === 'probing' && this.#modelSelector.selected
      ? Math.min(this.rate, this.#selectedRate)
      : this.rate;
  }

  get burst(): number {
    return this.#phase === 'tracking' ? (this.#modelSelector.selected?.burst ?? 1) : 1;
  }

  /** Refusals in a row that agree with the selected model; 0 without one. */
  get explainedRefusals(): number {
    return this.#modelSelector.selected?.explainedRefusals ?? 0;
  }

  get inFlightLimit(): number {
    if (this.#phase === 'unlimited') return this.#inFlightLimit;
    const { selected } = this.#modelSelector;
    if (selected?.kind !== 'concurrency') return this.#inFlightLimit;
    const extra = this.#phase === 'probing' ? 1 + Math.floor(this.#limitProbe.acceptedCalls / 20) : 0;
    return Math.min(this.#inFlightLimit, Math.max(1, selected.limit + extra));
  }

  get limitsConcurrency(): boolean {
    return this.#modelSelector.selected?.kind === 'concurrency';
  }

  get isConfident(): boolean {
    return this.#phase === 'tracking' && this.#modelSelector.selected?.isTrusted === true;
  }

  openAt(now: number, isPaused: boolean): number {
    if (this.#phase === 'unlimited') return -Infinity;
    const { selected } = this.#modelSelector;
    if (selected === undefined) return -Infinity;
    if (this.#phase === 'probing' && !isPaused) return this.#limitProbe.openAt(now);
    return Math.min(
      Math.max(selected.openAt(now, this.#callTracker.jitterMs), this.#callTracker.probeUntil),
      this.#limitProbe.dueAt,
    );
  }

  recordGrant(now: number, waitedFor: boolean): boolean {
    if (this.#phase === 'unlimited') {
      this.#callTracker.recordGrant(now, false);
      return false;
    }
    const { selected } = this.#modelSelector;
    const { jitterMs, pending } = this.#callTracker;
    const isWindowProbe = this.#phase === 'tracking' && selected?.isFirstCallOfWindow(now, jitterMs) === true;
    this.#callTracker.recordGrant(now, isWindowProbe);
    const isProbeCall = this.#phase === 'probing' && selected?.wouldRefuse(now, jitterMs, pending) === true;
    if (isProbeCall) this.#limitProbe.recordProbeCallSent(now);
    this.#limitProbe.countCall(now);
    if (this.#phase === 'tracking' && this.#isInUse(waitedFor) && now >= this.#limitProbe.dueAt) {
      this.#limitProbe.start(this.#selectedRate);
      this.#phase = 'probing';
    }
    return isProbeCall;
  }

  recordAccepted(now: number, grant: PermitGrant, fresh: boolean): void {
    this.#recordResponse(now, grant);
    if (this.#inFlightLimit < this.#options.maxInFlight) this.#inFlightLimit++;
    if (this.#phase === 'unlimited') return;
    const rate = this.#rate;
    if (this.#phase === 'tracking') this.#modelSelector.selected?.recoverSafetyFactor(now, this.#refusalCost);
    this.#modelSelector.recordAccepted(this.#callTracker.countAccepted(grant));
    if (!this.#modelSelector.isConsistent) {
      this.#recordContradiction(now);
      this.#limitProbe.continueFrom(Number.isFinite(rate) ? rate : this.#callTracker.recentCallsPerSecond(now, 2000));
      this.#phase = 'probing';
      return;
    }
    if (this.#modelSelector.selected === undefined) this.#selectModel(now, rate);
    if (fresh) this.#increaseRate(now, grant);
  }

  recordRefused(now: number, grant: PermitGrant, statedWait?: StatedWait): void {
    this.#recordResponse(now, grant);
    this.#waitResolutionMs = statedWait?.resolutionMs ?? 0;
    const pausedUntil = this.#pausedUntil;
    this.#statedWaitMs = statedWait?.waitMs ?? 0;
    this.#pausedUntil = now + this.#statedWaitMs;
    if (this.#phase === 'probing') this.#limitProbe.end();
    const rate = this.#rate;
    this.#callTracker.recordRefused(grant);
    if (this.#tolerateRefusal(now, grant)) return;
    this.#evaluateRefusal(now, grant);
    this.#decreaseFallbackRate(now, grant, rate, pausedUntil);
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
    if (this.#phase === 'unlimited') return undefined;
    return describeLimit(this.#modelSelector.selected, this.rate, wallAt(this.#modelSelector.selectedAt));
  }

  snapshot(now: number): ModelSnapshot | undefined {
    const { selected } = this.#modelSelector;
    return selected === undefined ? undefined : createModelSnapshot(selected, now);
  }

  restore(now: number, snapshot: unknown, ageMs: number): void {
    this.#callTracker.keepSent();
    const parsed = parseModelSnapshot(snapshot);
    const model = parsed && restoreModel(this.#modelSelector, parsed, now, ageMs);
    if (model === undefined) return;
    this.#phase = 'tracking';
    this.#changeDetector.start(now);
    this.#inFlightLimit = this.#options.maxInFlight;
    this.#limitProbe.scheduleFirst(now, RESTORED_PROBE_DELAY_MS);
  }

  get #rate(): number {
    if (this.#phase === 'unlimited') return Infinity;
    if (this.#phase === 'tracking') return this.#selectedRate;
    return this.#phase === 'probing' ? this.#limitProbe.rate : this.#fallbackRate.rate;
  }

  get #selectedRate(): number {
    const { selected } = this.#modelSelector;
    if (selected === undefined) return this.#fallbackRate.rate;
    const { windowRateShare, bucketRateShare } = this.#options.learning;
    const share = selected.kind === 'bucket' ? bucketRateShare : windowRateShare;
    return Math.max(MIN_RATE, selected.rate * selected.safetyFactor * share);
  }

  /**
   * Time that a refusal costs, as a multiple of one without a stated wait. A wait in whole seconds is obeyed to its end, up to a second
   * too long. What risks a refusal is done as many times more rarely.
   */
  get #refusalCost(): number {
    return 1 + Math.max(0, this.#waitResolutionMs - this.#madeUpMs) / UNSTATED_PAUSE_MS;
  }

  /**
   * Idle time that costs nothing. A bucket and a fixed window make up for it as far as permits are saved up. A sliding window repeats the
   * gap, and a window that opens with a call opens later: there it is a small share of the window.
   */
  get #madeUpMs(): number {
    const { selected } = this.#modelSelector;
    switch (selected?.kind) {
      case 'bucket':
      case 'fixed-window':
        return (selected.burst * 1000) / selected.rate;
      case 'sliding-window':
      case 'first-call-window':
        return selected.windowMs * NEGLIGIBLE_SHARE;
      default:
        return 0;
    }
  }

  /** A rate that the application does not use proves nothing. */
  #isInUse(waitedFor: boolean): boolean {
    return waitedFor || !this.#options.learning.growsOnlyWhenUsed;
  }

  #recordResponse(now: number, grant: PermitGrant): void {
    this.#callTracker.recordResponse(now, grant);
    if (grant.isProbeCall) this.#limitProbe.recordProbeCallEnded();
  }

  /** Returns true when the refusal is taken for jitter: the selected model stays. */
  #tolerateRefusal(now: number, grant: PermitGrant): boolean {
    const { selected } = this.#modelSelector;
    if (this.#phase !== 'tracking' || grant.isPauseProbe || selected === undefined) return false;
    const { bucketToleratedRefusals, otherToleratedRefusals, toleratedRefusalFactor } = this.#options.learning;
    const maxUnexpected = selected.kind === 'bucket' ? bucketToleratedRefusals : otherToleratedRefusals;
    if (!selected.tolerateRefusal(now, maxUnexpected, toleratedRefusalFactor)) return false;
    if (selected.kind === 'concurrency') this.#modelSelector.correctSelected(this.#callTracker.countRefused(grant));
    return true;
  }

  #evaluateRefusal(now: number, grant: PermitGrant): void {
    const before = this.#modelSelector.selected;
    const evidence = this.#callTracker.countRefused(grant);
    if (this.#phase === 'unlimited') {
      this.#changeDetector.start(now);
      this.#modelSelector.replayAccepted(this.#callTracker.notRefused, evidence);
    }
    this.#modelSelector.recordRefused(evidence);
    if (!this.#modelSelector.isConsistent) {
      this.#recordContradiction(now);
      this.#modelSelector.recordRefused(evidence);
    }
    const isExplained = before?.isConsistent === true && this.#modelSelector.selected !== undefined;
    this.#limitProbe.scheduleAfterRefusal(now, !isExplained, this.#refusalCost);
  }

  /** Keeps the fallback rate ready, in case that no model is selected after this refusal. */
  #decreaseFallbackRate(now: number, grant: PermitGrant, rate: number, pausedUntil: number): void {
    // Nothing is accepted during a pause, and that says nothing about the rate.
    const sinceMs = now - Math.max(this.#lastDecreaseAt, pausedUntil);
    const minMs = pausedUntil > this.#lastDecreaseAt && grant.rate !== Infinity ? 100 : 500;
    const withinMs = Math.max(minMs, Math.min(5000, sinceMs));
    const acceptedRate = this.#callTracker.recentCallsPerSecond(now, withinMs);
    this.#lastDecreaseAt = now;
    if (this.#phase === 'unlimited')
      this.#fallbackRate.restart(
        Math.max(MIN_INITIAL_RATE, this.#callTracker.recentCallsPerSecond(now, 2000) * INITIAL_RATE_SHARE),
      );
    else if (!grant.isPauseProbe)
      this.#fallbackRate.decrease(this.#phase === 'tracking' ? rate : grant.rate, acceptedRate, this.#refusalCost);
    else if (this.#phase !== 'tracking') this.#fallbackRate.decreaseAfterProbe();
  }

  /** @param rate permits per second to continue with when tracking ends without a refusal */
  #selectModel(now: number, rate: number, isRefusal = false): void {
    const minExplained = Math.max(this.#changeDetector.contradictionLevel, this.#options.learning.minExplainedRefusals);
    const isWaitLong = this.#statedWaitMs > LONG_WAIT_ROUND_TRIPS * this.#callTracker.roundTripMs;
    const minInFlight = isWaitLong ? Math.max(minExplained, MIN_EXPLAINED_DESPITE_WAIT) : minExplained;
    const best = this.#modelSelector.selectBest(now, minExplained, minInFlight);
    if (this.#phase === 'probing' && !isRefusal) return;
    if (best === undefined && this.#phase === 'tracking' && !isRefusal) this.#fallbackRate.continueFrom(rate);
    this.#phase = best === undefined ? 'fallback' : 'tracking';
  }

  #recordContradiction(now: number): void {
    if (this.#changeDetector.recordContradiction(now)) this.#limitProbe.recordLimitChange(now);
    this.#modelSelector.reset();
  }

  #increaseRate(now: number, grant: PermitGrant): void {
    const isInUse = this.#isInUse(grant.isWaitedFor);
    if (this.#phase === 'probing') {
      const hasNoModel = this.#modelSelector.selected === undefined;
      this.#limitProbe.recordAccepted(now, grant.isProbeCall, isInUse, hasNoModel);
    } else if (this.#phase === 'fallback' && isInUse)
      this.#fallbackRate.increase(1000 / grant.rate, 1 + this.#changeDetector.contradictionLevel);
  }
}
