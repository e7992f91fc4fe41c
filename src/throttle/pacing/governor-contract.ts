/**
 * What a governor is asked and promises, in words that its gate shares (pure). How it judges is governor.ts's.
 */
import type { Random } from '../../platform/clock.ts';
import type { PermitGrant } from './permit-grant.ts';
import type { RatePolicy } from './rate-policy.ts';
import type { LearningParameters } from '../adaptive/learning-parameters.ts';
import type { LearnedLimit, PermitReport, RateSettings } from '../throttle.ts';

/** The settings that a governor applies. */
export type GovernorTerms = Omit<RateSettings, 'maxStreams'>;

/** What a governor is made from. */
export interface GovernorOptions extends GovernorTerms {
  readonly random: Random;
  /** For experiments: other numbers than those that were found good. */
  readonly learning?: LearningParameters | undefined;
}

/** What came of an attempt's result. */
export type LimitDecision =
  { readonly kind: 'unlimited' } | { readonly kind: 'limited'; readonly pauseMs: number; readonly stated: boolean };

/** A time in which nothing is granted, as far as it is known ahead. */
export interface GrantPause {
  /** When the next permit may be granted; in the past when nothing holds. */
  readonly endsAt: number;
  /** True when the upstream stated it, or when it is known as well as if it had. */
  readonly isCertain: boolean;
}

/** Time is a parameter of every method. Results are reported in any order, each grant's at most once. */
export interface Governor {
  /** Rate and limits that hold now. */
  readonly ratePolicy: Pick<RatePolicy, 'rate' | 'burst' | 'inFlightLimit' | 'limitsConcurrency' | 'isConfident'>;
  /** True when the rate is configured. */
  readonly hasConfiguredRate: boolean;
  /** A permit may be granted from this instant on, as far as is known now; past or -Infinity means at once. */
  openAt(now: number): number;
  /** The pause or used-up allowance that holds at `now`. */
  currentPause(now: number): GrantPause;
  /** Milliseconds left of the pause; 0 when not paused. */
  pausedMs(now: number): number;
  /** True when the pause is so long that nobody new should wait for it; `probeIsTaken`: somebody waits who can probe it. */
  rejectsNew(now: number, probeIsTaken: boolean): boolean;
  /** True from a pause on until its probe is accepted. */
  readonly isPaused: boolean;
  /** Others who share the limit were refused: pauses as for a refusal here, and learns nothing. */
  joinPause(now: number, statedWaitMs: number | undefined): void;
  /** Notes that a permit is granted. */
  recordGrant(now: number, waitedFor: boolean): PermitGrant;
  /** Learns from a result. */
  recordResult(now: number, grant: PermitGrant, result: PermitReport): LimitDecision;
  /** The attempt ended without a result. */
  recordEnded(now: number, grant: PermitGrant): void;
  /** The attempt was never made. */
  recordUnused(now: number, grant: PermitGrant): void;
  /** What `auto` believes; undefined when nothing is learned. */
  learned(wallAt: (at: number) => number): LearnedLimit | undefined;
  /** What is worth keeping over a restart, as JSON. */
  snapshot(now: number): object | undefined;
  /** Takes up what an earlier process has kept. */
  restore(now: number, snapshot: unknown, ageMs: number): void;
  /** From now on these hold. A pause goes on, and what was learned stays for as long as the rate is to be learned. */
  reconfigure(now: number, terms: GovernorTerms): void;
}
