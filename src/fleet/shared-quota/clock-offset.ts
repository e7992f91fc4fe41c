/**
 * How far another machine's clock is from this one's, judged by questions and answers (pure; RFC 5905 §8 in form): the quicker an
 * answer came, the less it can be wrong. Both clocks may drift, so that an old good answer gives way in time.
 */

/** So much error each second of age is counted as, milliseconds: far more than clocks drift. */
const ERROR_GROWTH_PER_MS = 0.0005;

export class ClockOffset {
  #offsetMs = NaN;
  #errorMs = Infinity;
  #sampledAt = -Infinity;

  /** False until the first answer. */
  get isKnown(): boolean {
    return !Number.isNaN(this.#offsetMs);
  }

  /** @param boardNow what the other clock showed at some instant between the two */
  addSample(askedAt: number, answeredAt: number, boardNow: number): void {
    const errorMs = (answeredAt - askedAt) / 2;
    const keptErrorMs = this.#errorMs + (answeredAt - this.#sampledAt) * ERROR_GROWTH_PER_MS;
    const offsetMs = boardNow - (askedAt + answeredAt) / 2;
    // One that cannot be true any more: the other clock was set.
    const isOff = Math.abs(offsetMs - this.#offsetMs) > errorMs + keptErrorMs;
    if (!isOff && errorMs > keptErrorMs) return;
    this.#offsetMs = offsetMs;
    this.#errorMs = errorMs;
    this.#sampledAt = answeredAt;
  }

  toStoreTime(at: number): number {
    return at + this.#offsetMs;
  }

  toLocalTime(boardAt: number): number {
    return boardAt - this.#offsetMs;
  }
}
