/** One timer for the next of many instants: it fires once at the instant it is set to, and setting it again moves it. */
import type { Cancel } from '../../platform/clock.ts';

/** Sets a timer for an instant, as Clock.exactlyAt does. */
export type SetTimer = (at: number, run: () => void) => Cancel;

export class OneShotTimer {
  readonly #setTimer: SetTimer;
  readonly #callback: () => void;
  #at = Infinity;
  #cancel: Cancel | undefined;

  constructor(setTimer: SetTimer, callback: () => void) {
    this.#setTimer = setTimer;
    this.#callback = callback;
  }

  /** Fires at `at` or earlier: a timer that is set is not moved to a later instant. */
  setNoLaterThan(at: number): void {
    if (at < this.#at || at === Infinity) this.set(at);
  }

  /** @param at Infinity switches it off */
  set(at: number): void {
    if (at === this.#at) return;
    this.#cancel?.();
    this.#at = at;
    this.#cancel =
      at === Infinity
        ? undefined
        : this.#setTimer(at, () => {
            this.#at = Infinity;
            this.#cancel = undefined;
            this.#callback();
          });
  }
}
