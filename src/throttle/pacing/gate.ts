/**
 * What the gates of pacing know of a call (pure): which limits hold it back, its permit, how it ended, and what follows. The gates are the pause,
 * the learner, what responses state as remaining, the rate and the declared limits; a call goes when all of them let it go.
 */
import type { StatedQuota } from '../../platform/rate-limit-fields/stated-quota.ts';
import type { TakenPermits } from '../declared/counted-limit.ts';
import type { LimitSet } from '../declared/limit-set.ts';
import type { RateLimitSignal } from '../signals/rate-limit-signal.ts';

/** What of a request decides which declared limits hold it back. */
export interface PacedCall {
  /** The call may use their reserve. */
  readonly isHigh: boolean;
  /** The limits of its operation; undefined where only limits of all calls count it. */
  readonly operationLimits: LimitSet | undefined;
}

/** A call of no limited operation. */
export const ANY_CALL: PacedCall = { isHigh: false, operationLimits: undefined };

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
  /** Exceeds what responses state as remaining. Default: false. */
  readonly exceedsStated?: boolean | undefined;
  /** Calls without a response at the time. */
  readonly inFlight: number;
  /** As the permit's. Default: `at` */
  startedAt?: number;
  /** Undefined without declared limits. */
  readonly declared?: TakenPermits | undefined;
  /** No limit held the call back: a refusal of it says nothing about a pace. Default: false. */
  readonly isObserved?: boolean | undefined;
}

/** A wait that a refusal may have stated. */
export type StatedWait = Pick<RateLimitSignal, 'statedWaitMs' | 'waitResolutionMs'>;

/** How a call ended, as the governor reads its response. */
export interface CallResult {
  /** `ended`: no response, or one that says nothing about the rate. */
  readonly kind: 'accepted' | 'refused' | 'ended';
  /** The call was granted after the last refusal: the others say nothing new. */
  readonly isCurrent: boolean;
  /** What an accepted response states as remaining. */
  readonly quotas: readonly StatedQuota[];
  /** Calls granted since this one. */
  readonly laterCalls: number;
  readonly wait?: StatedWait | undefined;
  /** The upstream refuses everything for a while (503): a reason to pause, which says nothing about the limit. Default: false. */
  readonly isUnavailable?: boolean | undefined;
  /** No response to the sent call came in time. Default: false */
  readonly isTimedOut?: boolean | undefined;
}

/** A call that says nothing. */
export const ENDED: CallResult = { kind: 'ended', isCurrent: true, quotas: [], laterCalls: 0 };

/** What follows for the exchange from how a call ended. */
export type LimitDecision =
  | { readonly kind: 'unlimited' }
  /** Calls are paced, and the exchange sees no limit. */
  | { readonly kind: 'assumed' }
  | { readonly kind: 'limited'; readonly pauseMs: number; readonly stated: boolean }
  /** The refusal concerns this call alone, which should wait so long before its next attempt. */
  | { readonly kind: 'alone'; readonly delayMs: number };
