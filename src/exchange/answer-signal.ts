/** What an answer's head tells the throttle: how the attempt ended for it, and what it says about a rate limit. */
import { readRateLimitSignal, type RateLimitSignal } from '../throttle/rate-limit-signal.ts';
import type { AttemptResult } from '../throttle/throttle.ts';
import { answerField, type AnswerHead } from '../upstream/attempt.ts';

const RATE_LIMIT_FIELD = /^(?:retry-after|(?:x-)?rate-?limit.*)$/i;

/**
 * Most answers say nothing about a rate limit: they cost one look at their names.
 * @param wallNow epoch milliseconds
 * @returns undefined when there is no such field, unless the status is one
 */
export function readAnswerSignal(head: AnswerHead, wallNow: number): RateLimitSignal | undefined {
  const saysSomething =
    head.status === 429 || head.fields.some((part, at) => at % 2 === 0 && RATE_LIMIT_FIELD.test(part));
  return saysSomething ? readRateLimitSignal(head.status, (name) => answerField(head, name), wallNow) : undefined;
}

/** A 503 is a complaint of the rate only when it says how long; whether it is believed is the governor's. */
export function asAttemptResult(status: number, signal: RateLimitSignal | undefined): AttemptResult {
  // An answer of a server in trouble is no success: it neither widens what may be in flight nor raises the rate.
  if (signal === undefined) return status < 500 ? { kind: 'accepted' } : { kind: 'unknown' };
  const isComplaint = status === 429 || (status === 503 && signal.statedWaitMs !== undefined);
  if (isComplaint) return { kind: 'rate-limited', signal };
  return status < 500 ? { kind: 'accepted', hint: signal } : { kind: 'unknown' };
}
