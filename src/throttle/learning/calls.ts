/** The calls that were made and what became of them, as far as limits are inferred from it (pure). */
import type { Grant } from '../grant.ts';
import { CallLog } from './call-log.ts';
import type { Evidence } from './limiter-model.ts';
import { RoundTrip } from './round-trip.ts';

const LONGEST_WINDOW_MS = 86_400_000;
const LOGGED_CALLS = 65_536;

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

  /** @param jitterDeviations mean deviations of the round trip that count as jitter */
  constructor(jitterDeviations: number) {
    this.#roundTrip = new RoundTrip(jitterDeviations);
  }

  /** By how much arrivals may be nearer or further apart than departures, milliseconds. */
  get jitterMs(): number {
    return this.#roundTrip.jitterMs;
  }

  granted(now: number): void {
    this.accepted.add(now);
    this.sent.add(now);
    this.pending.add(now);
  }

  answered(now: number, { at }: Grant): void {
    this.pending.remove(at);
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
    this.pending.remove(at);
  }

  withdrawn({ at }: Grant): void {
    this.pending.remove(at);
    this.accepted.remove(at);
    this.sent.remove(at);
  }

  /** Calls per second that were accepted within this time, at least 1. */
  seenPerSecond(now: number, withinMs: number): number {
    return Math.max(1, (this.accepted.count(now - withinMs, Infinity) * 1000) / withinMs);
  }
}
