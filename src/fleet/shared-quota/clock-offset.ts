/**
 * The offset of the store's clock, estimated from requests and replies (pure; RFC 5905 §8 in form): the faster a reply, the smaller
 * its possible error. Both clocks may drift, so a good old sample loses its weight with time.
 */

/** Error in milliseconds that each millisecond of age adds: far more than clocks drift. */
const ERROR_GROWTH_PER_MS = 0.0005;

export class ClockOffset {
  #offsetMs = NaN;
  #errorMs = Infinity;
  #sampledAt = -Infinity;

  get isKnown(): boolean {
    return !Number.isNaN(this.#offsetMs);
  }

  /** @param storeNow what the store's clock showed at some instant between the two */
  addSample(requestedAt: number, repliedAt: number, storeNow: number): void {
    const errorMs = (repliedAt - requestedAt) / 2;
    const keptErrorMs = this.#errorMs + (repliedAt - this.#sampledAt) * ERROR_GROWTH_PER_MS;
    const offsetMs = storeNow - (requestedAt + repliedAt) / 2;
    // The kept offset cannot be true any more: the store's clock was set.
    const isOff = Math.abs(offsetMs - this.#offsetMs) > errorMs + keptErrorMs;
    if (!isOff && errorMs > keptErrorMs) return;
    this.#offsetMs = offsetMs;
    this.#errorMs = errorMs;
    this.#sampledAt = repliedAt;
  }

  toStoreTime(at: number): number {
    return at + this.#offsetMs;
  }

  toLocalTime(storeAt: number): number {
    return storeAt - this.#offsetMs;
  }
}
