/** Rate and number in flight, as the governor uses them (pure): fixed by configuration here, learned in adaptive/. */
import type { PermitGrant } from './permit-grant.ts';
import type { LearnedLimit, LimitUsage } from '../throttle.ts';

/** A wait that a refusal stated. */
export interface StatedWait {
  /** Milliseconds from the refusal. */
  readonly waitMs: number;
  /** The upstream may accept calls this much earlier, milliseconds; 0: the wait is exact. */
  readonly resolutionMs: number;
}

export interface RatePolicy {
  /** Permits per second; Infinity while unlimited. */
  readonly rate: number;
  /** Permits that may be saved up, at least 1. */
  readonly burst: number;
  readonly inFlightLimit: number;
  /** The upstream limits the number in flight. */
  readonly limitsConcurrency: boolean;
  /** Waits can be computed from the rate. */
  readonly isConfident: boolean;
  /** When the next permit may be granted, apart from rate and slots; a past instant or -Infinity: now. */
  openAt(now: number, isPaused: boolean): number;
  /** @returns true when the call exceeds the selected limit */
  recordGrant(now: number, waitedFor: boolean): boolean;
  /** @param isCurrent granted after the last refusal */
  recordAccepted(now: number, grant: PermitGrant, isCurrent: boolean): void;
  /** The first refusal since the last cut, or that of a probe. */
  recordRefused(now: number, grant: PermitGrant, statedWait?: StatedWait): void;
  /** A refusal of a call that was already in flight at the last refusal. */
  recordLateRefusal(now: number, grant: PermitGrant): void;
  /** The attempt ended without a result. */
  recordEnded(grant: PermitGrant): void;
  /** The attempt was never made. */
  recordUnused(grant: PermitGrant): void;
  /** The learned limit; undefined without one. */
  learned(wallAt: (at: number) => number): LearnedLimit | undefined;
  /** What the chosen limit counts now; undefined without one. Changes nothing. */
  countUsed(now: number): Omit<LimitUsage, 'opensInMs'> | undefined;
  /** What to keep over a restart, as JSON; undefined when there is nothing. */
  snapshot(now: number): object | undefined;
  /** Continues with what an earlier process kept. A malformed snapshot is ignored. */
  restore(now: number, snapshot: unknown, ageMs: number): void;
}

/** The configured rate. Only the pause reacts to a refusal. */
export class FixedRatePolicy implements RatePolicy {
  readonly rate: number;
  readonly burst: number;
  readonly inFlightLimit: number;
  readonly limitsConcurrency = false;
  readonly isConfident = true;

  constructor(rate: number, burst: number, maxInFlight: number) {
    this.rate = rate;
    this.burst = burst;
    this.inFlightLimit = maxInFlight;
  }

  openAt(): number {
    return -Infinity;
  }

  recordGrant(): boolean {
    return false;
  }

  recordAccepted(): void {
    // Nothing to learn.
  }

  recordRefused(): void {
    // Nothing to learn.
  }

  recordLateRefusal(): void {
    // Nothing to learn.
  }

  recordEnded(): void {
    // Nothing to learn.
  }

  recordUnused(): void {
    // Nothing to learn.
  }

  learned(): undefined {
    return undefined;
  }

  countUsed(): undefined {
    return undefined;
  }

  snapshot(): undefined {
    return undefined;
  }

  restore(): void {
    // Nothing to learn.
  }
}
