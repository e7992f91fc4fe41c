/**
 * Whether an attempt is repeated, and why. Pure: whether there is time, budget and a permit for it is decided in exchange/request-context.
 *
 * - A call refused for its rate was not carried out (429, RFC 6585 §4): every method, unless the configuration says otherwise. One that
 *   was refused in the body of a success may have been: idempotent methods only.
 * - A 401 was not carried out either: one replay with a newer token.
 * - A connection that never opened carried nothing: every method.
 * - 408, 502, 503, 504 and a broken connection leave open whether the call was carried out: idempotent methods only
 *   (RFC 9110 §9.2.2), or requests with an idempotency key where the configuration trusts it or has the sidecar add it.
 * - A 409 for a repeat with such a key may say that the first attempt is still being carried out
 *   (draft-ietf-httpapi-idempotency-key-header §2.7): it is repeated like a 503.
 */
import type { Random } from '../platform/clock.ts';
import type { RetryReason } from '../telemetry/events.ts';

export interface RetryRules {
  /** The first attempt included; retries of calls that were refused for their rate do not count. */
  readonly attempts: number;
  readonly unsafeOn429: boolean;
  /** A request that was refused with 401 is repeated with another token. */
  readonly on401: boolean;
  readonly trustIdempotencyKey: boolean;
  /** The field in which every request that is not idempotent has a key, which is trusted; null: none is added. */
  readonly idempotencyKey: { readonly header: string | null };
}

export interface RetryFacts {
  readonly method: string;
  readonly hasIdempotencyKey: boolean;
  /** The whole request body is in memory, or there is none. */
  readonly isReplayable: boolean;
  /** Attempts so far that were not refused for their rate, the last one included. */
  readonly countedAttempts: number;
  readonly hasReplayedAfter401: boolean;
  /** An attempt before the last one may have been carried out. */
  readonly hasUnknownAttempt: boolean;
  readonly random: Random;
}

export type RetryDecision =
  | { readonly kind: 'no-retry' }
  /** Back to the queue's head, after a delay of its own, until the throttle gives a permit. */
  | { readonly kind: 'await-permit'; readonly reason: 'rate_limited'; readonly delayMs: number }
  | { readonly kind: 'refresh-token'; readonly reason: 'unauthorized' }
  | { readonly kind: 'back-off'; readonly reason: BackOffReason; readonly delayMs: number };

type BackOffReason = Exclude<RetryReason, 'rate_limited' | 'unauthorized'>;

const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE', 'QUERY', 'PROPFIND']);
const TRANSIENT_STATUS = new Set([408, 502, 503, 504]);
/** Shared, to be compared by `kind`. */
export const NO_RETRY: RetryDecision = { kind: 'no-retry' };
const AWAIT_PERMIT: RetryDecision = { kind: 'await-permit', reason: 'rate_limited', delayMs: 0 };
const REFRESH_TOKEN: RetryDecision = { kind: 'refresh-token', reason: 'unauthorized' };

/**
 * @param isRateLimited the call was refused for its rate and not carried out
 * @param statedWaitMs how long the upstream asks to wait
 */
export function decideAfterResponse(
  rules: RetryRules,
  facts: RetryFacts,
  status: number,
  { isRateLimited, statedWaitMs = 0 }: { readonly isRateLimited: boolean; readonly statedWaitMs: number | undefined },
): RetryDecision {
  if (!isRateLimited && status !== 401 && status !== 409 && !TRANSIENT_STATUS.has(status)) return NO_RETRY;
  if (!facts.isReplayable) return NO_RETRY;
  if (isRateLimited) {
    const isRepeatable = (rules.unsafeOn429 && status >= 300) || isIdempotent(rules, facts);
    return isRepeatable ? AWAIT_PERMIT : NO_RETRY;
  }
  if (status === 401) return facts.hasReplayedAfter401 || !rules.on401 ? NO_RETRY : REFRESH_TOKEN;
  const isUnderWay = facts.hasIdempotencyKey && facts.hasUnknownAttempt && rules.idempotencyKey.header !== null;
  if (status === 409 && !isUnderWay) return NO_RETRY;
  const isAllowed = facts.countedAttempts < rules.attempts && isIdempotent(rules, facts);
  return isAllowed ? backOff('status', facts, statedWaitMs) : NO_RETRY;
}

export function decideAfterFailure(
  rules: RetryRules,
  facts: RetryFacts,
  failure: { readonly kind: string; readonly permanent: boolean },
): RetryDecision {
  if (!facts.isReplayable || facts.countedAttempts >= rules.attempts || failure.permanent) return NO_RETRY;
  if (failure.kind === 'unreachable') return backOff('connect', facts);
  return failure.kind === 'reset' && isIdempotent(rules, facts) ? backOff('reset', facts) : NO_RETRY;
}

/** Whether a call that may have been carried out can safely be sent again (RFC 9110 §9.2.2; QUERY and PROPFIND as registered). */
export function isIdempotentMethod(method: string): boolean {
  return IDEMPOTENT.has(method);
}

function isIdempotent(rules: RetryRules, { method, hasIdempotencyKey }: RetryFacts): boolean {
  const isTrusted = rules.trustIdempotencyKey || rules.idempotencyKey.header !== null;
  return isIdempotentMethod(method) || (isTrusted && hasIdempotencyKey);
}

function backOff(reason: BackOffReason, { countedAttempts, random }: RetryFacts, statedWaitMs = 0): RetryDecision {
  return { kind: 'back-off', reason, delayMs: Math.max(statedWaitMs, fullJitterMs(countedAttempts, random())) };
}

const BACKOFF_BASE_MS = 100;
const BACKOFF_CAP_MS = 10_000;

/**
 * Full-jitter exponential backoff: a random delay between 0 and the step, so that clients do not retry at the same time.
 * @param retry 1 for the first retry
 * @param chance a number in [0, 1)
 * @returns milliseconds to wait
 */
export function fullJitterMs(retry: number, chance: number): number {
  return chance * Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** (retry - 1));
}
