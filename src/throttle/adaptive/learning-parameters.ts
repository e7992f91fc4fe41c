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
  readonly windowRateShare: number;
  readonly bucketRateShare: number;
  /** Of a window's limit: what may be spent at once after a quiet time; the rest is spread over the window. */
  readonly burstShare: number;
  /** Of a window: the most that its ends are kept clear of. */
  readonly guardShare: number;
  /** Mean deviations of the round trip that count as jitter. */
  readonly jitterDeviations: number;
  /** A limit that holds is tried again after this time in which it was the limit ... */
  readonly probeIntervalMs: number;
  /** ... and this many calls ... */
  readonly probeIntervalCalls: number;
  /** ... or fewer, when it has changed within `unsettledMs`. */
  readonly probeIntervalCallsAfterChange: number;
  readonly afterChangeMs: number;
  /** The first trial of a new idea; the time doubles with each that is refused. */
  readonly firstProbeDelayMs: number;
  /** A trial begins with the known rate times this. */
  readonly probeGain: number;
  /** Calls beyond the known limit that may be unanswered at once. */
  readonly maxUnansweredProbeCalls: number;
  /** Unforeseen refusals that an idea survives: of a bucket, of the others. */
  readonly bucketToleratedRefusals: number;
  readonly otherToleratedRefusals: number;
  /** What an unforeseen refusal leaves of the rate. */
  readonly toleratedRefusalFactor: number;
  /** What is left of a refused rate while nothing explains the refusals. */
  readonly decreaseFactor: number;
  /** False: every refusal cuts, also those of calls that were under way at the one before. */
  readonly decreasesOncePerEpoch: boolean;
  /** False: after a pause all go on at once. */
  readonly probesAfterPause: boolean;
  /** False: rates grow as well while the application does not use them. */
  readonly growsOnlyWhenUsed: boolean;
}

export const DEFAULT_LEARNING: LearningParameters = {
  kinds: ['sliding-window', 'fixed-window', 'first-call-window', 'bucket', 'concurrency'],
  countsRefused: true,
  windowSeconds: [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 86_400],
  windowRateShare: 0.99,
  bucketRateShare: 0.985,
  burstShare: 0.25,
  guardShare: 0.02,
  jitterDeviations: 3,
  probeIntervalMs: 30_000,
  probeIntervalCalls: 400,
  probeIntervalCallsAfterChange: 60,
  afterChangeMs: 900_000,
  firstProbeDelayMs: 1_000,
  probeGain: 1.25,
  maxUnansweredProbeCalls: 1,
  bucketToleratedRefusals: 5,
  otherToleratedRefusals: 1,
  toleratedRefusalFactor: 0.95,
  decreaseFactor: 0.85,
  decreasesOncePerEpoch: true,
  probesAfterPause: true,
  growsOnlyWhenUsed: true,
};
