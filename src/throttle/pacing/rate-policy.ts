/** Rate and number in flight that hold now (pure): fixed by configuration, or learned from calls in adaptive/. A fleet wraps either. */
import type { LearnedLimit, LimitUsage } from '../throttle.ts';
import type { CallResult, PermitGrant } from './gate.ts';

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

/** A call that was accepted: instant of its grant, and how long its response took in milliseconds. */
export interface AcceptedCall {
  readonly at: number;
  readonly ms: number;
}

/** What learns from each call. */
export interface RateLearner {
  /** Nothing was refused yet: calls are recorded, and not paced. */
  readonly isUnlimited: boolean;
  /** When the next call may go; -Infinity: now. @param isPaused a penalty counts during a pause only. Default: false */
  nextAt(now: number, isPaused?: boolean): number;
  /** A call goes. @returns true when it exceeds the selected limit */
  take(now: number, isWaitedFor: boolean): boolean;
  /** The call was never made. */
  giveBack(now: number, grant: PermitGrant): void;
  /** @returns true when a refusal concerns this call alone: the upstream refuses a share of the calls at any rate */
  settle(now: number, grant: PermitGrant, result: CallResult): boolean;
  /**
   * Counts calls from before this learner, in order.
   * @param inFlightLimit calls that may be in flight at least
   * @param formerRate calls per second that were accepted before. Default: none
   */
  adopt(calls: readonly AcceptedCall[], inFlightLimit: number, formerRate?: number): void;
  /** Other limits explain the refusals: what was learned from them is given up, and the calls count on. */
  forgetRefusals(): void;
  /** The learned limit; undefined without one. */
  learned(wallAt: (at: number) => number): LearnedLimit | undefined;
  /** What the chosen limit counts now; undefined without one. Changes nothing. */
  countUsed(now: number): Omit<LimitUsage, 'opensInMs'> | undefined;
  /** What to keep over a restart, as JSON; undefined when there is nothing. */
  snapshot(now: number): object | undefined;
  /** Continues with what an earlier process kept. A malformed snapshot is ignored. */
  restore(now: number, snapshot: unknown, ageMs: number): void;
}
