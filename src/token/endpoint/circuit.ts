/**
 * When a failing token endpoint may be asked again. Closed, it is asked with a short backoff; after some failures in a row
 * the circuit opens, and one probe decides for all (half-open): soon while somebody waits for a token, seldom while nobody
 * does, and never before a time that the endpoint itself has named. Pure: instants and chance come in as arguments.
 */
import { chooseRetryDelays } from '../source/refresh-schedule.ts';
import type { FailedAnswer } from './token-answer.ts';
import type { CircuitPhase } from '../token.ts';

/** Failures in a row that open it. */
const OPENING_FAILURES = 5;

/**
 * How long a probe may take: one that hangs must not hide for its whole time-out that the endpoint is back. Every so many
 * take what they need, since an endpoint may have become that slow.
 */
const PROBE_PATIENCE_MS = 3_500;
const PATIENT_PROBE_EVERY = 8;

export class Circuit {
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
  nextAt(isWanted: boolean): number {
    return isWanted ? this.#eagerAt : this.#idleAt;
  }

  /** A request begins. */
  begin(): void {
    if (this.#phase !== 'open') return;
    this.#phase = 'half-open';
    this.#probes++;
  }

  /** How long the request that was begun may take; undefined: as long as it needs. */
  get patienceMs(): number | undefined {
    const isPatient = this.#phase !== 'half-open' || this.#probes % PATIENT_PROBE_EVERY === 0;
    return isPatient ? undefined : PROBE_PATIENCE_MS;
  }

  /** The request that was begun says nothing of the endpoint. */
  abandon(): void {
    if (this.#phase === 'half-open') this.#phase = 'open';
  }

  /** The endpoint gave a token. */
  close(): void {
    this.#failures = 0;
    this.#probes = 0;
    this.#phase = 'closed';
  }

  /**
   * The request that began at `startedAt` brought no token.
   * @param random in [0, 1)
   */
  fail(answer: FailedAnswer, startedAt: number, now: number, random: number): void {
    this.#failures++;
    if (this.#phase !== 'closed' || this.#failures >= OPENING_FAILURES) this.#phase = 'open';
    const { eagerMs, idleMs } = chooseRetryDelays(answer, {
      failures: this.#failures,
      isOpen: this.#phase === 'open',
      tookMs: now - startedAt,
      random,
    });
    this.#eagerAt = now + eagerMs;
    this.#idleAt = now + idleMs;
  }
}
