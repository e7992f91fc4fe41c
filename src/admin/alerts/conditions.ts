/** Conditions of alerts as data (pure), evaluated on the samples. tools/dashboard/alert-rules.ts compiles them to PromQL. */
import type { Samples } from '../samples/sample-ring.ts';
import type { Selector } from '../samples/samples.ts';

/** What an alert is about: the label that its series keep. Undefined: the process. */
export type SubjectKind = 'route' | 'credential' | undefined;

export interface Series {
  readonly metric: string;
  readonly per: SubjectKind;
  readonly where?: Selector;
  /** Series of a counter that are left out. */
  readonly except?: Selector;
}

/** Holds for a value between the two. Default: for any value. */
interface Compared {
  readonly of: Series;
  readonly above?: number;
  readonly below?: number;
}

type Exceeded = Compared & { readonly above: number };

type Leaf =
  | (Exceeded & { readonly form: 'ratio'; readonly whole: readonly Series[]; readonly windowMs: number })
  | (Exceeded & { readonly form: 'increase'; readonly windowMs: number })
  /** Without `meanOverMs` the newest value. */
  | (Compared & { readonly form: 'gauge'; readonly dividedBy?: Series; readonly meanOverMs?: number })
  /** Compares the seconds until the instant of a gauge, a Unix time in seconds. */
  | (Exceeded & { readonly form: 'age' })
  /** Compares seconds with a bound of the default buckets. Prometheus compares the mean where this bound is not exposed. */
  | (Exceeded & { readonly form: 'quantile'; readonly share: number; readonly windowMs: number });

/** Holds for a subject where it has a value: a share from 0 to 1, a number of events, or seconds. */
export type Condition =
  | Leaf
  /** What no form expresses; `promql` has `\n` between lines. */
  | {
      readonly form: 'own';
      readonly per: SubjectKind;
      readonly promql: string;
      readonly evaluate: (inputs: ConditionInputs, subject: string) => number | undefined;
    }
  /** The value of the first; the others must hold, too. */
  | { readonly form: 'all'; readonly conditions: readonly Condition[] }
  /** The first that holds. */
  | { readonly form: 'any'; readonly conditions: readonly Condition[] }
  /** The value of `condition` while `unless` does not hold. */
  | { readonly form: 'unless'; readonly condition: Condition; readonly unless: Condition };

export interface ConditionInputs {
  readonly samples: Samples;
  readonly wallNow: number;
  /** The growth of counters by subject, read once for all subjects. */
  readonly readGrowth: (series: Omit<Series, 'except'>, windowMs: number) => ReadonlyMap<string, number>;
}

export function createConditionInputs(samples: Samples, wallNow: number): ConditionInputs {
  const growths = new Map<string, ReadonlyMap<string, number>>();
  return {
    samples,
    wallNow,
    readGrowth({ metric, per = '', where = {} }, windowMs) {
      const key = [metric, per, windowMs, ...Object.entries(where)].join(' ');
      let growth = growths.get(key);
      if (growth === undefined) growths.set(key, (growth = samples.increaseBy(per, metric, windowMs, where)));
      return growth;
    },
  };
}

/** The value for a subject; undefined where the condition does not hold. @param subject a name, or '' for the process */
export function evaluateCondition(condition: Condition, subject: string, inputs: ConditionInputs): number | undefined {
  switch (condition.form) {
    case 'all': {
      const [value, ...others] = condition.conditions.map((each) => evaluateCondition(each, subject, inputs));
      return others.includes(undefined) ? undefined : value;
    }
    case 'any':
      for (const each of condition.conditions) {
        const value = evaluateCondition(each, subject, inputs);
        if (value !== undefined) return value;
      }
      return undefined;
    case 'unless':
      return evaluateCondition(condition.unless, subject, inputs) === undefined
        ? evaluateCondition(condition.condition, subject, inputs)
        : undefined;
    case 'own':
      return condition.evaluate(inputs, subject);
    default: {
      const { above = -Infinity, below = Infinity } = condition;
      const value = readValue(condition, subject, inputs);
      return value !== undefined && value > above && value < below ? value : undefined;
    }
  }
}

function readValue(condition: Leaf, subject: string, inputs: ConditionInputs): number | undefined {
  const { samples, wallNow, readGrowth } = inputs;
  const grow = (series: Series, windowMs: number): number => {
    const { where, except } = series;
    const all = readGrowth(series, windowMs).get(subject) ?? 0;
    if (except === undefined) return all;
    return all - (readGrowth({ ...series, where: { ...where, ...except } }, windowMs).get(subject) ?? 0);
  };
  switch (condition.form) {
    case 'ratio': {
      const whole = condition.whole.reduce((sum, series) => sum + grow(series, condition.windowMs), 0);
      return whole === 0 ? undefined : grow(condition.of, condition.windowMs) / whole;
    }
    case 'increase':
      return grow(condition.of, condition.windowMs);
    case 'gauge':
      return readGauge(condition, subject, samples);
    case 'age': {
      const at = samples.gauge(condition.of.metric, selectSubject(condition.of, subject));
      return at === undefined ? undefined : at - wallNow / 1000;
    }
    case 'quantile': {
      const { of, share, windowMs } = condition;
      const ms = samples.quantile(of.metric, share, windowMs, selectSubject(of, subject));
      return ms === undefined ? undefined : ms / 1000;
    }
  }
}

function readGauge({ of, dividedBy, meanOverMs }: Extract<Leaf, { form: 'gauge' }>, subject: string, samples: Samples) {
  const selector = selectSubject(of, subject);
  const value =
    meanOverMs === undefined ? samples.gauge(of.metric, selector) : samples.average(of.metric, meanOverMs, selector);
  if (dividedBy === undefined || value === undefined) return value;
  const divisor = samples.gauge(dividedBy.metric, selectSubject(dividedBy, subject)) ?? 0;
  return divisor === 0 ? undefined : value / divisor;
}

/** Names of routes and credentials need no escaping in a regular expression. A series of another kind matches no subject. */
function selectSubject({ per, where }: Series, subject: string): Selector {
  return per === undefined ? { ...where } : { ...where, [per]: subject };
}

/** What a condition is about; two kinds where its parts differ. */
export function listSubjectKinds(condition: Condition): readonly SubjectKind[] {
  switch (condition.form) {
    case 'all':
    case 'any':
      return [...new Set(condition.conditions.flatMap(listSubjectKinds))];
    case 'unless':
      return listSubjectKinds(condition.condition);
    case 'own':
      return [condition.per];
    default:
      return [condition.of.per];
  }
}
