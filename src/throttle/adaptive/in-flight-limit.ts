/**
 * How many calls may be in flight while the upstream limits only how fast it responds (pure): one more with each response, until calls time
 * out. Then half as many, and more only slowly, as in TCP (RFC 5681): an upstream that queues what it cannot serve must not be left more than
 * it serves within a deadline.
 */
import type { PermitGrant } from '../pacing/gate.ts';

const FIRST_LIMIT = 4;
const DECREASE = 0.5;
/** A lowered limit stays for as many rounds of the calls in flight: each rise too far costs calls that are carried out in vain. */
const HELD_ROUNDS = 20;
/** Time-outs beyond a tenth of the responses that lower the limit: a few come from calls that hang. */
const MIN_EXCESS = 3;
const TOLERATED_PER_RESPONSE = 0.1;
/** While the others need a smaller part of the time that a call was given, that call alone is at fault. */
const SLOW_PART = 0.25;

export class InFlightLimit {
  #limit = FIRST_LIMIT;
  /** Calls that were sent before say nothing about the limit that holds since. */
  #decreasedAt = -Infinity;
  /** Responses to come before the limit rises again. */
  #heldResponses = 0;
  #excess = 0;

  /** At most `max`. */
  value(max: number): number {
    return Math.min(max, Math.floor(this.#limit));
  }

  raiseTo(limit: number): void {
    this.#limit = limit;
  }

  recordResponse(max: number): void {
    this.#excess = Math.max(0, this.#excess - TOLERATED_PER_RESPONSE);
    if (this.#heldResponses > 0) this.#heldResponses--;
    else if (this.#limit < max) this.#limit += this.#decreasedAt === -Infinity ? 1 : 1 / this.#limit;
  }

  /** @param meanMs how long the calls with a response take */
  recordTimeOut(now: number, { at, startedAt = at }: PermitGrant, meanMs: number): void {
    const isSlow = meanMs > SLOW_PART * (now - startedAt);
    if (at < this.#decreasedAt || !isSlow || ++this.#excess < MIN_EXCESS) return;
    this.#limit = Math.max(1, DECREASE * this.#limit);
    this.#heldResponses = HELD_ROUNDS * this.#limit;
    this.#decreasedAt = now;
    this.#excess = 0;
  }
}
