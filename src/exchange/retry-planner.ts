/** The retry decisions of one request: the policy's, if there is time and budget. Counts the attempts. */
import type { Random } from '../platform/clock.ts';
import {
  decideAfterFailure,
  decideAfterResponse,
  NO_RETRY,
  type RetryDecision,
  type RetryFacts,
} from '../retry/policy.ts';
import type { Ticket } from '../throttle/throttle.ts';
import type { UpstreamFailure } from '../upstream/failure.ts';
import type { ExchangeParts } from './exchange.ts';
import type { RequestBuilder } from './request-builder.ts';
import type { RequestLifetime } from './request-lifetime.ts';
import type { ResponseClassification } from './response-classifier.ts';

export class RetryPlanner implements RetryFacts {
  readonly method: string;
  readonly hasIdempotencyKey: boolean;
  readonly random: Random;
  hasReplayedAfter401 = false;
  countedAttempts = 0;
  readonly #parts: ExchangeParts;
  readonly #lifetime: RequestLifetime;
  readonly #ticket: Ticket;
  readonly #body: { readonly isWhole: boolean };
  /** When the planned retry was taken out of the budget. */
  #takenAt: number | undefined;

  /** @param body whether it is whole, and so can be sent again, is known when it has been sent once */
  constructor(
    parts: ExchangeParts,
    lifetime: RequestLifetime,
    ticket: Ticket,
    body: { readonly isWhole: boolean },
    { method, hasIdempotencyKey }: RequestBuilder,
  ) {
    this.#parts = parts;
    this.#lifetime = lifetime;
    this.#ticket = ticket;
    this.#body = body;
    this.method = method;
    this.hasIdempotencyKey = hasIdempotencyKey;
    this.random = parts.random;
  }

  get isReplayable(): boolean {
    return this.#body.isWhole;
  }

  decideAfterResponse(status: number, classification: ResponseClassification): RetryDecision {
    if (!classification.isRateLimited) this.countedAttempts++;
    const decision = decideAfterResponse(this.#parts.retry, this, status, classification);
    return decision === NO_RETRY ? decision : this.#checkTimeAndBudget(decision, true);
  }

  decideAfterFailure(failure: UpstreamFailure): RetryDecision {
    this.countedAttempts++;
    return this.#checkTimeAndBudget(decideAfterFailure(this.#parts.retry, this, failure), false);
  }

  /** The planned retry is sent: what it took out of the budget is spent. */
  commit(): void {
    this.#takenAt = undefined;
  }

  /** The planned retry is not sent: the budget gets its part back. */
  cancel(): void {
    if (this.#takenAt !== undefined) this.#parts.retryBudget.giveBack(this.#takenAt);
    this.#takenAt = undefined;
  }

  /** @param isHeld a response goes to the client at once when a retry would come too late */
  #checkTimeAndBudget(decision: RetryDecision, isHeld: boolean): RetryDecision {
    const { clock, retryBudget, observe, route } = this.#parts;
    const { remainingMs } = this.#lifetime;
    if (decision.kind === 'no-retry') return decision;
    const delayMs = decision.kind === 'back-off' ? decision.delayMs : 0;
    if ((isHeld ? this.#ticket.retryWaitMs(delayMs) : delayMs) >= remainingMs) return NO_RETRY;
    if (decision.kind !== 'back-off') return decision;
    const now = clock.now();
    if (!retryBudget.tryTake(now)) {
      observe({ kind: 'retry-budget-exhausted', route, reason: decision.reason });
      return NO_RETRY;
    }
    this.#takenAt = now;
    return decision;
  }
}
