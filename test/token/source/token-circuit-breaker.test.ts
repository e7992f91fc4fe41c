import { describe, expect, test } from 'vitest';
import { TokenCircuitBreaker } from '../../../src/token/source/token-circuit-breaker.ts';
import type { TokenRequestFailure } from '../../../src/token/endpoint/token-response.ts';

const DOWN = { kind: 'unavailable', detail: 'down' } as const;

/** Fails as often as told, each failure 10 ms after its request, one right after the other is allowed. */
function fail(circuit: TokenCircuitBreaker, times: number, answer: TokenRequestFailure = DOWN, random = 0.5): number {
  let now = 0;
  for (let n = 0; n < times; n++) {
    circuit.recordAttemptStart();
    circuit.recordFailure(answer, now, now + 10, random);
    now += 10;
  }
  return now;
}

test('five failures in a row open it, a success closes it', () => {
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

test('a probe that fails opens it again, one that is abandoned leaves it open', () => {
  const circuit = new TokenCircuitBreaker();
  fail(circuit, 6);
  expect(circuit.phase).toBe('open');
  circuit.recordAttemptStart();
  circuit.recordNoResult();
  expect([circuit.phase, circuit.failures]).toEqual(['open', 6]);
});

describe('when to ask again', () => {
  const waits = (
    times: number,
    random: number,
    answer: TokenRequestFailure = DOWN,
  ): [eagerMs: number, idleMs: number] => {
    const circuit = new TokenCircuitBreaker();
    const now = fail(circuit, times, answer, random);
    return [circuit.nextAttemptAt(true) - now, circuit.nextAttemptAt(false) - now];
  };

  test.each([
    [1, 0, 200],
    [1, 0.999999, 1_000],
    [2, 0.999999, 2_000],
    [3, 0.999999, 4_000],
    [4, 0.999999, 4_750],
  ])('closed, after %d failures (chance %d): %d ms, whoever waits', (times, random, ms) => {
    expect(waits(times, random).map(Math.round)).toEqual([ms, ms]);
  });

  test.each([
    [0, 4_740, 60_000],
    [0.999999, 3_990, 54_000],
  ])('open (chance %d): a probe %d ms later for somebody, %d ms for nobody', (random, eagerMs, idleMs) => {
    expect(waits(5, random).map(Math.round)).toEqual([eagerMs, idleMs]);
    expect(waits(500, random).map(Math.round)).toEqual([eagerMs, idleMs]);
  });

  test('a probe that took long is followed soon, and never at once', () => {
    const circuit = new TokenCircuitBreaker();
    fail(circuit, 5);
    circuit.recordFailure(DOWN, 1_000, 4_000, 0);
    expect(circuit.nextAttemptAt(true)).toBe(5_750);
    circuit.recordFailure(DOWN, 10_000, 20_000, 0);
    expect(circuit.nextAttemptAt(true)).toBe(21_000);
  });

  test.each([
    ['a stated wait is kept, whoever waits', { ...DOWN, retryAfterMs: 120_000 }, 120_000],
    ['and is bounded', { ...DOWN, retryAfterMs: 86_400_000 }, 300_000],
    ['a rejection', { kind: 'rejected', detail: 'no' } as const, 60_000],
  ])('%s', (_name, answer, ms) => {
    expect(waits(1, 0.5, answer)).toEqual([ms, ms]);
    expect(waits(9, 0.5, answer)).toEqual([ms, ms]);
  });

  test('a short stated wait does not hurry anybody', () => {
    expect(waits(5, 0, { ...DOWN, retryAfterMs: 0 })).toEqual([4_740, 60_000]);
  });
});

test('a probe may take 3.5 s, every eighth as long as it needs; a first request always', () => {
  const circuit = new TokenCircuitBreaker();
  circuit.recordAttemptStart();
  expect(circuit.attemptTimeoutMs).toBeUndefined();
  fail(circuit, 5);
  const patience = Array.from({ length: 17 }, () => {
    circuit.recordAttemptStart();
    const { attemptTimeoutMs } = circuit;
    circuit.recordFailure(DOWN, 0, 10, 0);
    return attemptTimeoutMs;
  });
  const quick: (number | undefined)[] = Array<number>(7).fill(3_500);
  expect(patience).toEqual([...quick, undefined, ...quick, undefined, 3_500]);
  circuit.recordAttemptStart();
  circuit.recordSuccess();
  circuit.recordAttemptStart();
  expect(circuit.attemptTimeoutMs).toBeUndefined();
});
