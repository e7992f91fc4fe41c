/**
 * How fast and how many at once: fixed by configuration, or learned from refusals (pure). The learned one paces nothing until
 * the first refusal; then it starts low and doubles each second until the next one, and from there on it cuts at a refusal and
 * returns to the refused rate on a cubic curve (RFC 9438 §4.1): quickly up to it, slowly past it. Growth counts only permits
 * that were waited for, so a rate that the app does not use does not grow.
 */
import type { Grant } from './grant.ts';

/** A rate and a number in flight, and what moves them. */
export interface Pace {
  /** Permits per second; Infinity while unpaced. */
  readonly rate: number;
  readonly inFlightLimit: number;
  /** @param fresh granted after the last refusal */
  accepted(now: number, grant: Grant, fresh: boolean): void;
  /** The first refusal since the last cut, or that of a probe. */
  refused(now: number, grant: Grant): void;
}

/** What the configuration says, whatever happens. */
export class FixedPace implements Pace {
  readonly rate: number;
  readonly inFlightLimit: number;

  constructor(rate: number, maxInFlight: number) {
    this.rate = rate;
    this.inFlightLimit = maxInFlight;
  }

  accepted(): void {
    // Nothing to learn.
  }

  refused(): void {
    // Nothing to learn: the pause alone answers a refusal.
  }
}

const FIRST_IN_FLIGHT = 4;
/** What is left of a rate that was refused. */
const CUT = 0.85;
/** A first estimate rests on thin evidence and is cut deeper. */
const FIRST_CUT = 0.7;
/** The first rate is at least this, whatever little was seen. */
const LEAST_FIRST_RATE = 2;
const LEAST_RATE = 1 / 30;
/** Time in use from a cut back to the refused rate: so long, or so many permits where they are rare. */
const RETURN_MS = 6_000;
const RETURN_PERMITS = 12;

/** `auto`: learns the rate from what is refused, and the number in flight from what is accepted. */
export class LearnedPace implements Pace {
  #rate = Infinity;
  readonly #maxInFlight: number;
  #inFlightLimit: number;
  /** The rate at which the last refusal came; Infinity until a paced one. */
  #refusedRate = Infinity;
  /** Time since the last cut in which permits were waited for, milliseconds. */
  #inUseMs = 0;
  readonly #seen = new RecentCount();

  constructor(maxInFlight: number) {
    this.#maxInFlight = maxInFlight;
    this.#inFlightLimit = Math.min(FIRST_IN_FLIGHT, maxInFlight);
  }

  get rate(): number {
    return this.#rate;
  }

  get inFlightLimit(): number {
    return this.#inFlightLimit;
  }

  accepted(now: number, grant: Grant, fresh: boolean): void {
    if (this.#inFlightLimit < this.#maxInFlight) this.#inFlightLimit++;
    if (this.#rate === Infinity) this.#seen.add(now);
    else if (fresh && grant.waitedFor) this.#grow(1000 / grant.rate);
  }

  refused(now: number, grant: Grant): void {
    if (this.#rate === Infinity) {
      this.#rate = Math.max(LEAST_FIRST_RATE, this.#seen.perSecond(now) * FIRST_CUT);
    } else if (grant.probe) {
      // A refused probe says that the pause was too short more than it says anything of the rate: the mark stays.
      this.#rate = Math.max(LEAST_RATE, this.#rate * CUT);
    } else {
      this.#refusedRate = grant.rate;
      this.#rate = Math.max(LEAST_RATE, grant.rate * CUT);
      this.#inUseMs = 0;
    }
  }

  #grow(intervalMs: number): void {
    const doubled = this.#rate * 2 ** Math.min(1, intervalMs / 1000);
    if (this.#rate < this.#refusedRate * CUT) {
      this.#rate = Math.min(doubled, this.#refusedRate * CUT);
      return;
    }
    if (this.#refusedRate === Infinity) {
      this.#rate = doubled;
      return;
    }
    this.#inUseMs += intervalMs;
    const returnMs = Math.max(RETURN_MS, (RETURN_PERMITS * 1000) / this.#refusedRate);
    const curve = 1 + (1 - CUT) * (this.#inUseMs / returnMs - 1) ** 3;
    this.#rate = Math.min(doubled, Math.max(this.#rate, this.#refusedRate * curve));
  }
}

/** Counts over about the last second: the running second, and as much of the one before as still reaches into it. */
class RecentCount {
  #second = -Infinity;
  #running = 0;
  #before = 0;

  add(now: number): void {
    this.#turn(now);
    this.#running++;
  }

  perSecond(now: number): number {
    this.#turn(now);
    return this.#running + this.#before * (1 - (now / 1000 - this.#second));
  }

  #turn(now: number): void {
    const second = Math.floor(now / 1000);
    if (second === this.#second) return;
    this.#before = second === this.#second + 1 ? this.#running : 0;
    this.#running = 0;
    this.#second = second;
  }
}
