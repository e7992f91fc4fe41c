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
import type { Exchange, ExchangeParts } from './exchange.ts';
import type { RequestBody } from './request-body/replay-body.ts';
import type { ResponseClassification } from './response-classifier.ts';

export interface RetryContext extends Pick<RetryFacts, 'method' | 'hasIdempotencyKey'> {
  readonly parts: ExchangeParts;
  readonly exchange: Exchange;
  readonly ticket: Ticket;
  readonly body: RequestBody;
}

export class RetryPlanner implements RetryFacts {
  readonly method: string;
  readonly hasIdempotencyKey: boolean;
  readonly random: Random;
  hasReplayedAfter401 = false;
  hasUnknownAttempt = false;
  countedAttempts = 0;
  readonly #context: RetryContext;
  /** When the planned retry was taken out of the budget. */
  #takenAt: number | undefined;

  constructor(context: RetryContext) {
    this.method = context.method;
    this.hasIdempotencyKey = context.hasIdempotencyKey;
    this.random = context.parts.random;
    this.#context = context;
  }

  /** Known when the body has been sent once. */
  get isReplayable(): boolean {
    return this.#context.body.isInMemory;
  }

  decideAfterResponse(status: number, classification: ResponseClassification): RetryDecision {
    if (!classification.isRateLimited) this.countedAttempts++;
    const decision = decideAfterResponse(this.#context.parts.retry, this, status, classification);
    return decision === NO_RETRY ? decision : this.#checkTimeAndBudget(decision, true);
  }

  decideAfterFailure(failure: UpstreamFailure): RetryDecision {
    this.countedAttempts++;
    return this.#checkTimeAndBudget(decideAfterFailure(this.#context.parts.retry, this, failure), false);
  }

  /** The planned retry is sent: what it took out of the budget is spent. */
  commit(): void {
    this.#takenAt = undefined;
  }

  /** The planned retry is not sent: the budget gets its part back. */
  cancel(): void {
    if (this.#takenAt !== undefined) this.#context.parts.retryBudget.giveBack(this.#takenAt);
    this.#takenAt = undefined;
  }

  /** @param isHeld a response goes to the client at once when a retry would come too late */
  #checkTimeAndBudget(decision: RetryDecision, isHeld: boolean): RetryDecision {
    const { parts, exchange, ticket } = this.#context;
    const { clock, retryBudget, observe, route } = parts;
    const { remainingMs } = exchange.lifetime;
    if (decision.kind === 'no-retry') return decision;
    const delayMs = decision.kind === 'back-off' ? decision.delayMs : 0;
    if ((isHeld ? ticket.retryWaitMs(delayMs) : delayMs) >= remainingMs) return NO_RETRY;
    if (decision.kind !== 'back-off') return decision;
    const now = clock.now();
    if (!retryBudget.tryTake(now)) {
      observe({ kind: 'retry-budget-exhausted', route, reason: decision.reason });
      return NO_RETRY;
    }
    this.#takenAt = now;
    if (decision.reason !== 'connect') this.hasUnknownAttempt = true;
    return decision;
  }
}
