/**
 * When a failing token endpoint may be requested again. Closed: after a short backoff. After some consecutive failures the circuit opens, and
 * single requests (half-open) decide: soon while a caller waits, rarely otherwise, never before the endpoint's own `Retry-After`. Pure.
 */
import { chooseRetryDelays, isLasting } from './refresh-schedule.ts';
import type { TokenRequestFailure } from '../endpoint/token-response.ts';
import type { CircuitPhase } from '../token.ts';

const FAILURES_TO_OPEN = 5;

/**
 * A half-open request that hangs must not hide for its whole time-out that the endpoint is back. Every eighth has no such limit,
 * because the endpoint may have become that slow.
 */
const HALF_OPEN_TIMEOUT_MS = 3_500;
const UNTIMED_EVERY = 8;

/** Only this class writes the public fields. */
export class TokenCircuitBreaker {
  phase: CircuitPhase = 'closed';
  /** Consecutive. */
  failures = 0;
  #lastingFailures = 0;
  /** Since it opened. */
  #halfOpenRequests = 0;
  /** The next attempt while a caller waits, and the next one otherwise, which is not earlier. */
  #eagerAt = 0;
  #idleAt = 0;

  /** When the endpoint may be requested; valid only after a failure. @param isWanted a caller waits for a token */
  nextAttemptAt(isWanted: boolean): number {
    return isWanted ? this.#eagerAt : this.#idleAt;
  }

  recordAttemptStart(): void {
    if (this.phase !== 'open') return;
    this.phase = 'half-open';
    this.#halfOpenRequests++;
  }

  /** The time limit of the attempt in flight; undefined = none beside the request's own. */
  get attemptTimeoutMs(): number | undefined {
    const isUntimed = this.phase !== 'half-open' || this.#halfOpenRequests % UNTIMED_EVERY === 0;
    return isUntimed ? undefined : HALF_OPEN_TIMEOUT_MS;
  }

  recordNoResult(): void {
    if (this.phase === 'half-open') this.phase = 'open';
  }

  recordSuccess(): void {
    this.failures = 0;
    this.#lastingFailures = 0;
    this.#halfOpenRequests = 0;
    this.phase = 'closed';
  }

  /** The request that started at `startedAt` brought no token. @param random in [0, 1) */
  recordFailure(failure: TokenRequestFailure, startedAt: number, now: number, random: number): void {
    this.failures++;
    if (isLasting(failure)) this.#lastingFailures++;
    if (this.phase !== 'closed' || this.failures >= FAILURES_TO_OPEN) this.phase = 'open';
    const { eagerMs, idleMs } = chooseRetryDelays(failure, {
      failures: this.failures,
      lastingFailures: this.#lastingFailures,
      isCircuitOpen: this.phase === 'open',
      requestDurationMs: now - startedAt,
      random,
    });
    this.#eagerAt = now + eagerMs;
    this.#idleAt = now + idleMs;
  }
}
