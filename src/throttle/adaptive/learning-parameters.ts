/**
 * The constants of `auto` (pure), in one place so that the benchmark can change one and leave out a rule. docs/adr/0012 says where
 * each comes from.
 */
import { LIMITER_KINDS, type LimiterKind } from './limiter-model.ts';

/** Defaults: DEFAULT_LEARNING. */
export interface LearningParameters {
  /** Kinds of limiters that are modelled. */
  readonly kinds: readonly LimiterKind[];
  /** Model sliding windows in which refused calls count as well. */
  readonly countsRefused: boolean;
  /** Window lengths that are modelled, seconds. */
  readonly windowSeconds: readonly number[];
  /** Share of a learned rate that is used, for windows and for buckets. */
  readonly windowRateShare: number;
  readonly bucketRateShare: number;
  /** Share of a window's limit that may be spent at once after a quiet time; the rest is spread over the window. */
  readonly burstShare: number;
  /** Share of a window: the longest distance to keep from its ends because of jitter. */
  readonly guardShare: number;
  /** Mean deviations of the round trip that count as jitter. */
  readonly jitterDeviations: number;
  /** A stable limit is probed again after this time in use and this number of calls. */
  readonly probeIntervalMs: number;
  readonly probeIntervalCalls: number;
  /** Calls instead of `probeIntervalCalls`, for `afterChangeMs` after the limit has changed. */
  readonly probeIntervalCallsAfterChange: number;
  readonly afterChangeMs: number;
  /** Delay of the first probe of a new model; doubles with each refused probe. */
  readonly firstProbeDelayMs: number;
  /** A probe begins at the learned rate times this. */
  readonly probeGain: number;
  /** Calls beyond the learned limit that may be without a response at a time. */
  readonly maxUnansweredProbeCalls: number;
  /** Unexpected refusals that a trusted model survives: a bucket, the others. */
  readonly bucketToleratedRefusals: number;
  readonly otherToleratedRefusals: number;
  /** Multiplies the safety factor at an unexpected refusal. */
  readonly toleratedRefusalFactor: number;
  /** Multiplies a refused rate while no model explains the refusals. */
  readonly decreaseFactor: number;
  /** False: the refusals of calls already in flight cut the rate again. */
  readonly decreasesOncePerEpoch: boolean;
  /** False: after a pause all calls continue at once. */
  readonly probesAfterPause: boolean;
  /** False: rates grow while the application does not use them. */
  readonly growsOnlyWhenUsed: boolean;
  /** Refusals in a row that a model must have explained before it is selected. */
  readonly minExplainedRefusals: number;
}

export const DEFAULT_LEARNING: LearningParameters = {
  kinds: LIMITER_KINDS,
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
  minExplainedRefusals: 0,
};
