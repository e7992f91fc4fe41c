/**
 * What follows an attempt of one request: the retry policy's decision, if there is time and budget for it. Keeps count
 * of the attempts; carries nothing out.
 */
import { fullJitterMs } from '../retry/backoff.ts';
import { decideRetry, type AttemptOutcomeFacts, type RetryFacts } from '../retry/policy.ts';
import type { RetryReason } from '../telemetry/events.ts';
import type { Ticket } from '../throttle/throttle.ts';
import type { ExchangeParts } from './exchange.ts';
import type { RequestLifetime } from './request-lifetime.ts';

export type RetryStep =
  | { readonly kind: 'await-permit'; readonly reason: 'rate_limited' }
  | { readonly kind: 'refresh-token'; readonly reason: 'unauthorized' }
  | {
      readonly kind: 'back-off';
      readonly reason: RetryReason;
      readonly delayMs: number;
      /** When it was taken out of the retry budget. */
      readonly takenAt: number;
    };

/** What is known of the request that its attempts belong to. */
export interface RetryableRequest {
  readonly method: string;
  readonly hasIdempotencyKey: boolean;
  /** Can be sent again if the whole of it is in memory, which is known when it has been sent once. */
  readonly body: { readonly isWhole: boolean };
  readonly lifetime: RequestLifetime;
  readonly ticket: Ticket;
}

export class RetryPlanner implements RetryFacts {
  readonly method: string;
  readonly hasIdempotencyKey: boolean;
  /** A 401 has been answered with a newer token. */
  hasReplayedAfter401 = false;
  countedAttempts = 0;
  readonly #parts: ExchangeParts;
  readonly #lifetime: RequestLifetime;
  readonly #ticket: Ticket;
  readonly #body: RetryableRequest['body'];

  constructor(parts: ExchangeParts, { method, hasIdempotencyKey, body, lifetime, ticket }: RetryableRequest) {
    this.#parts = parts;
    this.#lifetime = lifetime;
    this.#ticket = ticket;
    this.method = method;
    this.hasIdempotencyKey = hasIdempotencyKey;
    this.#body = body;
  }

  get isReplayable(): boolean {
    return this.#body.isWhole;
  }

  /** @returns undefined when this outcome is the request's last */
  planAfter(outcome: AttemptOutcomeFacts, statedWaitMs = 0): RetryStep | undefined {
    const lifeline = this.#lifetime;
    if (outcome.kind !== 'answer' || !outcome.isRateLimited) this.countedAttempts++;
    const decision = decideRetry(this.#parts.retry, this, outcome);
    switch (decision.kind) {
      case 'finish':
        return undefined;
      case 'refresh-token':
        return { kind: 'refresh-token', reason: 'unauthorized' };
      case 'await-permit':
        return this.#ticket.retryWaitMs() < lifeline.remainingMs
          ? { kind: 'await-permit', reason: 'rate_limited' }
          : undefined;
      case 'back-off':
        return this.#planBackoff(decision.reason, statedWaitMs);
    }
  }

  /** The step is not taken: what was set aside for it is there for others. */
  cancel(step: RetryStep | undefined): void {
    if (step?.kind === 'back-off') this.#parts.retryBudget.giveBack(step.takenAt);
  }

  #planBackoff(reason: RetryReason, statedWaitMs: number): RetryStep | undefined {
    const { clock, random, retryBudget, observe, route } = this.#parts;
    const delayMs = Math.max(statedWaitMs, fullJitterMs(this.countedAttempts, random()));
    if (delayMs >= this.#lifetime.remainingMs) return undefined;
    const takenAt = clock.now();
    if (retryBudget.tryTake(takenAt)) return { kind: 'back-off', reason, delayMs, takenAt };
    observe({ kind: 'retry-budget-exhausted', route, reason });
    return undefined;
  }
}
