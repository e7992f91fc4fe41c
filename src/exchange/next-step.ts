/**
 * What follows an attempt of one request: the retry policy's decision, if there is time and budget for it. Keeps count
 * of the attempts; carries nothing out.
 */
import { fullJitterMs } from '../retry/backoff.ts';
import { decideRetry, type AttemptOutcomeFacts, type RetryFacts } from '../retry/policy.ts';
import type { RetryReason } from '../telemetry/events.ts';
import type { Ticket } from '../throttle/throttle.ts';
import type { ExchangeParts } from './exchange.ts';
import type { Lifeline } from './lifeline.ts';

export type NextStep =
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
export interface RepeatableRequest {
  readonly method: string;
  readonly hasIdempotencyKey: boolean;
  /** Can be sent again if the whole of it is in memory, which is known when it has been sent once. */
  readonly body: { readonly isWhole: boolean };
  readonly lifeline: Lifeline;
  readonly ticket: Ticket;
}

export class NextSteps implements RetryFacts {
  readonly method: string;
  readonly hasIdempotencyKey: boolean;
  /** A 401 has been answered with a newer token. */
  isReplayed = false;
  countedAttempts = 0;
  readonly #parts: ExchangeParts;
  readonly #lifeline: Lifeline;
  readonly #ticket: Ticket;
  readonly #body: RepeatableRequest['body'];

  constructor(parts: ExchangeParts, { method, hasIdempotencyKey, body, lifeline, ticket }: RepeatableRequest) {
    this.#parts = parts;
    this.#lifeline = lifeline;
    this.#ticket = ticket;
    this.method = method;
    this.hasIdempotencyKey = hasIdempotencyKey;
    this.#body = body;
  }

  get isReplayable(): boolean {
    return this.#body.isWhole;
  }

  /** @returns undefined when this outcome is the request's last */
  after(outcome: AttemptOutcomeFacts, statedWaitMs = 0): NextStep | undefined {
    const lifeline = this.#lifeline;
    if (outcome.kind !== 'answer' || !outcome.isRateLimited) this.countedAttempts++;
    const decision = decideRetry(this.#parts.retry, this, outcome);
    switch (decision.kind) {
      case 'finish':
        return undefined;
      case 'refresh-token':
        return { kind: 'refresh-token', reason: 'unauthorized' };
      case 'await-permit':
        return this.#ticket.retryWaitMs() < lifeline.leftMs
          ? { kind: 'await-permit', reason: 'rate_limited' }
          : undefined;
      case 'back-off':
        return this.#backOff(decision.reason, statedWaitMs);
    }
  }

  /** The step is not taken: what was set aside for it is there for others. */
  forgo(step: NextStep | undefined): void {
    if (step?.kind === 'back-off') this.#parts.budget.giveBack(step.takenAt);
  }

  #backOff(reason: RetryReason, statedWaitMs: number): NextStep | undefined {
    const { clock, random, budget, observe, route } = this.#parts;
    const delayMs = Math.max(statedWaitMs, fullJitterMs(this.countedAttempts, random()));
    if (delayMs >= this.#lifeline.leftMs) return undefined;
    const takenAt = clock.now();
    if (budget.take(takenAt)) return { kind: 'back-off', reason, delayMs, takenAt };
    observe({ kind: 'retry-budget-exhausted', route, reason });
    return undefined;
  }
}
