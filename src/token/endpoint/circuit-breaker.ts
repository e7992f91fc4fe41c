/**
 * When a failing token endpoint may be asked again. Closed, it is asked with a short backoff; after some failures in a row
 * the circuit opens, and one probe decides for all (half-open): soon while somebody waits for a token, seldom while nobody
 * does, and never before a time that the endpoint itself has named. Pure: instants and chance come in as arguments.
 */
import { chooseRetryDelays } from '../source/refresh-schedule.ts';
import type { TokenRequestFailure } from './token-response.ts';
import type { CircuitPhase } from '../token.ts';

/** Failures in a row that open it. */
const FAILURES_TO_OPEN = 5;

/**
 * How long a probe may take: one that hangs must not hide for its whole time-out that the endpoint is back. Every so many
 * take what they need, since an endpoint may have become that slow.
 */
const PROBE_TIMEOUT_MS = 3_500;
const UNTIMED_PROBE_EVERY = 8;

export class TokenCircuitBreaker {
  #failures = 0;
  #phase: CircuitPhase = 'closed';
  /** Since it opened. */
  #probes = 0;
  /** The next try for somebody who waits, and the next one in any case; no earlier than the former. */
  #eagerAt = 0;
  #idleAt = 0;

  get phase(): CircuitPhase {
    return this.#phase;
  }

  /** Failures in a row. */
  get failures(): number {
    return this.#failures;
  }

  /** When the endpoint may be asked; meaningless without failures. @param isWanted somebody waits for a token */
  nextAttemptAt(isWanted: boolean): number {
    return isWanted ? this.#eagerAt : this.#idleAt;
  }

  /** A request begins. */
  recordAttemptStart(): void {
    if (this.#phase !== 'open') return;
    this.#phase = 'half-open';
    this.#probes++;
  }

  /** How long the request that was begun may take; undefined: as long as it needs. */
  get attemptTimeoutMs(): number | undefined {
    const isPatient = this.#phase !== 'half-open' || this.#probes % UNTIMED_PROBE_EVERY === 0;
    return isPatient ? undefined : PROBE_TIMEOUT_MS;
  }

  /** The request that was begun says nothing of the endpoint. */
  recordNoResult(): void {
    if (this.#phase === 'half-open') this.#phase = 'open';
  }

  /** The endpoint gave a token. */
  recordSuccess(): void {
    this.#failures = 0;
    this.#probes = 0;
    this.#phase = 'closed';
  }

  /**
   * The request that began at `startedAt` brought no token.
   * @param random in [0, 1)
   */
  recordFailure(answer: TokenRequestFailure, startedAt: number, now: number, random: number): void {
    this.#failures++;
    if (this.#phase !== 'closed' || this.#failures >= FAILURES_TO_OPEN) this.#phase = 'open';
    const { eagerMs, idleMs } = chooseRetryDelays(answer, {
      failures: this.#failures,
      isCircuitOpen: this.#phase === 'open',
      requestDurationMs: now - startedAt,
      random,
    });
    this.#eagerAt = now + eagerMs;
    this.#idleAt = now + idleMs;
  }
}
