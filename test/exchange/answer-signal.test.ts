/** What an answer's status and fields mean to the throttle. */
import { describe, expect, it } from 'vitest';
import { asAttemptResult, readAnswerSignal } from '../../src/exchange/answer-signal.ts';

function resultOf(status: number, ...fields: string[]) {
  return asAttemptResult(status, readAnswerSignal({ status, statusText: '', fields }, Date.UTC(2026, 10, 1)));
}

describe('an answer', () => {
  it.each([200, 201, 304, 400, 401, 403, 404])('of %i was let through: it counts as accepted', (status) => {
    expect(resultOf(status)).toEqual({ kind: 'accepted' });
  });

  it.each([500, 502, 503, 504])('of %i says nothing of the limit', (status) => {
    expect(resultOf(status)).toEqual({ kind: 'unknown' });
    expect(resultOf(status, 'X-RateLimit-Remaining', '5', 'X-RateLimit-Reset', '9')).toEqual({ kind: 'unknown' });
  });

  it('of 429 is a refusal with or without fields, of 503 with a stated wait only', () => {
    expect(resultOf(429)).toMatchObject({ kind: 'rate-limited', signal: { statedWaitMs: undefined } });
    expect(resultOf(503, 'Retry-After', '2')).toMatchObject({ kind: 'rate-limited', signal: { statedWaitMs: 2000 } });
  });

  it('that says how much is left passes it on', () => {
    const hint = { remaining: 5, resetInMs: 9000 };
    expect(resultOf(200, 'X-RateLimit-Remaining', '5', 'x-ratelimit-reset', '9')).toMatchObject({
      kind: 'accepted',
      hint,
    });
  });
});
