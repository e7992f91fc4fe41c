import { describe, expect, test } from 'vitest';
import { TokenCircuitBreaker } from '../../../src/token/source/token-circuit-breaker.ts';
import type { TokenRequestFailure } from '../../../src/token/endpoint/token-response.ts';

const DOWN = { kind: 'unavailable', detail: 'down' } as const;

/** Records this number of failures, each 10 ms after its request; returns the time. */
function fail(circuit: TokenCircuitBreaker, times: number, failure: TokenRequestFailure = DOWN, random = 0.5): number {
  let now = 0;
  for (let n = 0; n < times; n++) {
    circuit.recordAttemptStart();
    circuit.recordFailure(failure, now, now + 10, random);
    now += 10;
  }
  return now;
}

test('five consecutive failures open it, a success closes it', () => {
  const circuit = new TokenCircuitBreaker();
  fail(circuit, 4);
  expect([circuit.phase, circuit.failures]).toEqual(['closed', 4]);
  circuit.recordSuccess();
  fail(circuit, 4);
  expect(circuit.phase).toBe('closed');
  fail(circuit, 1);
  expect([circuit.phase, circuit.failures]).toEqual(['open', 5]);
  circuit.recordAttemptStart();
  expect(circuit.phase).toBe('half-open');
  circuit.recordSuccess();
  expect([circuit.phase, circuit.failures]).toEqual(['closed', 0]);
});

test('it is open after a probe that fails or has no result', () => {
  const circuit = new TokenCircuitBreaker();
  fail(circuit, 6);
  expect(circuit.phase).toBe('open');
  circuit.recordAttemptStart();
  circuit.recordNoResult();
  expect([circuit.phase, circuit.failures]).toEqual(['open', 6]);
});

describe('the next attempt', () => {
  const waits = (
    times: number,
    random: number,
    failure: TokenRequestFailure = DOWN,
  ): [eagerMs: number, idleMs: number] => {
    const circuit = new TokenCircuitBreaker();
    const now = fail(circuit, times, failure, random);
    return [circuit.nextAttemptAt(true) - now, circuit.nextAttemptAt(false) - now];
  };

  test.each([
    [1, 0, 200],
    [1, 0.999999, 1_000],
    [2, 0.999999, 2_000],
    [3, 0.999999, 4_000],
    [4, 0.999999, 4_750],
  ])('closed, after %d failures (random %d): in %d ms with or without a waiting caller', (times, random, ms) => {
    expect(waits(times, random).map(Math.round)).toEqual([ms, ms]);
  });

  test.each([
    [0, 4_740, 60_000],
    [0.999999, 3_990, 54_000],
  ])('open (random %d): in %d ms with a waiting caller, else in %d ms', (random, eagerMs, idleMs) => {
    expect(waits(5, random).map(Math.round)).toEqual([eagerMs, idleMs]);
    expect(waits(500, random).map(Math.round)).toEqual([eagerMs, idleMs]);
  });

  test('follows a slow probe soon, but not at once', () => {
    const circuit = new TokenCircuitBreaker();
    fail(circuit, 5);
    circuit.recordFailure(DOWN, 1_000, 4_000, 0);
    expect(circuit.nextAttemptAt(true)).toBe(5_750);
    circuit.recordFailure(DOWN, 10_000, 20_000, 0);
    expect(circuit.nextAttemptAt(true)).toBe(21_000);
  });

  test.each([
    ['obeys Retry-After', { ...DOWN, retryAfterMs: 120_000 }, 120_000],
    ['limits Retry-After to 300 s', { ...DOWN, retryAfterMs: 86_400_000 }, 300_000],
    ['waits 60 s after a rejection', { kind: 'rejected', detail: 'no' } as const, 60_000],
  ])('%s', (_name, failure, ms) => {
    expect(waits(1, 0.5, failure)).toEqual([ms, ms]);
    expect(waits(9, 0.5, failure)).toEqual([ms, ms]);
  });

  test('follows the first 401 without a reason after 10 s, each later rejection after 60 s, until there is a token', () => {
    const circuit = new TokenCircuitBreaker();
    const waitAfter = (failure: TokenRequestFailure): number => {
      circuit.recordFailure(failure, 0, 10, 0.5);
      expect(circuit.nextAttemptAt(false)).toBe(circuit.nextAttemptAt(true));
      return circuit.nextAttemptAt(true) - 10;
    };
    const unexplained = { kind: 'rejected', isUnexplained: true, detail: 'no' } as const;
    expect(waitAfter(DOWN)).toBeLessThan(5_000);
    expect([waitAfter(unexplained), waitAfter(unexplained), waitAfter(unexplained)]).toEqual([10_000, 60_000, 60_000]);
    circuit.recordFailure(DOWN, 0, 10, 0.5);
    expect(waitAfter(unexplained)).toBe(60_000);
    circuit.recordSuccess();
    expect([waitAfter({ kind: 'rejected', detail: 'no' }), waitAfter(unexplained)]).toEqual([60_000, 60_000]);
  });

  test('is not earlier because of a short Retry-After', () => {
    expect(waits(5, 0, { ...DOWN, retryAfterMs: 0 })).toEqual([4_740, 60_000]);
  });
});

test('a probe has a time limit of 3.5 s, every eighth probe and the first request have none', () => {
  const circuit = new TokenCircuitBreaker();
  circuit.recordAttemptStart();
  expect(circuit.attemptTimeoutMs).toBeUndefined();
  fail(circuit, 5);
  const timeouts = Array.from({ length: 17 }, () => {
    circuit.recordAttemptStart();
    const { attemptTimeoutMs } = circuit;
    circuit.recordFailure(DOWN, 0, 10, 0);
    return attemptTimeoutMs;
  });
  const limited: (number | undefined)[] = Array<number>(7).fill(3_500);
  expect(timeouts).toEqual([...limited, undefined, ...limited, undefined, 3_500]);
  circuit.recordAttemptStart();
  circuit.recordSuccess();
  circuit.recordAttemptStart();
  expect(circuit.attemptTimeoutMs).toBeUndefined();
});
