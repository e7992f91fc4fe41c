/**
 * The numbers that the learning rests on (pure), in one place so that the benchmark can change one and leave out a rule.
 * docs/adr/0012 says where each comes from.
 */
import type { LimiterKind } from './limiter-model.ts';

/** What an application may leave alone. */
export interface LearningParameters {
  /** Ideas of how the upstream limits that are weighed. */
  readonly kinds: readonly LimiterKind[];
  /** Whether windows are weighed as well in which refused calls count. */
  readonly countsRefused: boolean;
  /** Lengths of windows that are weighed, seconds. */
  readonly windowSeconds: readonly number[];
  /** Of a known rate: what is used of it, for windows and for buckets. */
  readonly windowShare: number;
  readonly bucketShare: number;
  /** Of a window's limit: what may be spent at once after a quiet time; the rest is spread over the window. */
  readonly burstShare: number;
  /** Of a window: the most that its ends are kept clear of. */
  readonly guardShare: number;
  /** Mean deviations of the round trip that count as jitter. */
  readonly jitterDeviations: number;
  /** A limit that holds is tried again after this time in which it was the limit ... */
  readonly trialEveryMs: number;
  /** ... and this many calls ... */
  readonly trialEveryCalls: number;
  /** ... or fewer, when it has changed within `unsettledMs`. */
  readonly unsettledCalls: number;
  readonly unsettledMs: number;
  /** The first trial of a new idea; the time doubles with each that is refused. */
  readonly firstTrialMs: number;
  /** A trial begins with the known rate times this. */
  readonly trialGain: number;
  /** Calls beyond the known limit that may be unanswered at once. */
  readonly trialCallsAtOnce: number;
  /** Unforeseen refusals that an idea survives: of a bucket, of the others. */
  readonly bucketStrikes: number;
  readonly otherStrikes: number;
  /** What an unforeseen refusal leaves of the rate. */
  readonly strikeShare: number;
  /** What is left of a refused rate while nothing explains the refusals. */
  readonly cutShare: number;
  /** False: every refusal cuts, also those of calls that were under way at the one before. */
  readonly cutsOncePerEpoch: boolean;
  /** False: after a pause all go on at once. */
  readonly probesFirst: boolean;
  /** False: rates grow as well while the application does not use them. */
  readonly growsInUseOnly: boolean;
}

export const DEFAULT_LEARNING: LearningParameters = {
  kinds: ['sliding-window', 'fixed-window', 'first-call-window', 'bucket', 'concurrency'],
  countsRefused: true,
  windowSeconds: [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 86_400],
  windowShare: 0.99,
  bucketShare: 0.985,
  burstShare: 0.25,
  guardShare: 0.02,
  jitterDeviations: 3,
  trialEveryMs: 30_000,
  trialEveryCalls: 400,
  unsettledCalls: 60,
  unsettledMs: 900_000,
  firstTrialMs: 1_000,
  trialGain: 1.25,
  trialCallsAtOnce: 1,
  bucketStrikes: 5,
  otherStrikes: 1,
  strikeShare: 0.95,
  cutShare: 0.85,
  cutsOncePerEpoch: true,
  probesFirst: true,
  growsInUseOnly: true,
};
