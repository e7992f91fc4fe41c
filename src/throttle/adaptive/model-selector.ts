/**
 * All limiter models, and the one in use (pure). Every model sees the same calls, and an inconsistent one is dropped. Of the usable
 * ones the selected model is the one that has explained most refusals in a row; among equals the one with the shortest window, since a
 * wrong choice of that one shows soonest.
 */
import type { CallLog } from './call-log.ts';
import { BucketModel } from './bucket-model.ts';
import type { Evidence, LimiterKind, LimiterModel } from './limiter-model.ts';
import type { LearningParameters } from './learning-parameters.ts';
import { ConcurrencyModel } from './concurrency-model.ts';
import { WindowModel, type WindowKind } from './window-model.ts';

/** Earlier calls that are replayed at the first refusal. */
const MAX_REPLAYED_CALLS = 512;

/** Feeds the models and selects one. */
export class ModelSelector {
  readonly models: readonly LimiterModel[];
  #consistent: readonly LimiterModel[];
  #selected: LimiterModel | undefined;
  #selectedAt = NaN;
  #refusedAt = NaN;
  /** The last call with a known outcome was refused. */
  #isClosed = false;

  constructor(models: readonly LimiterModel[]) {
    this.models = models;
    this.#consistent = models;
  }

  get selected(): LimiterModel | undefined {
    return this.#selected;
  }

  /** Monotonic instant of the selection; of the last refusal while no model is selected. */
  get selectedAt(): number {
    return this.#selected === undefined ? this.#refusedAt : this.#selectedAt;
  }

  /** False when every model is contradicted. */
  get isConsistent(): boolean {
    return this.#consistent.length > 0 || this.models.length === 0;
  }

  recordAccepted(evidence: Evidence): void {
    this.#recordReopening(evidence);
    let isAnyDropped = false;
    for (const model of this.#consistent) {
      model.recordAccepted(evidence);
      isAnyDropped ||= !model.isConsistent;
    }
    if (isAnyDropped) this.#dropInconsistent();
  }

  recordRefused(evidence: Evidence): void {
    this.#refusedAt = evidence.at;
    this.#isClosed = true;
    for (const model of this.#consistent) model.recordRefused(evidence);
    this.#dropInconsistent();
  }

  /** Replays the calls before the first refusal: until then nothing is evaluated. */
  replayAccepted(accepted: CallLog, firstRefusal: Evidence): void {
    const step = Math.max(1, Math.floor(accepted.size / MAX_REPLAYED_CALLS));
    for (let index = 0; index < accepted.size; index += step) {
      const at = accepted.at(index);
      if (at < firstRefusal.at) this.recordAccepted({ ...firstRefusal, at, inFlight: 0 });
    }
  }

  /** Lets the selected model alone learn from a refusal that was tolerated. */
  correctSelected(refusal: Evidence): void {
    this.#selected?.recordRefused(refusal);
    this.#dropInconsistent();
    this.#selected?.onSelected();
  }

  /**
   * @param minExplained refusals in a row that a model must have explained
   * @param minExplainedInFlight the same for a limit in flight
   */
  selectBest(now: number, minExplained: number, minExplainedInFlight = minExplained): LimiterModel | undefined {
    let best: LimiterModel | undefined;
    for (const model of this.#consistent) {
      const atLeast = model.kind === 'concurrency' ? minExplainedInFlight : minExplained;
      if (model.isUsable && model.explainedRefusals >= atLeast && isBetterModel(model, best)) best = model;
    }
    best?.onSelected();
    this.select(best, now);
    return best;
  }

  select(model: LimiterModel | undefined, now: number): void {
    if (model !== this.#selected) this.#selectedAt = now;
    this.#selected = model;
  }

  /** All models are possible again. */
  reset(): void {
    for (const model of this.models) model.reset();
    this.#consistent = this.models;
    this.#selected = undefined;
  }

  #recordReopening({ at, jitterMs }: Evidence): void {
    if (!this.#isClosed || at <= this.#refusedAt + 2 * jitterMs) return;
    this.#isClosed = false;
    for (const model of this.#consistent) model.recordReopening(this.#refusedAt, at, jitterMs);
    this.#dropInconsistent();
  }

  #dropInconsistent(): void {
    this.#consistent = this.#consistent.filter((model) => model.isConsistent);
    if (this.#selected?.isConsistent === false) this.#selected = undefined;
  }
}

/**
 * One model for each kind and window length.
 * @param accepted calls not known to be refused
 * @param sent all calls
 */
export function createModelSelector(parameters: LearningParameters, accepted: CallLog, sent: CallLog): ModelSelector {
  const models: LimiterModel[] = [];
  const has = (kind: LimiterKind): boolean => parameters.kinds.includes(kind);
  const addWindow = (kind: WindowKind, seconds: number, counted: CallLog): void => {
    if (has(kind)) models.push(new WindowModel(kind, seconds * 1000, counted, parameters));
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
