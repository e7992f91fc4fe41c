/**
 * Refused calls among calls in a row (pure). Refusals at random do not depend on each other; those of a limit come together, while it is
 * closed.
 */

/** Refusals that follow refusals, beyond what chance makes of them, as a multiple of its standard deviation. */
const DEVIATIONS = 3;

export class RefusalCount {
  /** Written here only, as `refused` is. */
  calls = 0;
  refused = 0;
  /** Refused calls after a refused one. */
  #repeats = 0;
  #wasRefused = false;

  record(isAccepted: boolean): void {
    this.calls++;
    if (!isAccepted) {
      this.refused++;
      if (this.#wasRefused) this.#repeats++;
    }
    this.#wasRefused = !isAccepted;
  }

  get share(): number {
    return this.refused / this.calls;
  }

  /** One standard deviation more. */
  get mostShare(): number {
    return this.share + Math.sqrt((this.share * (1 - this.share)) / this.calls);
  }

  /** The refusals come together more than chance explains (Wald and Wolfowitz, 1940: the number of runs). */
  get isClustered(): boolean {
    const { calls, refused } = this;
    const accepted = calls - refused;
    const runs = (refused * (accepted + 1)) / calls;
    const deviation = Math.sqrt((runs * (refused - 1) * accepted) / (calls * (calls - 1)));
    return this.#repeats > refused - runs + DEVIATIONS * deviation;
  }
}
