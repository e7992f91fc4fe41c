/**
 * The governor (pure): which rate, which pause and how many in flight now, judged from how attempts end. Two ways to pace share
 * one way to pause. With a number for `rate` the pace is the configured one and only refusals hold it back. With `auto` nothing is
 * paced and the number in flight grows from 4 until the first refusal; from then on the rate is learned (pace.ts), and what
 * accepted answers say is left is kept to. A refusal pauses all; then one probe goes first. An answer to an attempt granted before the
 * last pause teaches nothing new, except a longer stated wait. It grants nothing itself: bucket, slots and timers are the gate's.
 */
import type { Random } from '../clock.ts';
import type { Grant } from './grant.ts';
import { FixedPace, LearnedPace, type Pace } from './pace.ts';
import { SharedPause } from './pause.ts';
import type { RateLimitSignal } from './rate-limit-signal.ts';
import { StatedAllowance } from './stated-allowance.ts';
import type { AttemptResult } from './throttle.ts';

/** What a governor is made from. */
export interface GovernorOptions {
  /** Permits per second, or `auto`. */
  readonly rate: number | 'auto';
  readonly maxInFlight: number;
  readonly maxPauseMs: number;
  readonly random: Random;
}

/** What came of an attempt's result. */
export type Verdict =
  { readonly kind: 'unlimited' } | { readonly kind: 'limited'; readonly pauseMs: number; readonly stated: boolean };

/** A time in which nothing is granted, as far as it is known ahead. */
interface Hold {
  /** When the next permit may be granted; in the past when nothing holds. */
  readonly until: number;
  /** True when the upstream stated it. */
  readonly stated: boolean;
}

/** Time is a parameter of every method. Results are reported in any order, each grant's at most once. */
export interface Governor {
  /** Permits per second now; Infinity while unpaced. */
  readonly rate: number;
  readonly inFlightLimit: number;
  /** True when the rate is configured, so that waits can be computed from it. */
  readonly exact: boolean;
  /** A permit may be granted from this instant on, as far as is known now; past or -Infinity means at once. */
  openAt(now: number): number;
  /** The pause or used-up allowance that holds at `now`. */
  hold(now: number): Hold;
  /** Milliseconds left of the pause; 0 when not paused. */
  pausedMs(now: number): number;
  /** True when the pause is so long that nobody new should wait for it; `probeIsTaken`: somebody waits who can probe it. */
  turnsAway(now: number, probeIsTaken: boolean): boolean;
  /** Notes that a permit is granted. */
  granted(now: number, waitedFor: boolean): Grant;
  /** Learns from a result. */
  reported(now: number, grant: Grant, result: AttemptResult): Verdict;
  /** The attempt ended without a result. */
  ended(now: number, grant: Grant): void;
  /** The attempt was never made. */
  withdrawn(now: number, grant: Grant): void;
}

/** A governor for a configured `rate`, or one that learns it. */
export function createGovernor(options: GovernorOptions): Governor {
  const { rate, maxInFlight } = options;
  const pace = rate === 'auto' ? new LearnedPace(maxInFlight) : new FixedPace(rate, maxInFlight);
  return new PausingGovernor(options, pace, rate !== 'auto');
}

const UNLIMITED: Verdict = { kind: 'unlimited' };

class PausingGovernor implements Governor {
  readonly exact: boolean;
  readonly #pace: Pace;
  readonly #pause: SharedPause;
  readonly #allowance: StatedAllowance;
  #epoch = 0;
  #serial = 0;
  #unavailableBefore = false;

  constructor(options: GovernorOptions, pace: Pace, exact: boolean) {
    this.exact = exact;
    this.#pace = pace;
    this.#pause = new SharedPause(options);
    this.#allowance = new StatedAllowance(options.maxPauseMs);
  }

  get rate(): number {
    return this.#pace.rate;
  }

  get inFlightLimit(): number {
    return this.#pace.inFlightLimit;
  }

  openAt(now: number): number {
    return Math.max(this.#pause.openAt, this.#allowance.openAt(now));
  }

  hold(now: number): Hold {
    const allowanceAt = this.#allowance.openAt(now);
    // While only a probe's answer is awaited nobody knows for how long, so that nothing is said to hold.
    const pausedAt = this.#pause.leftMs(now) > 0 ? this.#pause.openAt : -Infinity;
    if (allowanceAt > pausedAt) return { until: allowanceAt, stated: true };
    return { until: pausedAt, stated: this.#pause.stated };
  }

  pausedMs(now: number): number {
    return Math.max(this.#pause.leftMs(now), this.#allowance.openAt(now) - now, 0);
  }

  turnsAway(now: number, probeIsTaken: boolean): boolean {
    return this.#pause.turnsAway(now, probeIsTaken);
  }

  granted(now: number, waitedFor: boolean): Grant {
    if (this.#allowance.hasRunOut(now)) this.#pause.demandProbe(now);
    this.#allowance.spend(now);
    const probe = this.#pause.granted(now);
    return { at: now, serial: ++this.#serial, epoch: this.#epoch, rate: this.rate, probe, waitedFor };
  }

  reported(now: number, grant: Grant, result: AttemptResult): Verdict {
    switch (result.kind) {
      case 'accepted':
        this.#accepted(now, grant, result.hint);
        return UNLIMITED;
      case 'rate-limited':
        return this.#refused(now, grant, result.signal);
      case 'unknown':
        this.ended(now, grant);
        return UNLIMITED;
    }
  }

  ended(now: number, grant: Grant): void {
    if (grant.probe && grant.epoch === this.#epoch) this.#pause.probeEnded(now);
  }

  withdrawn(now: number, grant: Grant): void {
    this.#allowance.giveBack();
    if (grant.probe && grant.epoch === this.#epoch) this.#pause.probeWithdrawn(now);
  }

  #accepted(now: number, grant: Grant, hint: RateLimitSignal | undefined): void {
    const fresh = grant.epoch === this.#epoch;
    this.#unavailableBefore = false;
    if (fresh && grant.probe) this.#pause.probeAccepted();
    this.#pace.accepted(now, grant, fresh);
    if (hint !== undefined && !this.exact) this.#allowance.learn(now, grant, hint, this.#serial - grant.serial);
  }

  #refused(now: number, grant: Grant, signal: RateLimitSignal): Verdict {
    const unavailable = signal.status === 503;
    const agreed = this.#unavailableBefore;
    this.#unavailableBefore = unavailable && signal.statedWaitMs !== undefined;
    // One node of many may be going away: a 503 holds for all only when the next answer says the same.
    if (unavailable && !(agreed && this.#unavailableBefore)) {
      this.ended(now, grant);
      return UNLIMITED;
    }
    const fresh = grant.epoch === this.#epoch;
    if (fresh) {
      if (grant.probe) this.#pause.probeRefused();
      if (!unavailable) this.#pace.refused(now, grant);
      this.#epoch++;
    }
    this.#pause.begin(now, signal.statedWaitMs, fresh);
    return { kind: 'limited', pauseMs: this.#pause.leftMs(now), stated: this.#pause.stated };
  }
}
