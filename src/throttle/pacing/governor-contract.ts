/** The governor as its gate uses it (pure). */
import type { Random } from '../../platform/clock.ts';
import type { PermitGrant } from './permit-grant.ts';
import type { RatePolicy } from './rate-policy.ts';
import type { LearningParameters } from '../adaptive/learning-parameters.ts';
import type { LearnedLimit, PermitReport, RateSettings } from '../throttle.ts';

/** The settings that a governor applies. */
export type GovernorTerms = Omit<RateSettings, 'maxStreams'>;

export interface GovernorOptions extends GovernorTerms {
  readonly random: Random;
  /** For experiments. */
  readonly learning?: LearningParameters | undefined;
}

/** What followed from an attempt's result. */
export type LimitDecision =
  { readonly kind: 'unlimited' } | { readonly kind: 'limited'; readonly pauseMs: number; readonly stated: boolean };

/** A time in which no permit is granted, as far as it is known now. */
export interface GrantPause {
  /** When the next permit may be granted; in the past when there is no pause. */
  readonly endsAt: number;
  /** The upstream stated it, or a trusted model computed it. */
  readonly isCertain: boolean;
}

/** Time is a parameter of every method. Results come in any order, each grant's at most once. */
export interface Governor {
  /** Rate and limits that hold now. */
  readonly ratePolicy: Pick<
    RatePolicy,
    'rate' | 'burst' | 'inFlightLimit' | 'limitsConcurrency' | 'isConfident' | 'countUsed'
  >;
  readonly hasConfiguredRate: boolean;
  /** When the next permit may be granted; a past instant or -Infinity: now. */
  openAt(now: number): number;
  /** The pause or used-up quota that holds at `now`. */
  currentPause(now: number): GrantPause;
  /** Milliseconds left of the pause; 0 without one. */
  pausedMs(now: number): number;
  /** True when the pause is so long that no new request should wait for it; `probeIsTaken`: a waiting request can probe it. */
  rejectsNew(now: number, probeIsTaken: boolean): boolean;
  /** True from a pause on until its probe is accepted. */
  readonly isPaused: boolean;
  /** Another replica was refused: pauses as for a refusal here, and learns nothing. */
  joinPause(now: number, statedWaitMs: number | undefined): void;
  recordGrant(now: number, isWaitedFor: boolean): PermitGrant;
  recordResult(now: number, grant: PermitGrant, result: PermitReport): LimitDecision;
  /** The attempt ended without a result. */
  recordEnded(now: number, grant: PermitGrant): void;
  /** The attempt was never made. */
  recordUnused(now: number, grant: PermitGrant): void;
  /** The limit that `auto` has learned; undefined without one. */
  learned(wallAt: (at: number) => number): LearnedLimit | undefined;
  /** What to keep over a restart, as JSON. */
  snapshot(now: number): object | undefined;
  /** Continues with what an earlier process kept. */
  restore(now: number, snapshot: unknown, ageMs: number): void;
  /** A pause goes on. What was learned stays while the rate is `auto`. */
  reconfigure(now: number, terms: GovernorTerms): void;
}
