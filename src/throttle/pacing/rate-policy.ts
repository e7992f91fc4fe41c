/** Rate and number in flight that hold now (pure): fixed by configuration, or learned from calls in adaptive/. A fleet wraps either. */
import type { RateLimitSignal } from '../signals/rate-limit-signal.ts';
import type { TakenPermits } from '../declared/declared-limits.ts';
import type { LearnedLimit, LimitUsage } from '../throttle.ts';

/** A granted permit, kept until its attempt has ended: a response is evaluated by the circumstances of its call. */
export interface PermitGrant {
  /** Monotonic instant. */
  readonly at: number;
  /** Rises by one with every grant. */
  readonly serial: number;
  /** Rises with every pause: the response to a grant of an older epoch says nothing new. */
  readonly epoch: number;
  /** Permits per second at the time. */
  readonly rate: number;
  /** The first call after a pause; the others wait for its response. */
  readonly isPauseProbe: boolean;
  /** A request waited for this permit: the application uses the whole rate. */
  readonly isWaitedFor: boolean;
  /** Exceeds the selected limit, to see whether it was raised. */
  readonly isLimitProbe: boolean;
  /** Calls without a response at the time. */
  readonly inFlight: number;
  /** As the permit's. Default: `at` */
  startedAt?: number;
  /** Of the declared limits; undefined without one. */
  readonly declared?: TakenPermits | undefined;
}

/** A wait that a refusal may have stated. */
export type StatedWait = Pick<RateLimitSignal, 'statedWaitMs' | 'waitResolutionMs'>;

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
  /** Learns from each call; undefined where only the pause reacts to a refusal. */
  readonly learner: RateLearner | undefined;
}

export interface RateLearner {
  /** Nothing was refused yet: calls are recorded, and not paced. */
  readonly isUnlimited: boolean;
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
