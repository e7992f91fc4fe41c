/**
 * The share of a learned rate that is used (pure): it falls at refusals that the limit does not explain, which come from jitter or from other
 * clients, and rises again after enough accepted calls.
 */

/** Multiplies the margin at an unexpected refusal below a trusted limit. */
const TOLERATED_REFUSAL_FACTOR = 0.98;
/** Before a limit is trusted the margin falls faster, and rises again by this share of what is missing. */
const UNTRUSTED_FACTOR = 0.95;
const UNTRUSTED_RECOVERY_CALLS = 10;
const UNTRUSTED_RECOVERY_SHARE = 0.3;
/** At this margin the refusals come from a lowered limit. */
const CHANGED_MARGIN = 0.8;
const MIN_MARGIN = 0.3;
/** Accepted calls, and time, that make up for one unexpected refusal. */
const RECOVERY_CALLS = 50;
const RECOVERY_MS = 5_000;
const RECOVERY_FACTOR = 1.008;

export class RateMargin {
  share = 1;
  #acceptedInARow = 0;
  #acceptedSinceAt = -Infinity;
  #reducedSinceAt = Infinity;

  set(share: number): void {
    this.share = share;
    this.#reducedSinceAt = Infinity;
  }

  /**
   * An unexpected refusal.
   * @param cost of the refusal: it counts as so many
   * @returns since when refusals came from a lowered limit; undefined while they need not
   */
  reduce(now: number, isTrusted: boolean, cost: number): number | undefined {
    this.#acceptedInARow = 0;
    // Before a limit is trusted, refusals follow each other because it is not known yet.
    if (this.share === 1 || this.#reducedSinceAt === Infinity) this.#reducedSinceAt = isTrusted ? now : Infinity;
    this.#acceptedSinceAt = now;
    this.share = Math.max(MIN_MARGIN, this.share * (isTrusted ? TOLERATED_REFUSAL_FACTOR : UNTRUSTED_FACTOR) ** cost);
    return this.share <= CHANGED_MARGIN && this.#reducedSinceAt <= now ? this.#reducedSinceAt : undefined;
  }

  /** @param cost of a refusal: as many times more accepted calls are needed */
  recover(now: number, isTrusted: boolean, cost: number): void {
    this.#acceptedInARow++;
    if (!isTrusted) {
      if (this.#acceptedInARow < UNTRUSTED_RECOVERY_CALLS * cost) return;
      this.#acceptedInARow = 0;
      this.share += (1 - this.share) * UNTRUSTED_RECOVERY_SHARE;
      return;
    }
    if (this.#acceptedInARow < RECOVERY_CALLS * cost || now - this.#acceptedSinceAt < RECOVERY_MS * cost) return;
    this.#acceptedInARow = 0;
    this.#acceptedSinceAt = now;
    this.share = Math.min(1, this.share * RECOVERY_FACTOR);
  }
}
