/** The retry policy as a table: methods, outcomes and rules. */
import { describe, expect, it } from 'vitest';
import { decideAfterFailure, decideAfterResponse } from '../../src/retry/policy.ts';
import type { RetryDecision, RetryFacts, RetryRules } from '../../src/retry/policy.ts';

const RULES: RetryRules = {
  ...{ attempts: 4, unsafeOn429: true, on401: true, trustIdempotencyKey: false },
  idempotencyKey: { header: null },
};
const FACTS: RetryFacts = {
  method: 'GET',
  hasIdempotencyKey: false,
  isReplayable: true,
  countedAttempts: 1,
  hasReplayedAfter401: false,
  hasUnknownAttempt: false,
  random: () => 0.5,
};
const IDEMPOTENT = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'];
const UNSAFE = ['POST', 'PATCH', 'get', 'UNKNOWN'];
const TRANSIENT = [408, 502, 503, 504];
const FINAL = [200, 204, 301, 304, 400, 403, 404, 409, 425, 500, 501, 505];
const FAILURES = ['unreachable', 'reset', 'timeout', 'protocol', 'unsendable', 'aborted'];

const NO_RETRY = { kind: 'no-retry' };
const AWAIT_PERMIT = { kind: 'await-permit', reason: 'rate_limited', delayMs: 0 };
const REFRESH_TOKEN = { kind: 'refresh-token', reason: 'unauthorized' };

interface Case extends Partial<RetryRules>, Partial<RetryFacts> {
  readonly isRateLimited?: boolean;
  readonly statedWaitMs?: number;
}

function afterResponse(status: number, options: Case = {}): RetryDecision {
  const { isRateLimited = status === 429, statedWaitMs, ...rest } = options;
  const merged = { ...RULES, ...FACTS, ...rest };
  return decideAfterResponse(merged, merged, status, { isRateLimited, statedWaitMs });
}

function afterFailure(kind: string, options: Case & { readonly permanent?: boolean } = {}): RetryDecision {
  const { permanent = false, ...rest } = options;
  const merged = { ...RULES, ...FACTS, ...rest };
  return decideAfterFailure(merged, merged, { kind, permanent });
}

describe.each([...IDEMPOTENT, ...UNSAFE])('%s', (method) => {
  it('waits for a permit after a 429 and for a newer token after a 401', () => {
    expect(afterResponse(429, { method })).toEqual(AWAIT_PERMIT);
    expect(afterResponse(401, { method })).toEqual(REFRESH_TOKEN);
    expect(afterResponse(401, { method, hasReplayedAfter401: true })).toEqual(NO_RETRY);
  });

  it('ends with every other response that is not transient', () => {
    for (const status of FINAL) expect(afterResponse(status, { method })).toEqual(NO_RETRY);
  });

  it('is retried when the connection was not opened, unless the failure is permanent', () => {
    expect(afterFailure('unreachable', { method })).toMatchObject({ kind: 'back-off', reason: 'connect' });
    expect(afterFailure('unreachable', { method, permanent: true })).toEqual(NO_RETRY);
  });

  it('is not retried without the whole body', () => {
    const options = { method, isReplayable: false };
    for (const status of [401, 429, ...TRANSIENT, ...FINAL]) expect(afterResponse(status, options)).toEqual(NO_RETRY);
    expect(afterResponse(403, { ...options, isRateLimited: true })).toEqual(NO_RETRY);
    for (const kind of FAILURES) expect(afterFailure(kind, options)).toEqual(NO_RETRY);
  });
});

it('treats a 403 for the rate like a 429, and another 403 as final', () => {
  const post = { method: 'POST', isRateLimited: true };
  expect(afterResponse(403, post)).toEqual(AWAIT_PERMIT);
  expect(afterResponse(403, { ...post, unsafeOn429: false })).toEqual(NO_RETRY);
  expect(afterResponse(403)).toEqual(NO_RETRY);
});

it.each([200, 201, 206, 299])('repeats idempotent methods only after a refusal in the body of a %i', (status) => {
  for (const method of IDEMPOTENT) expect(afterResponse(status, { method, isRateLimited: true })).toEqual(AWAIT_PERMIT);
  for (const method of UNSAFE) expect(afterResponse(status, { method, isRateLimited: true })).toEqual(NO_RETRY);
});

it.each([300, 302, 400, 403, 420, 503, 599])('repeats every method after a configured refusal of %i', (status) => {
  for (const method of [...IDEMPOTENT, ...UNSAFE])
    expect(afterResponse(status, { method, isRateLimited: true, countedAttempts: 9 })).toEqual(AWAIT_PERMIT);
});

it.each(TRANSIENT)('retries idempotent methods only after a %i', (status) => {
  for (const method of IDEMPOTENT) {
    expect(afterResponse(status, { method })).toMatchObject({ kind: 'back-off', reason: 'status' });
  }
  for (const method of UNSAFE) expect(afterResponse(status, { method })).toEqual(NO_RETRY);
});

it('retries idempotent methods after a reset, and no method after a time-out or an invalid response', () => {
  expect(afterFailure('reset')).toMatchObject({ kind: 'back-off', reason: 'reset' });
  expect(afterFailure('reset', { method: 'POST' })).toEqual(NO_RETRY);
  for (const kind of ['timeout', 'protocol', 'unsendable', 'aborted']) expect(afterFailure(kind)).toEqual(NO_RETRY);
});

it('backs off with full jitter, and at least as long as the upstream asks', () => {
  expect(afterResponse(503)).toMatchObject({ delayMs: 50 });
  expect(afterResponse(503, { countedAttempts: 3 })).toMatchObject({ delayMs: 200 });
  expect(afterResponse(503, { statedWaitMs: 2000 })).toMatchObject({ delayMs: 2000 });
  expect(afterFailure('reset', { countedAttempts: 2 })).toMatchObject({ delayMs: 100 });
});

it('takes an Idempotency-Key into account only where it is trusted', () => {
  const post = { method: 'POST', hasIdempotencyKey: true };
  const trusted = { ...post, trustIdempotencyKey: true };
  expect(afterResponse(503, post)).toEqual(NO_RETRY);
  expect(afterResponse(503, trusted).kind).toBe('back-off');
  expect(afterFailure('reset', trusted).kind).toBe('back-off');
  expect(afterResponse(503, { ...trusted, hasIdempotencyKey: false })).toEqual(NO_RETRY);
});

describe('where the sidecar adds the keys', () => {
  const keyed = { method: 'POST', hasIdempotencyKey: true, idempotencyKey: { header: 'X-Request-Id' } };

  it('trusts each key, its own and that of the application', () => {
    for (const status of TRANSIENT) expect(afterResponse(status, keyed)).toMatchObject({ reason: 'status' });
    expect(afterFailure('reset', keyed)).toMatchObject({ reason: 'reset' });
    for (const kind of ['timeout', 'protocol', 'unsendable', 'aborted'])
      expect(afterFailure(kind, keyed)).toEqual(NO_RETRY);
    const unkeyed = { ...keyed, hasIdempotencyKey: false };
    for (const status of TRANSIENT) expect(afterResponse(status, unkeyed)).toEqual(NO_RETRY);
    expect(afterFailure('reset', unkeyed)).toEqual(NO_RETRY);
  });

  it('repeats a 409 that may say that the first attempt is under way, and no other', () => {
    const repeat = { ...keyed, countedAttempts: 2, hasUnknownAttempt: true };
    expect(afterResponse(409, repeat)).toEqual({ kind: 'back-off', reason: 'status', delayMs: 100 });
    expect(afterResponse(409, { ...repeat, statedWaitMs: 3000 })).toMatchObject({ delayMs: 3000 });
    for (const other of [
      { hasUnknownAttempt: false },
      { hasIdempotencyKey: false },
      { hasIdempotencyKey: false, method: 'PUT' },
      { idempotencyKey: { header: null }, trustIdempotencyKey: true },
      { countedAttempts: 4 },
      { isReplayable: false },
    ])
      expect(afterResponse(409, { ...repeat, ...other })).toEqual(NO_RETRY);
  });
});

it('does not retry unsafe methods after a 429 with unsafeOn429: false', () => {
  expect(afterResponse(429, { method: 'POST', unsafeOn429: false })).toEqual(NO_RETRY);
  expect(afterResponse(429, { method: 'PUT', unsafeOn429: false })).toEqual(AWAIT_PERMIT);
});

it('limits the attempts, except after a 429 and the one replay after a 401', () => {
  const spent = { countedAttempts: 4 };
  expect(afterResponse(429, spent)).toEqual(AWAIT_PERMIT);
  expect(afterResponse(403, { ...spent, isRateLimited: true })).toEqual(AWAIT_PERMIT);
  expect(afterResponse(401, spent)).toEqual(REFRESH_TOKEN);
  for (const status of [...TRANSIENT, ...FINAL]) expect(afterResponse(status, spent)).toEqual(NO_RETRY);
  for (const kind of FAILURES) expect(afterFailure(kind, spent)).toEqual(NO_RETRY);
});
