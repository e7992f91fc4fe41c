/**
 * How many calls may be in flight while the upstream limits only how fast it responds (pure): one more with each response, until calls time
 * out. Then half as many, and more only slowly, as in TCP (RFC 5681): an upstream that queues what it cannot serve must not be left more than
 * it serves within a deadline.
 */
import type { PermitGrant } from '../pacing/gate.ts';

const FIRST_LIMIT = 4;
/** Rounds of the calls in flight for which a lowered limit stays: each rise above what the upstream serves wastes calls. */
const HELD_ROUNDS = 20;
/** Time-outs beyond a tenth of the responses that lower the limit: a few come from calls that hang. */
const MIN_EXCESS = 3;
const TOLERATED_PER_RESPONSE = 0.1;
/** While the others need a smaller part of the time that a call was given, that call alone is at fault. */
const SLOW_PART = 0.25;

export class InFlightLimit {
  value: number;
  /** A call has timed out. Until then the learner raises the value by one at each response, without a function call. */
  hasTimeOuts = false;
  #excess = 0;
  /** Calls that were sent before say nothing about the limit that holds since. */
  #decreasedAt = -Infinity;
  /** Responses to come before the limit rises by one. */
  #awaited = 1;

  /** @param first default: 4 */
  constructor(max: number, first = FIRST_LIMIT) {
    this.value = Math.min(first, max);
  }

  /** To be called once there are time-outs. */
  recordResponse(max: number): void {
    this.#excess = Math.max(0, this.#excess - TOLERATED_PER_RESPONSE);
    if (this.value >= max || --this.#awaited > 0) return;
    this.value++;
    this.#awaited = this.#decreasedAt === -Infinity ? 1 : this.value;
  }

  /** @param meanMs how long the calls with a response take */
  recordTimeOut(now: number, { at, startedAt = at }: PermitGrant, meanMs: number): void {
    const isSlow = meanMs > SLOW_PART * (now - startedAt);
    if (at < this.#decreasedAt || !isSlow) return;
    this.hasTimeOuts = true;
    if (++this.#excess < MIN_EXCESS) return;
    this.value = Math.max(1, Math.floor(this.value / 2));
    this.#awaited = HELD_ROUNDS * this.value;
    this.#decreasedAt = now;
    this.#excess = 0;
  }
}
