/**
 * The ideas of how the upstream limits, and the one that is believed (pure). All see the same evidence; one that is contradicted
 * is dropped, and of those that explain everything the one that has foreseen most refusals is believed, of equals the one with
 * the shortest window, since a mistake about that shows soonest.
 */
import type { CallLog } from './call-log.ts';
import { BucketModel } from './bucket-model.ts';
import type { Evidence, LimiterModel } from './limiter-model.ts';
import type { LearningParameters } from './parameters.ts';
import { SlotsModel } from './slots-model.ts';
import { WindowModel, type WindowKind } from './window-model.ts';

/** Calls looked at again when the first refusal makes the past worth knowing. */
const PAST_CALLS = 512;

/** The ideas, those that still stand, and the one that is believed. */
export class LimiterBeliefs {
  readonly #all: readonly LimiterModel[];
  #standing: LimiterModel[];
  #believed: LimiterModel | undefined;
  #believedSince = NaN;
  #refusedAt = NaN;
  #isClosed = false;

  constructor(models: readonly LimiterModel[]) {
    this.#all = models;
    this.#standing = [...models];
  }

  get all(): readonly LimiterModel[] {
    return this.#all;
  }

  get believed(): LimiterModel | undefined {
    return this.#believed;
  }

  /** Monotonic instant; of the last refusal while nothing is believed. */
  get believedSince(): number {
    return this.#believed === undefined ? this.#refusedAt : this.#believedSince;
  }

  /** False when nothing explains what was seen. */
  get isExplained(): boolean {
    return this.#standing.length > 0 || this.#all.length === 0;
  }

  accepted(evidence: Evidence): void {
    this.#noteReopening(evidence);
    let dropped = false;
    for (const model of this.#standing) {
      model.accepted(evidence);
      dropped ||= !model.stands;
    }
    if (dropped) this.#drop();
  }

  refused(evidence: Evidence): void {
    this.#refusedAt = evidence.at;
    this.#isClosed = true;
    for (const model of this.#standing) model.refused(evidence);
    this.#drop();
  }

  /** Calls that were accepted before anything was known of a limit. */
  recall(accepted: CallLog, evidence: Evidence): void {
    const step = Math.max(1, Math.floor(accepted.size / PAST_CALLS));
    for (let index = 0; index < accepted.size; index += step) {
      const at = accepted.at(index);
      if (at < evidence.at) this.accepted({ ...evidence, at, abreast: 0 });
    }
  }

  /** What is believed is not given up for this refusal, and learns from it all the same. */
  corrected(evidence: Evidence): void {
    this.#believed?.refused(evidence);
    this.#drop();
    this.#believed?.aim();
  }

  /** @param leastAgreeing refusals that an idea must have explained in a row */
  choose(now: number, leastAgreeing: number): LimiterModel | undefined {
    let best: LimiterModel | undefined;
    for (const model of this.#standing)
      if (model.usable && model.agreeing >= leastAgreeing && isBetter(model, best)) best = model;
    best?.aim();
    this.believe(best, now);
    return best;
  }

  believe(model: LimiterModel | undefined, now: number): void {
    if (model !== this.#believed) this.#believedSince = now;
    this.#believed = model;
  }

  /** Everything is possible again. */
  forget(): void {
    for (const model of this.#all) model.forget();
    this.#standing = [...this.#all];
    this.#believed = undefined;
  }

  #noteReopening({ at, jitterMs }: Evidence): void {
    if (!this.#isClosed || at <= this.#refusedAt + 2 * jitterMs) return;
    this.#isClosed = false;
    for (const model of this.#standing) model.reopened(this.#refusedAt, at, jitterMs);
    this.#drop();
  }

  #drop(): void {
    this.#standing = this.#standing.filter((model) => model.stands);
    if (this.#believed !== undefined && !this.#believed.stands) this.#believed = undefined;
  }
}

/** @param accepted calls not known to be refused; @param sent all calls */
export function createBeliefs(parameters: LearningParameters, accepted: CallLog, sent: CallLog): LimiterBeliefs {
  const models: LimiterModel[] = [];
  const has = (kind: LimiterModel['kind']): boolean => parameters.kinds.includes(kind);
  const addWindow = (kind: WindowKind, seconds: number, log: CallLog): void => {
    if (has(kind)) models.push(new WindowModel(kind, seconds * 1000, log, parameters));
  };
  for (const seconds of parameters.windowSeconds) {
    addWindow('sliding-window', seconds, accepted);
    addWindow('fixed-window', seconds, accepted);
    addWindow('first-call-window', seconds, accepted);
    if (parameters.countsRefused) addWindow('sliding-window', seconds, sent);
  }
  if (has('bucket')) models.push(new BucketModel(accepted));
  if (has('concurrency')) models.push(new SlotsModel(sent));
  return new LimiterBeliefs(models);
}

function isBetter(model: LimiterModel, than: LimiterModel | undefined): boolean {
  if (than === undefined) return true;
  if (model.agreeing !== than.agreeing) return model.agreeing > than.agreeing;
  return model.windowMs < than.windowMs;
}
