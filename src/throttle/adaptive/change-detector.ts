/**
 * How often what was believed has turned out wrong (pure). A belief that held for long and does so no longer comes of a limit
 * that was changed; beliefs that fall one after the other come of a limiter that none of them describes.
 */

/** Contradictions further apart than this come of a changed limit. */
const MIN_STABLE_MS = 30_000;
/** A longer peace than this makes up for all before. */
const RESET_AFTER_MS = 300_000;
/** What a changed limit leaves of the old one in the longer windows looks like limits of their own. */
const LEVEL_AFTER_CHANGE = 3;
const MAX_LEVEL = 5;

/** Rises with each contradiction. */
export class ChangeDetector {
  #level = 0;
  #lastContradictionAt = -Infinity;

  /** From 0 to 5: refusals in a row that an idea must have explained before it is believed again. */
  get contradictionLevel(): number {
    return Math.min(MAX_LEVEL, this.#level);
  }

  /** From here on there are beliefs that can be contradicted. */
  start(now: number): void {
    this.#lastContradictionAt = now;
  }

  /** Nothing explains what was seen. True when the limit has probably been changed. */
  recordContradiction(now: number): boolean {
    const peaceMs = now - this.#lastContradictionAt;
    this.#level = peaceMs > RESET_AFTER_MS ? LEVEL_AFTER_CHANGE : this.#level + 1;
    this.#lastContradictionAt = now;
    return peaceMs > MIN_STABLE_MS;
  }
}
