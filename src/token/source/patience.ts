/**
 * How long a replica waits for what others ask for: for each of them as long as its request may take, for all together not
 * for ever. Pure: instants come in as arguments.
 */

/** Others waited for, one after the other. */
const MOST_ASKERS = 3;

export class Patience {
  readonly #eachMs: number;
  readonly #until: number;
  #asker: string | undefined;
  #askerUntil: number;

  /** @param eachMs for one of them, milliseconds */
  constructor(eachMs: number, now: number) {
    this.#eachMs = eachMs;
    this.#askerUntil = now + eachMs;
    this.#until = now + eachMs * MOST_ASKERS;
  }

  lasts(now: number): boolean {
    return now < Math.min(this.#askerUntil, this.#until);
  }

  /** The one who asks now, by name; a new one is given time of its own. */
  waitFor(asker: string, now: number): void {
    if (asker === this.#asker) return;
    this.#asker = asker;
    this.#askerUntil = now + this.#eachMs;
  }
}
