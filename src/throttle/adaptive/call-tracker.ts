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
  /** All calls. Kept from the first refusal on: until then it would be the same as `notRefused`. */
  readonly sent = new CallLog(MAX_LOGGED_CALLS, MAX_WINDOW_MS);
  /** Calls without a response. Their owner adds and removes them. */
  readonly pending: CallLog;
  readonly #roundTripEstimator: RoundTripEstimator;
  #keepsSent = false;
  #acceptedSinceRefusal = 0;
  /** Instant of the call for whose answer the others wait; -Infinity when there is none. */
  #probeSentAt = -Infinity;

  /** @param jitterDeviations mean deviations of the round trip that count as jitter */
  constructor(jitterDeviations: number, pending: CallLog) {
    this.pending = pending;
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
    if (this.#keepsSent) this.sent.add(now);
  }

  /** From now on `sent` and `notRefused` may differ. */
  keepSent(): void {
    if (this.#keepsSent) return;
    this.#keepsSent = true;
    this.sent.copyFrom(this.notRefused);
  }

  recordResponse(now: number, { at }: PermitGrant): void {
    this.#endProbe(at);
    this.#roundTripEstimator.addSample(now - at);
  }

  /** What the answer to this call says; a refused one is to be noted first. */
  evaluateResponse({ at, inFlight }: PermitGrant, isAccepted: boolean): Evidence {
    const telling = this.#acceptedSinceRefusal > 0;
    this.#acceptedSinceRefusal = isAccepted ? this.#acceptedSinceRefusal + 1 : 0;
    return { at, jitterMs: this.jitterMs, inFlight: inFlight, pending: this.pending, isInformative: telling };
  }

  recordRefused({ at }: PermitGrant): void {
    this.keepSent();
    this.notRefused.remove(at);
  }

  recordEnded({ at }: PermitGrant): void {
    this.#endProbe(at);
  }

  recordUnused({ at }: PermitGrant): void {
    this.#endProbe(at);
    this.notRefused.remove(at);
    if (this.#keepsSent) this.sent.remove(at);
  }

  #endProbe(at: number): void {
    if (at === this.#probeSentAt) this.#probeSentAt = -Infinity;
  }

  /** Calls per second that were accepted within this time, at least 1. */
  recentCallsPerSecond(now: number, withinMs: number): number {
    return Math.max(1, (this.notRefused.count(now - withinMs, Infinity) * 1000) / withinMs);
  }
}
