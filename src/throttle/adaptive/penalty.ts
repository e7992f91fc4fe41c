/**
 * Whether a refusal closes the limit for a fixed time, a penalty (pure). A window opens again when it ends and a bucket when enough has
 * leaked away: they are closed for different times after different times in which they were open.
 */

/** A time that was at least and at most so long. */
export interface Span {
  readonly leastMs: number;
  readonly mostMs: number;
}

/** Newest closures that must have a closed time in common. */
const MIN_EQUAL = 3;
const KEPT = 4;
/** So many of them must have been probed in vain, at least up to this share of it. */
const MIN_PAUSE_PROBED = 2;
const PAUSE_PROBED_SHARE = 1 / 3;
const MIN_PENALTY_MS = 800;
/** How exactly the closed time must be known. */
const MAX_RATIO = 1.6;
/** The first wait for a known penalty ends at this share of it: what is accepted then was closed for another reason. */
const DOUBTED_SHARE = 0.8;
const CONFIRMING_SHARE = 0.75;
/** After so many closures that were not probed in vain it is doubted again. */
const USES_AFTER_CONFIRMATION = 8;

export class Penalty {
  #closed: Span[] = [];
  #cycles: Span[] = [];
  /** How long a refusal closes the limit; undefined while closures differ, are short or few. Written here only. */
  known: Span | undefined;
  #usesLeft = 0;

  /** From a refusal to the first call that may be accepted. */
  get expectedMs(): number {
    const { leastMs, mostMs } = this.known ?? { leastMs: 0, mostMs: 0 };
    return this.#usesLeft > 0 ? (leastMs + mostMs) / 2 : DOUBTED_SHARE * leastMs;
  }

  /**
   * A closure has ended.
   * @param closed from its refusal
   * @param cycle from the end of the closure before it
   */
  record(closed: Span, cycle: Span): void {
    if (this.known !== undefined) {
      // A longer one was refused a second time, by the limit itself.
      if (closed.leastMs > this.known.mostMs) return;
      if (closed.leastMs >= CONFIRMING_SHARE * this.known.leastMs) this.#usesLeft = USES_AFTER_CONFIRMATION;
      else this.#usesLeft--;
      this.known = overlap([this.known, closed]);
      if (this.known.leastMs <= this.known.mostMs) return;
      this.known = undefined;
      this.#closed = [];
      this.#cycles = [];
    }
    this.#closed = [...this.#closed, closed].slice(-KEPT);
    this.#cycles = [...this.#cycles, cycle].slice(-KEPT);
    const common = overlap(this.#closed);
    const pauseProbed = this.#closed.filter(({ leastMs }) => leastMs >= PAUSE_PROBED_SHARE * common.mostMs);
    if (
      this.#closed.length < MIN_EQUAL ||
      pauseProbed.length < MIN_PAUSE_PROBED ||
      common.leastMs < MIN_PENALTY_MS ||
      common.leastMs > common.mostMs
    )
      return;
    const cycles = overlap(this.#cycles);
    if (common.mostMs > MAX_RATIO * common.leastMs || cycles.leastMs <= cycles.mostMs) return;
    this.known = common;
    this.#usesLeft = 0;
  }
}

function overlap(spans: readonly Span[]): Span {
  return {
    leastMs: Math.max(...spans.map(({ leastMs }) => leastMs)),
    mostMs: Math.min(...spans.map(({ mostMs }) => mostMs)),
  };
}
