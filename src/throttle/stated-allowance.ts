/**
 * What accepted answers say is left: never more than `remaining` further calls within `resetInMs` (pure). It only counts;
 * a refusal, whatever it states, is the pause's.
 */
import type { Grant } from './grant.ts';
import type { RateLimitSignal } from './rate-limit-signal.ts';

/** Nothing stated, or a number of calls left until an instant. */
export class StatedAllowance {
  #left = Infinity;
  #until = -Infinity;
  #learnedFrom = -1;
  readonly #maxPauseMs: number;

  /** @param maxPauseMs a reset further away than this is not waited for without asking again */
  constructor(maxPauseMs: number) {
    this.#maxPauseMs = maxPauseMs;
  }

  /** When the stated calls are used up: the instant of the reset; -Infinity otherwise. */
  openAt(now: number): number {
    return this.#left <= 0 && now < this.#until ? this.#until : -Infinity;
  }

  /** True when it was used up and its time has run out since. */
  hasRunOut(now: number): boolean {
    return this.#left <= 0 && now >= this.#until;
  }

  /** @param grantsSince grants after the answered one: the answer cannot have counted them */
  learn(now: number, grant: Grant, hint: RateLimitSignal, grantsSince: number): void {
    if (hint.remaining === undefined || hint.resetInMs === undefined) return;
    // Answers overtake one another; the one to the youngest call knows most.
    if (grant.serial < this.#learnedFrom) return;
    this.#learnedFrom = grant.serial;
    this.#left = hint.remaining - grantsSince;
    this.#until = now + Math.min(hint.resetInMs, this.#maxPauseMs);
  }

  spend(now: number): void {
    if (now >= this.#until) this.#left = Infinity;
    else this.#left--;
  }

  /** A call that was counted is not made after all. */
  giveBack(): void {
    this.#left++;
  }
}
