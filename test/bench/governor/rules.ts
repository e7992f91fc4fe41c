/** The governor's rules, and the parameters without each: for `--leave-out` and `--rules`. */
import { DEFAULT_LEARNING, type LearningParameters } from '../../../src/throttle/adaptive/learning-parameters.ts';
import type { CounterKind } from '../../../src/throttle/adaptive/counter-bank.ts';

/** One row of the table. */
export interface Rule {
  readonly title: string;
  readonly without: LearningParameters;
  /** False: a refused call goes to the tail of the queue. */
  readonly retriesAtHead?: false;
}

function without(change: Partial<LearningParameters>): LearningParameters {
  return { ...DEFAULT_LEARNING, ...change };
}

function withoutKind(left: CounterKind): LearningParameters {
  return without({ kinds: DEFAULT_LEARNING.kinds.filter((kind) => kind !== left) });
}

/** By the name that `--leave-out` takes. */
export const RULES: ReadonlyMap<string, Rule> = new Map([
  ['windows', { title: 'counters of calls in a window', without: withoutKind('window') }],
  ['buckets', { title: 'counters that leak', without: withoutKind('bucket') }],
  ['concurrency', { title: 'the counter of calls in flight', without: withoutKind('concurrency') }],
  ['trials', { title: 'probe for a raised limit', without: without({ limitProbeIntervalMs: Infinity }) }],
  ['one-at-a-time', { title: 'one probe call at a time', without: without({ maxOpenLimitProbes: 1000 }) }],
  ['margin', { title: 'use less after an unexpected refusal', without: without({ toleratedRefusalFactor: 1 }) }],
  ['jitter', { title: 'allow for jitter', without: without({ jitterDeviations: 0 }) }],
  ['spreading', { title: 'spread a window’s calls over it', without: without({ burstShare: 1, windowRateShare: 1 }) }],
  [
    'reserve',
    { title: 'stay slightly below the learned rate', without: without({ windowRateShare: 1, bucketRateShare: 1 }) },
  ],
  ['head', { title: 'retry at the head of the queue', without: DEFAULT_LEARNING, retriesAtHead: false }],
]);

/** @throws RangeError for an unknown name */
export function findRule(name: string): Rule {
  const rule = RULES.get(name);
  if (rule === undefined) throw new RangeError(`--leave-out: ${name} is not one of ${[...RULES.keys()].join(', ')}`);
  return rule;
}
