/**
 * A token bucket of permits (pure; the shape of golang.org/x/time/rate). It keeps an instant instead of a level (GCRA), so that
 * the instant it names and the instant at which it grants are the same number.
 */

/** The bucket here, or one that a fleet wraps. A permit that was taken stays taken unless it is given back. */
export interface PermitSource {
  /** Permits per second; Infinity while unlimited. */
  readonly rate: number;
  /** False while a request waits for the exchange with a fleet and not for a permit. */
  readonly isScarce: boolean;
  tryTake(now: number): boolean;
  /** The instant, not before `from`, at which a permit is available; Infinity when only the fleet can bring one. */
  nextAt(now: number, from?: number): number;
  /** When the one behind `ahead` others is available, as far as that is known. */
  nthAt(now: number, ahead: number): number;
  /** Whole permits available at `now`; Infinity while unlimited. */
  available(now: number): number;
  /** Milliseconds that the one behind `ahead` others waits at least; undefined where `nthAt` is the best estimate. */
  minWaitMs(ahead: number): number | undefined;
  /** A permit taken at `takenAt` was used only now. */
  recordUse(now: number, takenAt: number): void;
  giveBack(now: number): void;
  /** From `now` on permits come at `rate`, and up to `burst` are saved up. */
  setRate(now: number, rate: number, burst: number): void;
}

const JITTER_MS = 5;

/**
 * Permits granted in any interval ≤ burst + rate · interval, without those given back. A permit taken late does not bring the
 * following ones forward beyond the burst. After a clock jump backwards permits continue at the rate.
 */
export class PermitBucket implements PermitSource {
  readonly isScarce = true;
  rate: number;
  #intervalMs: number;
  #burst: number;
  /** When it would be full again without further permits. */
  #fullAt = -Infinity;
  #lastAt = -Infinity;
  /** As `#fullAt`, computed from when permits were used. */
  #usedFullAt = -Infinity;

  /**
   * @param rate permits per second, above 0; Infinity grants always
   * @param burst permits that may be saved up, at least 1
   * @throws RangeError on values outside these
   */
  constructor(rate: number, burst: number) {
    if (!(burst >= 1)) throw new RangeError('burst must be at least 1');
    this.rate = rate;
    this.#intervalMs = intervalOf(rate);
    this.#burst = burst;
  }

  tryTake(now: number): boolean {
    if (this.#intervalMs === 0) return true;
    this.#adjustToClock(now);
    if (this.nthAt(now, 0) > now) return false;
    this.#fullAt = Math.max(this.#fullAt, now) + this.#intervalMs;
    return true;
  }

  nextAt(now: number, from = now): number {
    this.#adjustToClock(now);
    return this.nthAt(from, 0);
  }

  nthAt(from: number, ahead: number): number {
    return Math.max(from, Math.max(this.#fullAt, from) - (this.#burst - 1 - ahead) * this.#intervalMs);
  }

  available(now: number): number {
    return this.#intervalMs === 0 ? Infinity : Math.floor(this.#permitsAt(now));
  }

  minWaitMs(): undefined {
    return undefined;
  }

  /**
   * The connection may have been opened first: the next permits keep their distance from the use. A few milliseconds of jitter
   * do not count.
   */
  recordUse(now: number, takenAt: number): void {
    if (this.#intervalMs === 0) return;
    const usedAt = now - takenAt > JITTER_MS ? now : takenAt;
    this.#usedFullAt = Math.max(this.#usedFullAt, usedAt) + this.#intervalMs;
    this.#fullAt = Math.max(this.#fullAt, this.#usedFullAt);
  }

  /** Never above the burst. */
  giveBack(now: number): void {
    this.#adjustToClock(now);
    this.#fullAt = Math.max(this.#fullAt - this.#intervalMs, now);
  }

  /** After an unlimited time the bucket is empty. */
  setRate(now: number, rate: number, burst: number): void {
    if (rate === this.rate && burst === this.#burst) return;
    this.#adjustToClock(now);
    const level = this.#intervalMs === 0 ? 0 : Math.min(burst, this.#permitsAt(now));
    this.rate = rate;
    this.#intervalMs = intervalOf(rate);
    this.#burst = burst;
    this.#fullAt = now + (burst - level) * this.#intervalMs;
    this.#usedFullAt = Math.min(this.#usedFullAt, this.#fullAt);
  }

  #permitsAt(now: number): number {
    return this.#burst - (Math.max(this.#fullAt, now) - now) / this.#intervalMs;
  }

  #adjustToClock(now: number): void {
    if (now < this.#lastAt) {
      this.#fullAt -= this.#lastAt - now;
      this.#usedFullAt -= this.#lastAt - now;
    }
    this.#lastAt = now;
  }
}

function intervalOf(rate: number): number {
  if (!(rate > 0)) throw new RangeError('rate must be above 0');
  return 1000 / rate;
}
