/**
 * The rate to go by while nothing explains the refusals (pure): cut at a refusal, back to the refused rate on a cubic curve
 * (RFC 9438 §4.1), quickly up to it and slowly past it. Growth counts only time in which permits were waited for.
 */

/** Time in use from a cut back to the refused rate: so long, or so many permits where they are rare. */
const RETURN_MS = 6_000;
const RETURN_PERMITS = 12;
const MIN_RATE = 1 / 30;

/** A rate that only refusals shape. */
export class FallbackRate {
  #rate: number;
  /** The rate at which the last refusal came; Infinity when none has come yet. */
  #refusedRate = Infinity;
  #inUseMs = 0;
  readonly #decreaseFactor: number;

  constructor(rate: number, cutShare: number) {
    this.#rate = rate;
    this.#decreaseFactor = cutShare;
  }

  /** Permits per second. */
  get rate(): number {
    return this.#rate;
  }

  /** Goes on from here; nothing is known of what would be refused. */
  restart(rate: number): void {
    this.#rate = Math.max(MIN_RATE, rate);
    this.#refusedRate = Infinity;
  }

  /** Goes on with this rate; what was refused stays known. */
  continueFrom(rate: number): void {
    this.#rate = Math.max(MIN_RATE, Number.isFinite(rate) ? rate : MIN_RATE);
  }

  /**
   * @param rate the one that was refused
   * @param seen calls per second that were accepted lately
   */
  decrease(rate: number, seen: number): void {
    this.#refusedRate = Number.isFinite(rate) ? rate : seen;
    this.#rate = Math.max(MIN_RATE, this.#refusedRate / 2, Math.min(this.#refusedRate * this.#decreaseFactor, seen));
    this.#inUseMs = 0;
  }

  /** A probe was refused: that says more of the pause than of the rate. */
  decreaseAfterProbe(): void {
    this.#rate = Math.max(MIN_RATE, this.#rate * this.#decreaseFactor);
  }

  /** @param patience how many times slower than usual */
  increase(inUseMs: number, patience: number): void {
    const doubled = this.#rate * 2 ** Math.min(1, inUseMs / 1000);
    const floor = this.#refusedRate * this.#decreaseFactor;
    if (this.#refusedRate === Infinity) this.#rate = doubled;
    else if (this.#rate < floor) this.#rate = Math.min(doubled, floor);
    else {
      this.#inUseMs += inUseMs;
      const returnMs = Math.max(RETURN_MS, (RETURN_PERMITS * 1000) / this.#refusedRate) * patience;
      const curve = 1 + (1 - this.#decreaseFactor) * (this.#inUseMs / returnMs - 1) ** 3;
      this.#rate = Math.min(doubled, Math.max(this.#rate, this.#refusedRate * curve));
    }
  }
}
