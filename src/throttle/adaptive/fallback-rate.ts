/**
 * The rate while no model explains the refusals (pure): cut at a refusal, then back to the refused rate and past it on a cubic
 * curve (CUBIC, RFC 9438 §4.1). It grows only while calls wait for permits.
 */

/** Time in use from a cut back to the refused rate; at low rates, as long as this number of permits takes. */
const RETURN_MS = 6_000;
const RETURN_PERMITS = 12;
const MIN_RATE = 1 / 30;
/** By how much the way back takes longer with each further unit of a refusal's cost. */
const RETURN_STRETCH = 3;

/** Permits per second, moved by refusals and use alone. */
export class FallbackRate {
  #rate: number;
  /** Rate at which the last refusal came; Infinity before the first one. */
  #refusedRate = Infinity;
  #inUseMs = 0;
  #decreaseFactor: number;
  /** Of the last refusal. */
  #refusalCost = 1;
  readonly #fullDecreaseFactor: number;

  /** @param rate permits per second to begin with */
  constructor(rate: number, decreaseFactor: number) {
    this.#rate = rate;
    this.#fullDecreaseFactor = this.#decreaseFactor = decreaseFactor;
  }

  get rate(): number {
    return this.#rate;
  }

  /** Begins anew at this rate and forgets the refused rate. */
  restart(rate: number): void {
    this.#rate = Math.max(MIN_RATE, rate);
    this.#refusedRate = Infinity;
  }

  /** Continues at this rate and keeps the refused rate. */
  continueFrom(rate: number): void {
    this.#rate = Math.max(MIN_RATE, Number.isFinite(rate) ? rate : MIN_RATE);
  }

  /**
   * @param refusedRate permits per second in use at the refusal
   * @param acceptedRate calls per second accepted shortly before
   * @param refusalCost a multiple of what refusals usually cost: the way back is slower, so that fewer follow. The cut is smaller as
   * well, unless the refusal came soon after the last one, which shows that the limit is lower.
   */
  decrease(refusedRate: number, acceptedRate: number, refusalCost = 1): void {
    const isSoon = this.#refusedRate !== Infinity && this.#inUseMs < (RETURN_MS * this.#refusalCost) / 2;
    this.#refusalCost = Number.isFinite(refusedRate) ? refusalCost : 1;
    this.#decreaseFactor = 1 - (1 - this.#fullDecreaseFactor) / (isSoon ? 1 : this.#refusalCost);
    this.#refusedRate = Number.isFinite(refusedRate) ? refusedRate : acceptedRate;
    this.#rate = Math.max(
      MIN_RATE,
      this.#refusedRate / 2,
      Math.min(this.#refusedRate * this.#decreaseFactor, acceptedRate),
    );
    this.#inUseMs = 0;
  }

  /** The probe after a pause was refused: the pause was too short, which says little about the rate. */
  decreaseAfterProbe(): void {
    this.#rate = Math.max(MIN_RATE, this.#rate * this.#decreaseFactor);
  }

  /**
   * @param inUseMs time in which a call waited for a permit
   * @param slowdown stretches the curve
   */
  increase(inUseMs: number, slowdown: number): void {
    const doubled = this.#rate * 2 ** Math.min(1, inUseMs / 1000);
    const floor = this.#refusedRate * this.#decreaseFactor;
    if (this.#refusedRate === Infinity) this.#rate = doubled;
    else if (this.#rate < floor) this.#rate = Math.min(doubled, floor);
    else {
      this.#inUseMs += inUseMs;
      const stretch = slowdown * (1 + RETURN_STRETCH * (this.#refusalCost - 1));
      const returnMs = Math.max(RETURN_MS, (RETURN_PERMITS * 1000) / this.#refusedRate) * stretch;
      const curve = 1 + (1 - this.#decreaseFactor) * (this.#inUseMs / returnMs - 1) ** 3;
      this.#rate = Math.min(doubled, Math.max(this.#rate, this.#refusedRate * curve));
    }
  }
}
