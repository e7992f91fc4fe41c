/**
 * What to do after an attempt: hand its outcome on, or try again, and for which reason. Pure; whether there is time,
 * budget and a permit for it is asked elsewhere.
 *
 * - A call refused for its rate was not carried out (429, RFC 6585 §4): safe for every method, unless the configuration says
 *   otherwise.
 * - 401 was not carried out either: one replay with a fresh token.
 * - A connection that never opened carried nothing: every method.
 * - 408, 502, 503, 504 and a broken connection leave open whether the call was carried out: idempotent methods only
 *   (RFC 9110 §9.2.2), or requests with an Idempotency-Key where the configuration trusts it.
 */
import type { RetryReason } from '../telemetry/events.ts';

export interface RetryRules {
  /** The first attempt included; retries of calls that were refused for their rate do not count. */
  readonly attempts: number;
  readonly unsafeOn429: boolean;
  readonly trustIdempotencyKey: boolean;
}

export interface RetryFacts {
  readonly method: string;
  readonly hasIdempotencyKey: boolean;
  /** The whole request body is in memory (or there is none). */
  readonly isReplayable: boolean;
  /** Attempts so far that were not refused for their rate, this one included. */
  readonly countedAttempts: number;
  /** A 401 has already been answered with a fresh token. */
  readonly hasReplayedAfter401: boolean;
}

export type AttemptOutcomeFacts =
  | { readonly kind: 'answer'; readonly status: number; readonly isRateLimited: boolean }
  | { readonly kind: 'failure'; readonly failure: { readonly kind: string; readonly permanent: boolean } };

export type RetryDecision =
  /** The outcome is final. */
  | { readonly kind: 'finish' }
  /** Back to the queue's head until the throttle gives a permit. */
  | { readonly kind: 'await-permit' }
  /** Once more with a newer token, if there is one. */
  | { readonly kind: 'refresh-token' }
  /** Once more after a backoff, if the budget allows. */
  | { readonly kind: 'back-off'; readonly reason: Exclude<RetryReason, 'rate_limited' | 'unauthorized'> };

const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE', 'QUERY', 'PROPFIND']);
const TRANSIENT_STATUS = new Set([408, 502, 503, 504]);
const FINISH: RetryDecision = { kind: 'finish' };

export function decideRetry(rules: RetryRules, facts: RetryFacts, outcome: AttemptOutcomeFacts): RetryDecision {
  if (!facts.isReplayable) return FINISH;
  const isIdempotent = IDEMPOTENT.has(facts.method) || (rules.trustIdempotencyKey && facts.hasIdempotencyKey);
  if (outcome.kind === 'answer') {
    if (outcome.isRateLimited) return isIdempotent || rules.unsafeOn429 ? { kind: 'await-permit' } : FINISH;
    if (outcome.status === 401) return facts.hasReplayedAfter401 ? FINISH : { kind: 'refresh-token' };
  }
  if (facts.countedAttempts >= rules.attempts) return FINISH;
  if (outcome.kind === 'answer') {
    return isIdempotent && TRANSIENT_STATUS.has(outcome.status) ? { kind: 'back-off', reason: 'status' } : FINISH;
  }
  if (outcome.failure.permanent) return FINISH;
  if (outcome.failure.kind === 'unreachable') return { kind: 'back-off', reason: 'connect' };
  return isIdempotent && outcome.failure.kind === 'reset' ? { kind: 'back-off', reason: 'reset' } : FINISH;
}
