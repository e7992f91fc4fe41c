/**
 * The circuit breaker of connections: after several failures in a row over some time, requests fail at once but for one probe per interval. A
 * short restart of the upstream does not open it: retries cover that. Pure: time is a parameter.
 */

/** Failures in a row that open it, if they span at least `FAILURE_MIN_SPAN_MS`. */
const FAILURE_THRESHOLD = 5;
const FAILURE_MIN_SPAN_MS = 1000;
/** From the end of one probe to the start of the next. */
export const PROBE_INTERVAL_MS = 1000;

/** The result of a `probe` decides for all. */
export type ConnectDecision = 'try' | 'probe' | 'fail-fast';

export class UpstreamCircuitBreaker {
  /** Nothing is tried before: Infinity during a probe, undefined while the breaker is closed. */
  #probeAt: number | undefined;
  #failures = 0;
  /** When the first connection of the failures in a row was begun. */
  #firstFailureAt = 0;

  /** Called before each connection; unless it fails fast, its result is to be recorded. @param now monotonic milliseconds */
  decide(now: number): ConnectDecision {
    if (this.#probeAt === undefined) return 'try';
    if (now < this.#probeAt) return 'fail-fast';
    this.#probeAt = Infinity;
    return 'probe';
  }

  /** A connection opened. @returns whether this closes the breaker */
  recordSuccess(): boolean {
    const wasOpen = this.#probeAt !== undefined;
    this.#probeAt = undefined;
    this.#failures = 0;
    return wasOpen;
  }

  /** A connection that was begun at `startedAt` did not open. @returns whether this opens the breaker */
  recordFailure(decision: ConnectDecision, startedAt: number, now: number): boolean {
    if (decision === 'probe' && this.#probeAt === Infinity) this.#probeAt = now + PROBE_INTERVAL_MS;
    if (this.#probeAt !== undefined) return false;
    this.#firstFailureAt = this.#failures === 0 ? startedAt : Math.min(this.#firstFailureAt, startedAt);
    this.#failures++;
    if (this.#failures < FAILURE_THRESHOLD || now - this.#firstFailureAt < FAILURE_MIN_SPAN_MS) return false;
    this.#probeAt = now + PROBE_INTERVAL_MS;
    return true;
  }
}
