/**
 * Whether opening a connection is worth a try: after several failures in a row that span some time, only one probe per
 * interval is, so that nobody waits for an upstream that is known to be away. A short restart of the upstream does not
 * open it: its callers are better served by their retries. Pure: time is a parameter.
 */

/** Failures in a row that open it, if they span at least `OPENING_SPAN_MS`. */
const FAILURE_THRESHOLD = 5;
const FAILURE_MIN_SPAN_MS = 1000;
/** From the end of one probe to the start of the next. */
export const PROBE_INTERVAL_MS = 1000;

/** `probe` is a try that decides for all. */
export type ConnectDecision = 'try' | 'probe' | 'refuse';

type State =
  | { readonly kind: 'closed' }
  /** Nothing is tried before `probeAt`. */
  | { readonly kind: 'open'; readonly probeAt: number }
  | { readonly kind: 'probing' };

export class UpstreamCircuitBreaker {
  #state: State = { kind: 'closed' };
  #failures = 0;
  /** When the first connection of the current row of failures was begun. */
  #firstFailureAt = 0;

  /** Asked before each connection; whoever is not refused tells how it went. @param now monotonic milliseconds */
  decide(now: number): ConnectDecision {
    if (this.#state.kind === 'closed') return 'try';
    if (this.#state.kind === 'probing' || now < this.#state.probeAt) return 'refuse';
    this.#state = { kind: 'probing' };
    return 'probe';
  }

  /** A connection opened. @returns whether this ends a time of refusals */
  recordSuccess(): boolean {
    const wasClosed = this.#state.kind === 'closed';
    this.#state = { kind: 'closed' };
    this.#failures = 0;
    return !wasClosed;
  }

  /** A connection that was begun at `startedAt` did not open. @returns whether refusals begin with this */
  recordFailure(turn: ConnectDecision, startedAt: number, now: number): boolean {
    if (turn === 'probe' && this.#state.kind === 'probing') {
      this.#state = { kind: 'open', probeAt: now + PROBE_INTERVAL_MS };
      return false;
    }
    if (this.#state.kind !== 'closed') return false;
    this.#firstFailureAt = this.#failures === 0 ? startedAt : Math.min(this.#firstFailureAt, startedAt);
    this.#failures++;
    if (this.#failures < FAILURE_THRESHOLD || now - this.#firstFailureAt < FAILURE_MIN_SPAN_MS) return false;
    this.#state = { kind: 'open', probeAt: now + PROBE_INTERVAL_MS };
    return true;
  }
}
