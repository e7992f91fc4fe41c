/** The calls that were sent and their outcomes, as the limiter models need them (pure). */
import type { PermitGrant } from '../pacing/permit-grant.ts';
import { CallLog } from './call-log.ts';
import type { Evidence } from './limiter-model.ts';
import { RoundTripEstimator } from './round-trip-estimator.ts';

const MAX_WINDOW_MS = 86_400_000;
const MAX_LOGGED_CALLS = 65_536;
/** The other calls wait for the response to a window probe for at most this time. */
const PROBE_WAIT_MS = 2_000;

/** Bounded: the oldest calls are dropped first. */
export class CallTracker {
  /** Calls that were accepted, are in flight, or ended without a response. */
  readonly notRefused = new CallLog(MAX_LOGGED_CALLS, MAX_WINDOW_MS);
  /** All calls. Kept from the first refusal on; until then it equals `notRefused`. */
  readonly sent = new CallLog(MAX_LOGGED_CALLS, MAX_WINDOW_MS);
  /** Calls without a response. Their owner adds and removes them. */
  readonly pending: CallLog;
  readonly #roundTripEstimator: RoundTripEstimator;
  #keepsSent = false;
  #acceptedSinceRefusal = 0;
  /** Instant of the window probe without a response; -Infinity without one. */
  #probeSentAt = -Infinity;

  /** @param jitterDeviations mean deviations of the round trip that count as jitter */
  constructor(jitterDeviations: number, pending: CallLog) {
    this.pending = pending;
    this.#roundTripEstimator = new RoundTripEstimator(jitterDeviations);
  }

  /** By how much the distance of two calls can change on their way, milliseconds. */
  get jitterMs(): number {
    return this.#roundTripEstimator.jitterMs;
  }

  /** Smoothed, milliseconds; NaN before the first response. */
  get roundTripMs(): number {
    return this.#roundTripEstimator.meanMs;
  }

  /** Instant up to which the other calls wait for the response to a window probe; -Infinity without one. */
  get probeUntil(): number {
    return this.#probeSentAt + PROBE_WAIT_MS;
  }

  /** @param isWindowProbe the first call of a new window: the others wait for its response */
  recordGrant(now: number, isWindowProbe: boolean): void {
    if (isWindowProbe) this.#probeSentAt = now;
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

  /** Counts an accepted call and returns it as evidence. Once per call: the count makes the next refusal informative. */
  countAccepted(grant: PermitGrant): Evidence {
    const evidence = this.#createEvidence(grant);
    this.#acceptedSinceRefusal++;
    return evidence;
  }

  /** Counts a refused call, after `recordRefused`, and returns it as evidence. Once per call: the next refusal is not informative. */
  countRefused(grant: PermitGrant): Evidence {
    const evidence = this.#createEvidence(grant);
    this.#acceptedSinceRefusal = 0;
    return evidence;
  }

  /** Calls per second not refused within the last `withinMs`, at least 1. */
  recentCallsPerSecond(now: number, withinMs: number): number {
    return Math.max(1, (this.notRefused.count(now - withinMs, Infinity) * 1000) / withinMs);
  }

  #createEvidence({ at, inFlight }: PermitGrant): Evidence {
    const isInformative = this.#acceptedSinceRefusal > 0;
    return { at, jitterMs: this.jitterMs, inFlight, pending: this.pending, isInformative };
  }

  #endProbe(at: number): void {
    if (at === this.#probeSentAt) this.#probeSentAt = -Infinity;
  }
}
