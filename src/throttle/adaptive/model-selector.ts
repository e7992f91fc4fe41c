/**
 * The ideas of how the upstream limits, and the one that is believed (pure). All see the same evidence; one that is contradicted
 * is dropped, and of those that explain everything the one that has foreseen most refusals is believed, of equals the one with
 * the shortest window, since a mistake about that shows soonest.
 */
import type { CallLog } from './call-log.ts';
import { BucketModel } from './bucket-model.ts';
import type { Evidence, LimiterModel } from './limiter-model.ts';
import type { LearningParameters } from './learning-parameters.ts';
import { ConcurrencyModel } from './concurrency-model.ts';
import { WindowModel, type WindowKind } from './window-model.ts';

/** Calls looked at again when the first refusal makes the past worth knowing. */
const MAX_REPLAYED_CALLS = 512;

/** The ideas, those that still stand, and the one that is believed. */
export class ModelSelector {
  readonly #models: readonly LimiterModel[];
  #consistent: LimiterModel[];
  #selected: LimiterModel | undefined;
  #selectedAt = NaN;
  #refusedAt = NaN;
  #isClosed = false;

  constructor(models: readonly LimiterModel[]) {
    this.#models = models;
    this.#consistent = [...models];
  }

  get models(): readonly LimiterModel[] {
    return this.#models;
  }

  get selected(): LimiterModel | undefined {
    return this.#selected;
  }

  /** Monotonic instant; of the last refusal while nothing is believed. */
  get selectedAt(): number {
    return this.#selected === undefined ? this.#refusedAt : this.#selectedAt;
  }

  /** False when nothing explains what was seen. */
  get isConsistent(): boolean {
    return this.#consistent.length > 0 || this.#models.length === 0;
  }

  recordAccepted(evidence: Evidence): void {
    this.#recordReopening(evidence);
    let dropped = false;
    for (const model of this.#consistent) {
      model.recordAccepted(evidence);
      dropped ||= !model.isConsistent;
    }
    if (dropped) this.#removeInconsistent();
  }

  recordRefused(evidence: Evidence): void {
    this.#refusedAt = evidence.at;
    this.#isClosed = true;
    for (const model of this.#consistent) model.recordRefused(evidence);
    this.#removeInconsistent();
  }

  /** Calls that were accepted before anything was known of a limit. */
  replayAccepted(accepted: CallLog, evidence: Evidence): void {
    const step = Math.max(1, Math.floor(accepted.size / MAX_REPLAYED_CALLS));
    for (let index = 0; index < accepted.size; index += step) {
      const at = accepted.at(index);
      if (at < evidence.at) this.recordAccepted({ ...evidence, at, inFlight: 0 });
    }
  }

  /** What is believed is not given up for this refusal, and learns from it all the same. */
  correctSelected(evidence: Evidence): void {
    this.#selected?.recordRefused(evidence);
    this.#removeInconsistent();
    this.#selected?.onSelected();
  }

  /** @param leastAgreeing refusals that an idea must have explained in a row */
  selectBest(now: number, leastAgreeing: number): LimiterModel | undefined {
    let best: LimiterModel | undefined;
    for (const model of this.#consistent)
      if (model.isUsable && model.explainedRefusals >= leastAgreeing && isBetterModel(model, best)) best = model;
    best?.onSelected();
    this.select(best, now);
    return best;
  }

  select(model: LimiterModel | undefined, now: number): void {
    if (model !== this.#selected) this.#selectedAt = now;
    this.#selected = model;
  }

  /** Everything is possible again. */
  reset(): void {
    for (const model of this.#models) model.reset();
    this.#consistent = [...this.#models];
    this.#selected = undefined;
  }

  #recordReopening({ at, jitterMs }: Evidence): void {
    if (!this.#isClosed || at <= this.#refusedAt + 2 * jitterMs) return;
    this.#isClosed = false;
    for (const model of this.#consistent) model.recordReopening(this.#refusedAt, at, jitterMs);
    this.#removeInconsistent();
  }

  #removeInconsistent(): void {
    this.#consistent = this.#consistent.filter((model) => model.isConsistent);
    if (this.#selected !== undefined && !this.#selected.isConsistent) this.#selected = undefined;
  }
}

/** @param accepted calls not known to be refused; @param sent all calls */
export function createModelSelector(parameters: LearningParameters, accepted: CallLog, sent: CallLog): ModelSelector {
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
  if (has('concurrency')) models.push(new ConcurrencyModel(sent));
  return new ModelSelector(models);
}

function isBetterModel(model: LimiterModel, than: LimiterModel | undefined): boolean {
  if (than === undefined) return true;
  if (model.explainedRefusals !== than.explainedRefusals) return model.explainedRefusals > than.explainedRefusals;
  return model.windowMs < than.windowMs;
}
