/**
 * Counts how often every model was contradicted (pure). A contradiction after a long time without one comes from a limit that was
 * changed; contradictions in quick succession come from a limiter that no model describes.
 */

/** After this time without a contradiction, the next one comes from a changed limit. */
const MIN_STABLE_MS = 30_000;
/** After this time, earlier contradictions no longer count. */
const RESET_AFTER_MS = 300_000;
/** After a change, calls under the old limit still lie in the longer windows and look like limits of their own. */
const LEVEL_AFTER_CHANGE = 3;
const MAX_LEVEL = 5;

/** The contradiction level makes the selection of a model stricter. */
export class ChangeDetector {
  #level = 0;
  #lastContradictionAt = -Infinity;

  /** 0 to 5: refusals in a row that a model must have explained before it is selected. */
  get contradictionLevel(): number {
    return Math.min(MAX_LEVEL, this.#level);
  }

  /** The models have begun to learn. */
  start(now: number): void {
    this.#lastContradictionAt = now;
  }

  /** All models are inconsistent. @returns true when the limit has probably changed */
  recordContradiction(now: number): boolean {
    const stableMs = now - this.#lastContradictionAt;
    this.#level = stableMs > RESET_AFTER_MS ? LEVEL_AFTER_CHANGE : this.#level + 1;
    this.#lastContradictionAt = now;
    return stableMs > MIN_STABLE_MS;
  }
}
