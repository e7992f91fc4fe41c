/** The retry policy as a table: every method, outcome and rule. */
import { describe, expect, it } from 'vitest';
import { decideRetry } from '../../src/retry/policy.ts';
import type { AttemptOutcomeFacts, RetryFacts, RetryRules } from '../../src/retry/policy.ts';

const RULES: RetryRules = { attempts: 4, unsafeOn429: true, trustIdempotencyKey: false };
const FACTS: RetryFacts = {
  method: 'GET',
  hasIdempotencyKey: false,
  isReplayable: true,
  countedAttempts: 1,
  hasReplayedAfter401: false,
};
const IDEMPOTENT = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'];
const UNSAFE = ['POST', 'PATCH', 'get', 'UNKNOWN'];
const TRANSIENT = [408, 502, 503, 504];
const FINAL = [200, 204, 301, 304, 400, 403, 404, 409, 425, 500, 501, 505];

const answer = (status: number, isRateLimited = status === 429): AttemptOutcomeFacts => ({
  kind: 'answer',
  status,
  isRateLimited,
});
const failure = (kind: string, permanent = false): AttemptOutcomeFacts => ({
  kind: 'failure',
  failure: { kind, permanent },
});
const OUTCOMES = [
  answer(403, true),
  ...[401, 429, ...TRANSIENT, ...FINAL].map((status) => answer(status)),
  ...['unreachable', 'reset', 'timeout', 'protocol', 'refused', 'aborted'].map((kind) => failure(kind)),
];

describe('decideRetry', () => {
  it.each([...IDEMPOTENT, ...UNSAFE])('%s: a 429 goes back to the queue, a 401 to the token source', (method) => {
    expect(decideRetry(RULES, { ...FACTS, method }, answer(429))).toEqual({ kind: 'await-permit' });
    expect(decideRetry(RULES, { ...FACTS, method }, answer(401))).toEqual({ kind: 'refresh-token' });
    expect(decideRetry(RULES, { ...FACTS, method, hasReplayedAfter401: true }, answer(401))).toEqual({
      kind: 'finish',
    });
  });

  it('a 403 that is a refusal for the rate is as a 429, a plain one is final', () => {
    const careful = { ...RULES, unsafeOn429: false };
    expect(decideRetry(RULES, { ...FACTS, method: 'POST' }, answer(403, true))).toEqual({ kind: 'await-permit' });
    expect(decideRetry(careful, { ...FACTS, method: 'POST' }, answer(403, true))).toEqual({ kind: 'finish' });
    expect(decideRetry(RULES, FACTS, answer(403))).toEqual({ kind: 'finish' });
  });

  it.each([...IDEMPOTENT, ...UNSAFE])('%s: an answer that is no complaint is final', (method) => {
    for (const status of FINAL) expect(decideRetry(RULES, { ...FACTS, method }, answer(status)).kind).toBe('finish');
  });

  it.each(TRANSIENT)('%i is retried for idempotent methods only', (status) => {
    for (const method of IDEMPOTENT) {
      const decision = decideRetry(RULES, { ...FACTS, method }, answer(status));
      expect(decision).toEqual({ kind: 'back-off', reason: 'status' });
    }
    for (const method of UNSAFE) {
      expect(decideRetry(RULES, { ...FACTS, method }, answer(status)).kind).toBe('finish');
    }
  });

  it('a connection that never opened is retried for every method, unless it never can', () => {
    for (const method of [...IDEMPOTENT, ...UNSAFE]) {
      const facts = { ...FACTS, method };
      expect(decideRetry(RULES, facts, failure('unreachable'))).toEqual({ kind: 'back-off', reason: 'connect' });
      expect(decideRetry(RULES, facts, failure('unreachable', true)).kind).toBe('finish');
    }
  });

  it('a reset is retried for idempotent methods; time-outs and broken answers never', () => {
    expect(decideRetry(RULES, FACTS, failure('reset'))).toEqual({ kind: 'back-off', reason: 'reset' });
    expect(decideRetry(RULES, { ...FACTS, method: 'POST' }, failure('reset')).kind).toBe('finish');
    for (const kind of ['timeout', 'protocol', 'refused', 'aborted']) {
      expect(decideRetry(RULES, FACTS, failure(kind)).kind).toBe('finish');
    }
  });

  it('an Idempotency-Key counts only where it is trusted', () => {
    const facts = { ...FACTS, method: 'POST', hasIdempotencyKey: true };
    const trusting = { ...RULES, trustIdempotencyKey: true };
    expect(decideRetry(RULES, facts, answer(503)).kind).toBe('finish');
    expect(decideRetry(trusting, facts, answer(503)).kind).toBe('back-off');
    expect(decideRetry(trusting, facts, failure('reset')).kind).toBe('back-off');
    expect(decideRetry(trusting, { ...facts, hasIdempotencyKey: false }, answer(503)).kind).toBe('finish');
  });

  it('unsafeOn429: false spares unsafe methods alone', () => {
    const careful = { ...RULES, unsafeOn429: false };
    expect(decideRetry(careful, { ...FACTS, method: 'POST' }, answer(429)).kind).toBe('finish');
    expect(decideRetry(careful, { ...FACTS, method: 'PUT' }, answer(429)).kind).toBe('await-permit');
  });

  it('attempts bound everything but 429 and the one replay after a 401', () => {
    for (const outcome of OUTCOMES) {
      const { kind } = decideRetry(RULES, { ...FACTS, countedAttempts: 4 }, outcome);
      const isFree = outcome.kind === 'answer' && (outcome.isRateLimited || outcome.status === 401);
      expect(kind === 'finish').toBe(!isFree);
    }
  });

  it('nothing is repeated without the whole body', () => {
    for (const outcome of OUTCOMES) {
      for (const method of [...IDEMPOTENT, ...UNSAFE]) {
        expect(decideRetry(RULES, { ...FACTS, method, isReplayable: false }, outcome).kind).toBe('finish');
      }
    }
  });
});
