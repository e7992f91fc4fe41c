/**
 * How far another machine's clock is from this one's, judged by questions and answers (pure; RFC 5905 §8 in form): the quicker an
 * answer came, the less it can be wrong. Both clocks may drift, so that an old good answer gives way in time.
 */

/** So much error each second of age is counted as, milliseconds: far more than clocks drift. */
const AGEING_PER_MS = 0.0005;

export class FleetClock {
  #offsetMs = NaN;
  #errorMs = Infinity;
  #at = -Infinity;

  /** False until the first answer. */
  get isSet(): boolean {
    return !Number.isNaN(this.#offsetMs);
  }

  /** @param boardNow what the other clock showed at some instant between the two */
  learn(askedAt: number, answeredAt: number, boardNow: number): void {
    const errorMs = (answeredAt - askedAt) / 2;
    const keptErrorMs = this.#errorMs + (answeredAt - this.#at) * AGEING_PER_MS;
    const offsetMs = boardNow - (askedAt + answeredAt) / 2;
    // One that cannot be true any more: the other clock was set.
    const isOff = Math.abs(offsetMs - this.#offsetMs) > errorMs + keptErrorMs;
    if (!isOff && errorMs > keptErrorMs) return;
    this.#offsetMs = offsetMs;
    this.#errorMs = errorMs;
    this.#at = answeredAt;
  }

  toBoard(at: number): number {
    return at + this.#offsetMs;
  }

  toLocal(boardAt: number): number {
    return boardAt - this.#offsetMs;
  }
}
