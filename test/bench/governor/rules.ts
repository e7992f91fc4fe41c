/** The governor's rules, and what it is without each: used by `--leave-out` and `--rules`. */
import { DEFAULT_LEARNING, type LearningParameters } from '../../../src/throttle/adaptive/learning-parameters.ts';
import type { LimiterKind } from '../../../src/throttle/adaptive/limiter-model.ts';

/** A rule, in words for the table. */
export interface Rule {
  readonly title: string;
  readonly without: LearningParameters;
  /** False: a refused call goes to the tail of the queue. */
  readonly retriesAtHead?: false;
}

const WINDOWS: readonly LimiterKind[] = ['sliding-window', 'fixed-window', 'first-call-window'];

function without(change: Partial<LearningParameters>): LearningParameters {
  return { ...DEFAULT_LEARNING, ...change };
}

function withoutKinds(left: readonly LimiterKind[]): LearningParameters {
  return without({ kinds: DEFAULT_LEARNING.kinds.filter((kind) => !left.includes(kind)) });
}

/** By the name that `--leave-out` takes. */
export const RULES: ReadonlyMap<string, Rule> = new Map([
  ['inference', { title: 'infer the limiter (only the cubic rate is left)', without: without({ kinds: [] }) }],
  ['windows', { title: 'windows as an idea', without: withoutKinds(WINDOWS) }],
  ['bucket', { title: 'buckets as an idea', without: withoutKinds(['bucket']) }],
  ['concurrency', { title: 'concurrency as an idea', without: withoutKinds(['concurrency']) }],
  ['refused-count', { title: 'windows in which refusals count', without: without({ countsRefused: false }) }],
  ['trials', { title: 'try for more', without: without({ probeIntervalMs: Infinity, firstProbeDelayMs: Infinity }) }],
  [
    'one-at-a-time',
    { title: 'one call beyond the limit at a time', without: without({ maxUnansweredProbeCalls: 1000 }) },
  ],
  [
    'strikes',
    {
      title: 'survive an unforeseen refusal',
      without: without({ bucketToleratedRefusals: 0, otherToleratedRefusals: 0 }),
    },
  ],
  ['jitter', { title: 'allow for jitter', without: without({ jitterDeviations: 0, guardShare: 0 }) }],
  ['spreading', { title: 'spread a window’s calls over it', without: without({ burstShare: 1, windowRateShare: 1 }) }],
  [
    'reserve',
    { title: 'stay a little below a known rate', without: without({ windowRateShare: 1, bucketRateShare: 1 }) },
  ],
  ['epochs', { title: 'one cut per epoch', without: without({ decreasesOncePerEpoch: false }) }],
  ['probe', { title: 'one probe after a pause', without: without({ probesAfterPause: false }) }],
  ['in-use', { title: 'grow only what is used', without: without({ growsOnlyWhenUsed: false }) }],
  ['head', { title: 'retry at the head of the queue', without: DEFAULT_LEARNING, retriesAtHead: false }],
]);

/** @throws RangeError for a name that is not one */
export function findRule(name: string): Rule {
  const rule = RULES.get(name);
  if (rule === undefined) throw new RangeError(`--leave-out: ${name} is none of ${[...RULES.keys()].join(', ')}`);
  return rule;
}
