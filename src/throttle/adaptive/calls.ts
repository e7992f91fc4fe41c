/** The calls that were made and what became of them, as far as limits are inferred from it (pure). */
import type { Grant } from '../pacing/grant.ts';
import { CallLog } from './call-log.ts';
import type { Evidence } from './limiter-model.ts';
import { RoundTrip } from './round-trip.ts';

const LONGEST_WINDOW_MS = 86_400_000;
const LOGGED_CALLS = 65_536;
/** A scout without an answer holds up the others for at most so long. */
const SCOUT_PATIENCE_MS = 2_000;

/** Grows with the calls up to a bound, and forgets the oldest first. */
export class Calls {
  /** Not known to be refused: accepted, or under way, or ended without an answer. */
  readonly accepted = new CallLog(LOGGED_CALLS, LONGEST_WINDOW_MS);
  /** All that were made. */
  readonly sent = new CallLog(LOGGED_CALLS, LONGEST_WINDOW_MS);
  /** Those without an answer. */
  readonly pending = new CallLog(LOGGED_CALLS, LONGEST_WINDOW_MS);
  readonly #roundTrip: RoundTrip;
  #acceptedSinceRefusal = 0;
  /** Instant of the call for whose answer the others wait; -Infinity when there is none. */
  #scoutAt = -Infinity;

  /** @param jitterDeviations mean deviations of the round trip that count as jitter */
  constructor(jitterDeviations: number) {
    this.#roundTrip = new RoundTrip(jitterDeviations);
  }

  /** By how much arrivals may be nearer or further apart than departures, milliseconds. */
  get jitterMs(): number {
    return this.#roundTrip.jitterMs;
  }

  /** Until when the answer to a scout is waited for; -Infinity without one. */
  get scoutedUntil(): number {
    return this.#scoutAt + SCOUT_PATIENCE_MS;
  }

  /** @param isScout the others are to wait for its answer */
  granted(now: number, isScout = false): void {
    if (isScout) this.#scoutAt = now;
    this.accepted.add(now);
    this.sent.add(now);
    this.pending.add(now);
  }

  answered(now: number, { at }: Grant): void {
    this.#left(at);
    this.#roundTrip.measured(now - at);
  }

  /** What the answer to this call says; a refused one is to be noted first. */
  judge({ at, abreast }: Grant, isAccepted: boolean): Evidence {
    const telling = this.#acceptedSinceRefusal > 0;
    this.#acceptedSinceRefusal = isAccepted ? this.#acceptedSinceRefusal + 1 : 0;
    return { at, jitterMs: this.jitterMs, abreast, pending: this.pending, telling };
  }

  refused({ at }: Grant): void {
    this.accepted.remove(at);
  }

  ended({ at }: Grant): void {
    this.#left(at);
  }

  withdrawn({ at }: Grant): void {
    this.#left(at);
    this.accepted.remove(at);
    this.sent.remove(at);
  }

  #left(at: number): void {
    this.pending.remove(at);
    if (at === this.#scoutAt) this.#scoutAt = -Infinity;
  }

  /** Calls per second that were accepted within this time, at least 1. */
  seenPerSecond(now: number, withinMs: number): number {
    return Math.max(1, (this.accepted.count(now - withinMs, Infinity) * 1000) / withinMs);
  }
}
