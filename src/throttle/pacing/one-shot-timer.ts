/** One timer that always stands at the one instant that matters next. */
import type { Cancel } from '../../platform/clock.ts';

/** Sets a timer for an instant, as Clock.exactlyAt does. */
export type SetTimer = (at: number, run: () => void) => Cancel;

/** Rings once at the instant it is set to; setting it again moves it. */
export class OneShotTimer {
  readonly #setTimer: SetTimer;
  readonly #callback: () => void;
  #at = Infinity;
  #cancel: Cancel | undefined;

  constructor(setTimer: SetTimer, ring: () => void) {
    this.#setTimer = setTimer;
    this.#callback = ring;
  }

  /** Rings at `at`, or before: one that is set already is not moved to a later instant, but may be set again when it rings. */
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
