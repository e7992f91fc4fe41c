/** The governor's rules, and the parameters without each: for `--leave-out` and `--rules`. */
import { DEFAULT_LEARNING, type LearningParameters } from '../../../src/throttle/adaptive/learning-parameters.ts';
import type { LimiterKind } from '../../../src/throttle/adaptive/limiter-model.ts';

/** One row of the table. */
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
  ['inference', { title: 'infer the limiter (only the fallback rate remains)', without: without({ kinds: [] }) }],
  ['windows', { title: 'window models', without: withoutKinds(WINDOWS) }],
  ['bucket', { title: 'bucket model', without: withoutKinds(['bucket']) }],
  ['concurrency', { title: 'concurrency model', without: withoutKinds(['concurrency']) }],
  ['refused-count', { title: 'windows that count refused calls', without: without({ countsRefused: false }) }],
  [
    'trials',
    { title: 'probe for a raised limit', without: without({ probeIntervalMs: Infinity, firstProbeDelayMs: Infinity }) },
  ],
  ['one-at-a-time', { title: 'one probe call at a time', without: without({ maxUnansweredProbeCalls: 1000 }) }],
  [
    'strikes',
    {
      title: 'tolerate an unexpected refusal',
      without: without({ bucketToleratedRefusals: 0, otherToleratedRefusals: 0 }),
    },
  ],
  ['jitter', { title: 'allow for jitter', without: without({ jitterDeviations: 0, guardShare: 0 }) }],
  ['spreading', { title: 'spread a window’s calls over it', without: without({ burstShare: 1, windowRateShare: 1 }) }],
  [
    'reserve',
    { title: 'stay slightly below the learned rate', without: without({ windowRateShare: 1, bucketRateShare: 1 }) },
  ],
  ['epochs', { title: 'one decrease per epoch', without: without({ decreasesOncePerEpoch: false }) }],
  ['probe', { title: 'one probe after a pause', without: without({ probesAfterPause: false }) }],
  ['in-use', { title: 'grow only rates in use', without: without({ growsOnlyWhenUsed: false }) }],
  ['head', { title: 'retry at the head of the queue', without: DEFAULT_LEARNING, retriesAtHead: false }],
]);

/** @throws RangeError for an unknown name */
export function findRule(name: string): Rule {
  const rule = RULES.get(name);
  if (rule === undefined) throw new RangeError(`--leave-out: ${name} is not one of ${[...RULES.keys()].join(', ')}`);
  return rule;
}
