/**
 * A number of calls at the same time (pure). How many the upstream sees at once is not known exactly, since answers are under
 * way as well: the fewest that were refused is the measure, and a call that was refused while alone speaks against the idea.
 */
import type { CallLog } from './call-log.ts';
import { type Evidence, LimiterModel } from './limiter-model.ts';

/** Of the calls that are under way here, at least this share is so at the upstream. */
const MIN_UPSTREAM_SHARE = 0.6;

/** Bounds are calls under way beside the judged one. */
export class ConcurrencyModel extends LimiterModel {
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

  get isConsistent(): boolean {
    return this.upperBound >= 2 && this.lowerBound <= this.upperBound;
  }

  get isUsable(): boolean {
    return this.upperBound !== Infinity && this.explainedRefusals > 1;
  }

  get limit(): number {
    return this.upperBound;
  }

  recordAccepted({ inFlight }: Evidence): void {
    this.lowerBound = Math.max(this.lowerBound, Math.floor(inFlight * MIN_UPSTREAM_SHARE));
  }

  recordRefused({ at, inFlight, jitterMs, isInformative }: Evidence): void {
    // Calls that were sent a little later may have overtaken it.
    const most = inFlight + Math.max(0, this.#sent.count(at, at + jitterMs) - 1);
    this.lowerUpperBound(most, isInformative, most < this.upperBound * 0.8 - 1);
  }

  openAt(): number {
    return -Infinity;
  }

  isFull(): boolean {
    return false;
  }

  /** As it was in an earlier process. */
  restore(limit: number): void {
    this.upperBound = limit;
    this.explainedRefusals = 2;
  }
}
