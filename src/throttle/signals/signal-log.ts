/** The last rate-limit signals, for /status. */
import type { RecentSignal } from '../throttle.ts';

const MAX_SIGNALS = 20;

/** A bounded list, newest first. */
export class SignalLog {
  #signals: readonly RecentSignal[] = [];

  get newestFirst(): readonly RecentSignal[] {
    return this.#signals;
  }

  add(signal: RecentSignal): void {
    this.#signals = [signal, ...this.#signals.slice(0, MAX_SIGNALS - 1)];
  }
}
