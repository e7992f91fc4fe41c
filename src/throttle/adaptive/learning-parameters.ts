/**
 * The constants of `auto` (pure), in one place so that the benchmark can leave out a rule. docs/adr/0026 says where
 * each comes from.
 */
import { COUNTER_KINDS, type CounterKind } from './counter-bank.ts';

export interface LearningParameters {
  readonly kinds: readonly CounterKind[];
  /** Share of a learned rate that is used, for windows and for buckets. */
  readonly windowRateShare: number;
  readonly bucketRateShare: number;
  /** Share of a window's limit that may be spent at once after a quiet time, until probes have confirmed the window. */
  readonly burstShare: number;
  /** Mean deviations of the round trip that count as jitter. */
  readonly jitterDeviations: number;
  /** A stable limit is probed again after this time in use and this number of calls. */
  readonly limitProbeIntervalMs: number;
  readonly limitProbeIntervalCalls: number;
  /** Calls instead of `limitProbeIntervalCalls`, for `afterChangeMs` after the limit has changed. */
  readonly limitProbeIntervalCallsAfterChange: number;
  readonly afterChangeMs: number;
  /** Until a limit has explained enough refusals, it is probed after this time or this number of calls, whichever comes first. */
  readonly untrustedLimitProbeMs: number;
  readonly untrustedLimitProbeCalls: number;
  /** A probe begins at the learned rate times this. */
  readonly limitProbeGain: number;
  /** Calls beyond the learned limit that may be without a response at a time. */
  readonly maxOpenLimitProbes: number;
  /** Multiplies the margin at an unexpected refusal below a trusted limit. */
  readonly toleratedRefusalFactor: number;
}

export const DEFAULT_LEARNING: LearningParameters = {
  kinds: COUNTER_KINDS,
  windowRateShare: 0.99,
  bucketRateShare: 0.985,
  burstShare: 0.05,
  jitterDeviations: 3,
  limitProbeIntervalMs: 30_000,
  limitProbeIntervalCalls: 400,
  limitProbeIntervalCallsAfterChange: 60,
  afterChangeMs: 900_000,
  untrustedLimitProbeMs: Infinity,
  untrustedLimitProbeCalls: Infinity,
  limitProbeGain: 1.25,
  maxOpenLimitProbes: 1,
  toleratedRefusalFactor: 0.98,
};

/** A fleet begins from less: what its replicas did alone. One process loses by early probes, docs/adr/0015 has the figures. */
export const FLEET_LEARNING: LearningParameters = {
  ...DEFAULT_LEARNING,
  // How many calls of other replicas are in flight is not known.
  kinds: COUNTER_KINDS.filter((kind) => kind !== 'concurrency'),
  untrustedLimitProbeMs: 10_000,
  untrustedLimitProbeCalls: 60,
};
