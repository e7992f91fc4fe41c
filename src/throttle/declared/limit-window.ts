/**
 * When a call stops to count for a declared limit (pure, but for the time zones of Intl). A sliding window counts in steps of a hundredth
 * of its length, so that a call counts at most one step too long. A calendar window ends with the local date, or with the local month: with
 * a repeated hour a day has 25 hours, with a skipped one 23. Instants are epoch milliseconds.
 */
import type { DeclaredLimit } from './declared-limit.ts';

const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const MONTH = '1mo';
const MONTH_MS = 30 * UNIT_MS.d;
const SLIDING_STEPS = 100;

/** The clocks may differ by so much; in a short window by this part of it. */
const CLOCK_ERROR_MS = 2000;
const CLOCK_ERROR_PART = 0.02;
/** Resets are stated in whole seconds; more than the longest offset is another window, or another time zone. */
const MIN_OFFSET_MS = 1500;
const MAX_OFFSET_MS = 600_000;
/** Windows shorter than this are not adjusted: whole seconds say too little. */
const MIN_ADJUSTED_MS = UNIT_MS.h;

/** @throws RangeError when `per` is none of the forms of the configuration */
export function createLimitWindow({ per, window, timeZone }: DeclaredLimit): LimitWindow {
  const lengthMs = periodMs(per);
  if (window === 'sliding') return new LimitWindow(lengthMs);
  if (per === MONTH || per === '1d') return new LimitWindow(lengthMs, localWindowEnd(per, timeZone));
  return new LimitWindow(lengthMs, (at) => (Math.floor(at / lengthMs) + 1) * lengthMs);
}

/** Milliseconds of a period such as `10s` or `1mo`; a month has 30 days. */
export function periodMs(per: string): number {
  if (per === MONTH) return MONTH_MS;
  const unitMs = UNIT_MS[per.at(-1) as keyof typeof UNIT_MS] as number | undefined;
  const lengthMs = Number(per.slice(0, -1)) * (unitMs ?? NaN);
  if (!(lengthMs > 0)) throw new RangeError(`not a period: ${per}`);
  return lengthMs;
}

export class LimitWindow {
  /** Milliseconds; those of a calendar day or month are about right. */
  readonly lengthMs: number;
  readonly #findEnd: ((at: number) => number) | undefined;
  readonly #clockErrorMs: number;
  /** How much later than by our clock the upstream's windows end. */
  #offsetMs = 0;
  /** The last window end that was looked up, and from when on it is known to hold. */
  #end = -Infinity;
  #knownFrom = Infinity;

  /** @param findEnd when the calendar window of an instant ends. Default: the window slides */
  constructor(lengthMs: number, findEnd?: (at: number) => number) {
    this.lengthMs = lengthMs;
    this.#findEnd = findEnd;
    this.#clockErrorMs = Math.min(CLOCK_ERROR_MS, lengthMs * CLOCK_ERROR_PART);
  }

  /**
   * When a call that the upstream counts at `at` stops to count. Shortly before the end of a calendar window this is the end of the next one:
   * by the upstream's clock the call may belong to that.
   */
  expiryAt(at: number): number {
    const end = this.endOf(at + this.#clockErrorMs);
    if (end !== undefined) return end + this.#clockErrorMs;
    const stepMs = this.lengthMs / SLIDING_STEPS;
    return (Math.floor(at / stepMs) + 1) * stepMs + this.lengthMs;
  }

  /** When the calendar window of `at` ends; undefined for a sliding one. */
  endOf(at: number): number | undefined {
    if (this.#findEnd === undefined) return undefined;
    const shifted = at - this.#offsetMs;
    if (shifted >= this.#end || shifted < this.#knownFrom) {
      this.#end = this.#findEnd(shifted);
      this.#knownFrom = shifted;
    }
    return this.#end + this.#offsetMs;
  }

  /** The upstream's calendar window of `at` ends then, as it has stated. Ignored where that is no matter of clocks. */
  adjustEnd(at: number, statedEnd: number): void {
    const end = this.endOf(at);
    if (end === undefined) return;
    const offsetMs = statedEnd - (end - this.#offsetMs);
    const isClock = this.lengthMs >= MIN_ADJUSTED_MS && Math.abs(offsetMs) <= MAX_OFFSET_MS;
    if (isClock && Math.abs(offsetMs - this.#offsetMs) > MIN_OFFSET_MS)
      this.#offsetMs = Math.round(offsetMs / 1000) * 1000;
  }
}

const HOUR_MS = UNIT_MS.h;

/** The first instant after `at` with another local date or month: windows end where the calendar says, also when clocks are changed before. */
function localWindowEnd(per: string, timeZone: string): (at: number) => number {
  const parts = per === MONTH ? ({ month: 'numeric' } as const) : ({ month: 'numeric', day: 'numeric' } as const);
  const format = new Intl.DateTimeFormat('en', { timeZone, calendar: 'gregory', year: 'numeric', ...parts });
  const stepMs = per === MONTH ? 24 * HOUR_MS : HOUR_MS;
  return (at) => {
    const label = format.format(at);
    let before = at;
    let after = at + stepMs;
    while (format.format(after) === label) [before, after] = [after, after + stepMs];
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (format.format(middle) === label) before = middle;
      else after = middle;
    }
    return Math.ceil(after);
  };
}
