/**
 * How fast and how many at once, as the governor sees it (pure): fixed by configuration here, learned in learning/.
 */
import type { PermitGrant } from './permit-grant.ts';
import type { LearnedLimit } from '../throttle.ts';

/** A rate and a number in flight, and what moves them. */
export interface RatePolicy {
  /** Permits per second; Infinity while unpaced. */
  readonly rate: number;
  /** Permits that may be saved up, at least 1. */
  readonly burst: number;
  readonly inFlightLimit: number;
  /** True when the number in flight is what holds the application back, and not only our own bound. */
  readonly limitsConcurrency: boolean;
  /** True when waits can be computed from the rate. */
  readonly isConfident: boolean;
  /** When the next permit may be granted beside what rate and slots allow; a past instant or -Infinity: now. */
  openAt(now: number, isPaused: boolean): number;
  /** Notes a permit. True when it goes beyond what is believed to be allowed. */
  recordGrant(now: number, waitedFor: boolean): boolean;
  /** @param fresh granted after the last refusal */
  recordAccepted(now: number, grant: PermitGrant, fresh: boolean): void;
  /** The first refusal since the last cut, or that of a probe. */
  recordRefused(now: number, grant: PermitGrant): void;
  /** A further refusal of a call that was under way already. */
  recordLateRefusal(now: number, grant: PermitGrant): void;
  /** The attempt ended without a result. */
  recordEnded(grant: PermitGrant): void;
  /** The attempt was never made. */
  recordUnused(grant: PermitGrant): void;
  /** What is believed, for people; undefined when nothing is or needs to be. */
  learned(wallAt: (at: number) => number): LearnedLimit | undefined;
  /** What is worth keeping, as JSON; undefined when nothing is. */
  snapshot(now: number): object | undefined;
  /** Takes up what an earlier process has kept; whatever cannot be that is ignored. */
  restore(now: number, snapshot: unknown, ageMs: number): void;
}

/** What the configuration says, whatever happens: the pause alone answers a refusal. */
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

  snapshot(): undefined {
    return undefined;
  }

  restore(): void {
    // Nothing to learn.
  }
}
