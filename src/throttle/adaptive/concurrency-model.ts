/**
 * A limit on the number of calls in flight (pure). The upstream sees fewer calls at a time than are in flight here, since requests
 * and responses spend time on the way. The smallest number at which a call was refused is the limit; a call that was refused while
 * it was alone contradicts the model.
 */
import type { CallLog } from './call-log.ts';
import { type Evidence, LimiterModel, RESTORED_REFUSALS } from './limiter-model.ts';

/** Of the calls in flight here, at least this share is at the upstream. */
const MIN_UPSTREAM_SHARE = 0.6;

/** The bounds are calls in flight beside the one that was accepted or refused. */
export class ConcurrencyModel extends LimiterModel {
  readonly kind = 'concurrency';
  readonly windowMs = 0;
  readonly rate = Infinity;
  readonly burst = 1;
  readonly #sent: CallLog;

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
    // Calls that were sent within the jitter may have overtaken this one.
    const atMost = inFlight + Math.max(0, this.#sent.count(at, at + jitterMs) - 1);
    this.lowerUpperBound(atMost, isInformative, atMost < this.upperBound * 0.8 - 1);
  }

  wouldRefuse(): boolean {
    // Probing raises the number in flight instead (learned-rate-policy.ts).
    return false;
  }

  /** Continues with what an earlier process learned. */
  restore(limit: number): void {
    this.upperBound = limit;
    this.explainedRefusals = RESTORED_REFUSALS;
  }
}
