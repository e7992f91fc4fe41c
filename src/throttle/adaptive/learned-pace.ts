/**
 * `auto`: a rate, a number in flight and the instants to stay away from, learned from what is accepted and refused (pure).
 *   free       nothing has been refused: nothing is paced
 *   holding    an idea of the limit is believed: its rate is used, and its window is not overdrawn
 *   trying     the believed limit is exceeded carefully, so that a raised one is found (trial.ts)
 *   searching  nothing explains the refusals: a rate that only they shape (search.ts)
 * A refusal leads to holding or searching; acceptance that no idea explains, to trying for more. An unforeseen refusal or two of
 * an idea that has foreseen others is put down to jitter: less of its rate is used for a while.
 */
import type { Grant } from '../pacing/grant.ts';
import type { Pace } from '../pacing/pace.ts';
import type { LearnedLimit } from '../throttle.ts';
import { createBeliefs, type LimiterBeliefs } from './beliefs.ts';
import { Calls } from './calls.ts';
import { Doubt } from './doubt.ts';
import { describeLimit, type LearnedModel, parseLearnedModel, restoreModel, takeSnapshot } from './learned-model.ts';
import type { LearningParameters } from './parameters.ts';
import { Search } from './search.ts';
import { Trial } from './trial.ts';

/** A first rate rests on thin evidence. */
const FIRST_SHARE = 0.7;
const LEAST_FIRST_RATE = 2;
const LEAST_RATE = 1 / 3600;
/** What an earlier process has learned is tried after this. */
const RESTORED_TRIAL_MS = 5_000;

/** What a learned pace is made from. */
export interface LearnedPaceOptions {
  readonly maxInFlight: number;
  /** Permits per second that are never exceeded; absent: none. */
  readonly maxRate?: number | undefined;
  readonly learning: LearningParameters;
}

type Phase = 'free' | 'holding' | 'trying' | 'searching';

/** The pace of `auto`. */
export class LearnedPace implements Pace {
  readonly #options: LearnedPaceOptions;
  readonly #calls: Calls;
  readonly #beliefs: LimiterBeliefs;
  readonly #trial: Trial;
  readonly #search: Search;
  #phase: Phase = 'free';
  #inFlightLimit: number;
  #cutAt = -Infinity;
  readonly #doubt = new Doubt();

  constructor(options: LearnedPaceOptions) {
    this.#options = options;
    const { learning, maxInFlight } = options;
    this.#inFlightLimit = Math.min(4, maxInFlight);
    this.#calls = new Calls(learning.jitterDeviations);
    this.#beliefs = createBeliefs(learning, this.#calls.accepted, this.#calls.sent);
    this.#trial = new Trial(learning);
    this.#search = new Search(LEAST_FIRST_RATE, learning.cutShare);
  }

  get rate(): number {
    return Math.min(this.#rate, this.#options.maxRate ?? Infinity);
  }

  /** Permits per second without a trial that has not succeeded yet. */
  get settledRate(): number {
    return this.#phase === 'trying' && this.#beliefs.believed ? Math.min(this.rate, this.#heldRate) : this.rate;
  }

  get burst(): number {
    return this.#phase === 'holding' ? (this.#beliefs.believed?.burst ?? 1) : 1;
  }

  get inFlightLimit(): number {
    const believed = this.#beliefs.believed;
    if (believed?.kind !== 'concurrency') return this.#inFlightLimit;
    const more = this.#phase === 'trying' ? 1 + Math.floor(this.#trial.accepted / 20) : 0;
    return Math.min(this.#inFlightLimit, Math.max(1, believed.limit + more));
  }

  get limitsSlots(): boolean {
    return this.#beliefs.believed?.kind === 'concurrency';
  }

  get isConfident(): boolean {
    return this.#phase === 'holding' && this.#beliefs.believed?.isTrusted === true;
  }

  get abreast(): number {
    return this.#calls.pending.size;
  }

  openAt(now: number, isPaused: boolean): number {
    const believed = this.#beliefs.believed;
    if (believed === undefined) return -Infinity;
    if (this.#phase === 'trying' && !isPaused) return this.#trial.opensAt(now);
    return Math.min(Math.max(believed.opensAt(now, this.#calls.jitterMs), this.#calls.scoutedUntil), this.#trial.dueAt);
  }

  granted(now: number, waitedFor: boolean): boolean {
    const believed = this.#beliefs.believed;
    this.#calls.granted(now, this.#phase === 'holding' && believed?.isOpening(now, this.#calls.jitterMs) === true);
    const isBeyond =
      this.#phase === 'trying' && believed?.isFull(now, this.#calls.jitterMs, this.#calls.pending) === true;
    if (isBeyond) this.#trial.sentBeyond(now);
    this.#trial.countCall(now);
    const inUse = waitedFor || !this.#options.learning.growsInUseOnly;
    if (this.#phase === 'holding' && inUse && now >= this.#trial.dueAt) {
      this.#trial.begin(this.#heldRate);
      this.#phase = 'trying';
    }
    return isBeyond;
  }

  accepted(now: number, grant: Grant, fresh: boolean): void {
    this.#answered(now, grant);
    if (this.#inFlightLimit < this.#options.maxInFlight) this.#inFlightLimit++;
    if (this.#phase === 'free') return;
    const rate = this.#rate;
    if (this.#phase === 'holding') this.#beliefs.believed?.recover(now);
    this.#beliefs.accepted(this.#calls.judge(grant, true));
    if (!this.#beliefs.isExplained) {
      this.#contradict(now);
      this.#trial.goOnFrom(Number.isFinite(rate) ? rate : this.#calls.seenPerSecond(now, 2000));
      this.#phase = 'trying';
      return;
    }
    if (this.#beliefs.believed === undefined) this.#choose(now, rate);
    if (fresh) this.#grow(now, grant);
  }

  refused(now: number, grant: Grant): void {
    this.#answered(now, grant);
    if (this.#phase === 'trying') this.#trial.end();
    const rate = this.#rate;
    this.#calls.refused(grant);
    if (this.#survives(now, grant)) return;
    this.#judgeRefusal(now, grant);
    this.#slowDown(now, grant, rate);
    this.#choose(now, this.#search.rate, true);
  }

  refusedLate(now: number, grant: Grant): void {
    this.#answered(now, grant);
    this.#calls.refused(grant);
  }

  ended(grant: Grant): void {
    this.#calls.ended(grant);
    if (grant.beyond) this.#trial.beyondEnded();
  }

  withdrawn(grant: Grant): void {
    this.#calls.withdrawn(grant);
    if (grant.beyond) this.#trial.beyondEnded();
  }

  learned(wallAt: (at: number) => number): LearnedLimit | undefined {
    if (this.#phase === 'free') return undefined;
    return describeLimit(this.#beliefs.believed, this.rate, wallAt(this.#beliefs.believedSince));
  }

  snapshot(now: number): LearnedModel | undefined {
    const believed = this.#beliefs.believed;
    return believed === undefined ? undefined : takeSnapshot(believed, now);
  }

  restore(now: number, snapshot: unknown, ageMs: number): void {
    const learned = parseLearnedModel(snapshot);
    const model = learned && restoreModel(this.#beliefs, learned, now, ageMs);
    if (model === undefined) return;
    this.#phase = 'holding';
    this.#doubt.begin(now);
    this.#inFlightLimit = this.#options.maxInFlight;
    this.#trial.scheduleFirst(now, RESTORED_TRIAL_MS);
  }

  get #rate(): number {
    if (this.#phase === 'free') return Infinity;
    if (this.#phase === 'searching') return this.#search.rate;
    return this.#phase === 'trying' ? this.#trial.rate : this.#heldRate;
  }

  get #heldRate(): number {
    const believed = this.#beliefs.believed;
    if (believed === undefined) return this.#search.rate;
    const { windowShare, bucketShare } = this.#options.learning;
    const share = believed.kind === 'bucket' ? bucketShare : windowShare;
    return Math.max(LEAST_RATE, believed.rate * believed.margin * share);
  }

  #answered(now: number, grant: Grant): void {
    this.#calls.answered(now, grant);
    if (grant.beyond) this.#trial.beyondEnded();
  }

  /** An idea that has foreseen others is not given up for a refusal that it has not. */
  #survives(now: number, grant: Grant): boolean {
    const believed = this.#beliefs.believed;
    if (this.#phase !== 'holding' || grant.probe || believed === undefined) return false;
    const { bucketStrikes, otherStrikes, strikeShare } = this.#options.learning;
    if (!believed.survives(now, believed.kind === 'bucket' ? bucketStrikes : otherStrikes, strikeShare)) return false;
    if (believed.kind === 'concurrency') this.#beliefs.corrected(this.#calls.judge(grant, false));
    return true;
  }

  #judgeRefusal(now: number, grant: Grant): void {
    const believed = this.#beliefs.believed;
    const evidence = this.#calls.judge(grant, false);
    if (this.#phase === 'free') {
      this.#doubt.begin(now);
      this.#beliefs.recall(this.#calls.accepted, evidence);
    }
    this.#beliefs.refused(evidence);
    if (!this.#beliefs.isExplained) {
      this.#contradict(now);
      this.#beliefs.refused(evidence);
    }
    this.#trial.postpone(now, believed?.stands !== true || this.#beliefs.believed === undefined);
  }

  /** The rate to go by if nothing explains this. */
  #slowDown(now: number, grant: Grant, rate: number): void {
    const seen = this.#calls.seenPerSecond(now, Math.max(500, Math.min(5000, now - this.#cutAt)));
    this.#cutAt = now;
    if (this.#phase === 'free')
      this.#search.restart(Math.max(LEAST_FIRST_RATE, this.#calls.seenPerSecond(now, 2000) * FIRST_SHARE));
    else if (!grant.probe) this.#search.cut(this.#phase === 'holding' ? rate : grant.rate, seen);
    else if (this.#phase !== 'holding') this.#search.cutProbed();
  }

  #choose(now: number, rate: number, afterRefusal = false): void {
    const best = this.#beliefs.choose(now, this.#doubt.level);
    if (this.#phase === 'trying' && !afterRefusal) return;
    if (best === undefined && this.#phase === 'holding' && !afterRefusal) this.#search.goOn(rate);
    this.#phase = best === undefined ? 'searching' : 'holding';
  }

  #contradict(now: number): void {
    if (this.#doubt.contradicted(now)) this.#trial.unsettle(now);
    this.#beliefs.forget();
  }

  #grow(now: number, grant: Grant): void {
    const inUse = grant.waitedFor || !this.#options.learning.growsInUseOnly;
    if (this.#phase === 'trying') this.#trial.grow(now, grant.beyond, inUse, this.#beliefs.believed === undefined);
    else if (this.#phase === 'searching' && inUse) this.#search.grow(1000 / grant.rate, 1 + this.#doubt.level);
  }
}
