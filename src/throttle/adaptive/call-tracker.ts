/** The calls that were made and what became of them, as far as limits are inferred from it (pure). */
import type { PermitGrant } from '../pacing/permit-grant.ts';
import { CallLog } from './call-log.ts';
import type { Evidence } from './limiter-model.ts';
import { RoundTripEstimator } from './round-trip-estimator.ts';

const MAX_WINDOW_MS = 86_400_000;
const MAX_LOGGED_CALLS = 65_536;
/** A scout without an answer holds up the others for at most so long. */
const PROBE_WAIT_MS = 2_000;

/** Grows with the calls up to a bound, and forgets the oldest first. */
export class CallTracker {
  /** Not known to be refused: accepted, or under way, or ended without an answer. */
  readonly notRefused = new CallLog(MAX_LOGGED_CALLS, MAX_WINDOW_MS);
  /** All that were made. */
  readonly sent = new CallLog(MAX_LOGGED_CALLS, MAX_WINDOW_MS);
  /** Those without an answer. */
  readonly pending = new CallLog(MAX_LOGGED_CALLS, MAX_WINDOW_MS);
  readonly #roundTripEstimator: RoundTripEstimator;
  #acceptedSinceRefusal = 0;
  /** Instant of the call for whose answer the others wait; -Infinity when there is none. */
  #probeSentAt = -Infinity;

  /** @param jitterDeviations mean deviations of the round trip that count as jitter */
  constructor(jitterDeviations: number) {
    this.#roundTripEstimator = new RoundTripEstimator(jitterDeviations);
  }

  /** By how much arrivals may be nearer or further apart than departures, milliseconds. */
  get jitterMs(): number {
    return this.#roundTripEstimator.jitterMs;
  }

  /** Until when the answer to a scout is waited for; -Infinity without one. */
  get probeUntil(): number {
    return this.#probeSentAt + PROBE_WAIT_MS;
  }

  /** @param isScout the others are to wait for its answer */
  recordGrant(now: number, isScout = false): void {
    if (isScout) this.#probeSentAt = now;
    this.notRefused.add(now);
    this.sent.add(now);
    this.pending.add(now);
  }

  recordResponse(now: number, { at }: PermitGrant): void {
    this.#removePending(at);
    this.#roundTripEstimator.addSample(now - at);
  }

  /** What the answer to this call says; a refused one is to be noted first. */
  evaluateResponse({ at, inFlight }: PermitGrant, isAccepted: boolean): Evidence {
    const telling = this.#acceptedSinceRefusal > 0;
    this.#acceptedSinceRefusal = isAccepted ? this.#acceptedSinceRefusal + 1 : 0;
    return { at, jitterMs: this.jitterMs, inFlight: inFlight, pending: this.pending, isInformative: telling };
  }

  recordRefused({ at }: PermitGrant): void {
    this.notRefused.remove(at);
  }

  recordEnded({ at }: PermitGrant): void {
    this.#removePending(at);
  }

  recordUnused({ at }: PermitGrant): void {
    this.#removePending(at);
    this.notRefused.remove(at);
    this.sent.remove(at);
  }

  #removePending(at: number): void {
    this.pending.remove(at);
    if (at === this.#probeSentAt) this.#probeSentAt = -Infinity;
  }

  /** Calls per second that were accepted within this time, at least 1. */
  recentCallsPerSecond(now: number, withinMs: number): number {
    return Math.max(1, (this.notRefused.count(now - withinMs, Infinity) * 1000) / withinMs);
  }
}
