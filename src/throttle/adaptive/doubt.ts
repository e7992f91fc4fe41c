/**
 * How often what was believed has turned out wrong (pure). A belief that held for long and does so no longer comes of a limit
 * that was changed; beliefs that fall one after the other come of a limiter that none of them describes.
 */

/** Contradictions further apart than this come of a changed limit. */
const CALM_MS = 30_000;
/** A longer peace than this makes up for all before. */
const FORGOTTEN_MS = 300_000;
/** What a changed limit leaves of the old one in the longer windows looks like limits of their own. */
const CHANGED = 3;
const MOST = 5;

/** Rises with each contradiction. */
export class Doubt {
  #level = 0;
  #at = -Infinity;

  /** From 0 to 5: refusals in a row that an idea must have explained before it is believed again. */
  get level(): number {
    return Math.min(MOST, this.#level);
  }

  /** From here on there are beliefs that can be contradicted. */
  begin(now: number): void {
    this.#at = now;
  }

  /** Nothing explains what was seen. True when the limit has probably been changed. */
  contradicted(now: number): boolean {
    const peaceMs = now - this.#at;
    this.#level = peaceMs > FORGOTTEN_MS ? CHANGED : this.#level + 1;
    this.#at = now;
    return peaceMs > CALM_MS;
  }
}
