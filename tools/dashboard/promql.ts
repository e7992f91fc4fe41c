/** Conditions of alerts as PromQL. Each result keeps the labels of the scrape, and the label of its subject. */
import type { Condition, Series } from '../../src/admin/alerts/conditions.ts';
import { METRIC_PREFIX } from '../../src/telemetry/metrics/series.ts';

/** The labels of a metric, without `le`. @throws Error for an unknown metric */
export type ListLabels = (metric: string) => readonly string[];

/** The expression of a condition. @param listLabels of a metric without its prefix */
export function compileCondition(condition: Condition, listLabels: ListLabels): string {
  const compile = (each: Condition): string => compileCondition(each, listLabels);
  const inBrackets = (each: Condition): string => (hasOr(each) ? `(\n${indent(compile(each))}\n)` : compile(each));
  switch (condition.form) {
    case 'all':
      return condition.conditions.map(inBrackets).join('\nand ');
    case 'any':
      return condition.conditions.map(compile).join('\nor\n');
    case 'unless':
      return `${inBrackets(condition.condition)}\nunless ${inBrackets(condition.unless)}`;
    case 'own':
      return condition.promql;
    case 'ratio': {
      const range = formatRange(condition.windowMs);
      const rateOf = (series: Series): string => sum(series, (select) => `rate(${select()}${range})`, listLabels);
      const whole = condition.whole.map(rateOf).join(' + ');
      return `${rateOf(condition.of)}\n/ (${whole} > 0)\n> ${condition.above}`;
    }
    case 'increase': {
      const range = formatRange(condition.windowMs);
      return `${sum(condition.of, (select) => `increase(${select()}${range})`, listLabels)} > ${condition.above}`;
    }
    case 'gauge':
      return compileGauge(condition, listLabels);
    case 'age': {
      const below = condition.below === undefined ? '' : ` < ${condition.below}`;
      return `${sum(condition.of, (select) => select(), listLabels)} - time()${below} > ${condition.above}`;
    }
    case 'quantile':
      return compileQuantile(condition, listLabels);
  }
}

type Gauge = Extract<Condition, { form: 'gauge' }>;
type Quantile = Extract<Condition, { form: 'quantile' }>;

function compileGauge({ of, dividedBy, meanOverMs, above, below }: Gauge, listLabels: ListLabels): string {
  const read = (select: () => string): string =>
    meanOverMs === undefined ? select() : `avg_over_time(${select()}${formatRange(meanOverMs)})`;
  const value = sum(of, read, listLabels);
  const divisor = dividedBy === undefined ? '' : ` / ${sum(dividedBy, (select) => select(), listLabels)}`;
  const limits = [above === undefined ? '' : ` > ${above}`, below === undefined ? '' : ` < ${below}`];
  return `${value}${divisor}${limits.join('')}`;
}

/** The mean is compared where the bound is not exposed. Prometheus 3 stores the bound 5 as "5.0". */
function compileQuantile({ of, share, windowMs, above }: Quantile, listLabels: ListLabels): string {
  const range = formatRange(windowMs);
  const rateOf = (suffix: string): string => sum(of, (select) => `rate(${select(suffix)}${range})`, listLabels);
  const bound = sum(
    of,
    (select) => select('_bucket', { le: String.raw`${above}(\\.0)?` }),
    (metric) => [...listLabels(metric), 'le'],
  );
  return [
    `histogram_quantile(${share}, ${rateOf('_bucket')}) > ${above}`,
    `  and ${bound}`,
    `or`,
    `${rateOf('_sum')} / (${rateOf('_count')} > 0) > ${above}`,
    `  unless ${bound}`,
  ].join('\n');
}

/** The expression for one series, summed for each subject. */
function sum(
  { metric, per, where = {}, except = {} }: Series,
  express: (select: (suffix?: string, further?: Series['where']) => string) => string,
  listLabels: ListLabels,
): string {
  const labels = listLabels(metric);
  if (per !== undefined && !labels.includes(per)) throw new Error(`${metric} has no label ${per}`);
  const dropped = labels.filter((label) => label !== per);
  const expression = express((suffix = '', further = {}) =>
    select(`${metric}${suffix}`, { ...where, ...further }, except),
  );
  return dropped.length === 0 ? expression : `sum without (${dropped.join(', ')}) (${expression})`;
}

function select(metric: string, where: NonNullable<Series['where']>, except: NonNullable<Series['except']>): string {
  const isPlain = (pattern: string): boolean => /^\w+$/.test(pattern);
  const matchers = [
    ...Object.entries(where).map(([label, pattern]) => `${label}${isPlain(pattern) ? '=' : '=~'}"${pattern}"`),
    ...Object.entries(except).map(([label, pattern]) => `${label}${isPlain(pattern) ? '!=' : '!~'}"${pattern}"`),
  ];
  return `${METRIC_PREFIX}${metric}${matchers.length === 0 ? '' : `{${matchers.join(', ')}}`}`;
}

function formatRange(ms: number): string {
  return `[${ms / 60_000}m]`;
}

/** `or` binds less than `and` and `unless`. */
function hasOr({ form }: Condition): boolean {
  return form === 'any' || form === 'quantile' || form === 'unless';
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, '  ');
}
