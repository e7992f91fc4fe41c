/**
 * A number of calls at the same time (pure). How many the upstream sees at once is not known exactly, since answers are under
 * way as well: the fewest that were refused is the measure, and a call that was refused while alone speaks against the idea.
 */
import type { CallLog } from './call-log.ts';
import { type Evidence, LimiterModel } from './limiter-model.ts';

/** Of the calls that are under way here, at least this share is so at the upstream. */
const SEEN_THERE = 0.6;

/** Bounds are calls under way beside the judged one. */
export class SlotsModel extends LimiterModel {
  readonly kind = 'concurrency';
  readonly windowMs = 0;
  readonly rate = Infinity;
  readonly burst = 1;
  readonly #sent: CallLog;

  /** @param sent all calls */
  constructor(sent: CallLog) {
    super();
    this.#sent = sent;
  }

  get stands(): boolean {
    return this.most >= 2 && this.least <= this.most;
  }

  get usable(): boolean {
    return this.most !== Infinity && this.agreeing > 1;
  }

  get limit(): number {
    return this.most;
  }

  accepted({ abreast }: Evidence): void {
    this.least = Math.max(this.least, Math.floor(abreast * SEEN_THERE));
  }

  refused({ at, abreast, jitterMs, telling }: Evidence): void {
    // Calls that were sent a little later may have overtaken it.
    const most = abreast + Math.max(0, this.#sent.count(at, at + jitterMs) - 1);
    this.noteRefusal(most, telling, most < this.most * 0.8 - 1);
  }

  opensAt(): number {
    return -Infinity;
  }

  isFull(): boolean {
    return false;
  }

  /** As it was in an earlier process. */
  restore(limit: number): void {
    this.most = limit;
    this.agreeing = 2;
  }
}
