/**
 * Counters and histograms as plain functions. An update finds its series and adds to it; prom-client, which needs a microsecond per
 * update, reads the sums at a scrape. The names of the series are in catalogue.ts.
 */
import { Counter } from 'prom-client';
import type { Metric, MetricValueWithName, Registry } from 'prom-client';

/** Seconds: from the overhead of the sidecar to long queues and slow responses. */
const DURATION_BUCKETS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300,
];

export interface CounterOptions {
  readonly registry: Registry;
  readonly name: string;
  readonly help: string;
  /** At most four. */
  readonly labelNames: readonly string[];
  /** Sets of label values that exist from the start, at 0; one empty set for a metric without labels. */
  readonly initial: readonly (readonly string[])[];
}

interface MetricText {
  readonly name: string;
  readonly help: string;
}

export interface DurationMetricOptions extends Omit<CounterOptions, 'name' | 'help'> {
  /** The counter. */
  readonly total: MetricText;
  /** The histogram. */
  readonly seconds: MetricText;
}

/** Adds 1 to the series of these label values, given in the order of the label names. */
export type IncrementCounter = (...labels: LabelValues) => void;

/** Records a duration in milliseconds in the series of these label values. A negative or infinite duration counts as 0. */
export type RecordDuration = (durationMs: number, ...labels: LabelValues) => void;

/** In the order of the label names. */
type LabelValues = readonly [first?: string, second?: string, third?: string, fourth?: string];

/** Registers a counter. */
export function createCounter(options: CounterOptions): IncrementCounter {
  const counts = new SeriesTable(options.labelNames, (labels) => ({ labels, count: 0, reported: 0 }), options.initial);
  registerCounter(options, counts);
  return (first = '', second = '', third = '', fourth = '') => {
    counts.find(first, second, third, fourth).count++;
  };
}

/** Registers a histogram of durations in seconds, and a counter of the same events with the same labels. */
export function createDurationMetric(options: DurationMetricOptions): RecordDuration {
  const { registry, labelNames, initial, seconds, total } = options;
  const durations = new SeriesTable(labelNames, createDurationSeries, initial);
  registerCounter({ registry, labelNames, ...total }, durations);
  const { name, help } = seconds;
  const get = () => {
    const values = durations.all.flatMap((series) => toMetricValues(name, series));
    return Promise.resolve({ name, help, type: 'histogram', aggregator: 'sum', values });
  };
  // A registry calls nothing else of a metric; the declared type is that of prom-client's classes.
  registry.registerMetric({ name, get } as unknown as Metric);
  return (durationMs, first = '', second = '', third = '', fourth = '') => {
    const seconds = durationMs > 0 && Number.isFinite(durationMs) ? durationMs / 1000 : 0;
    let bucket = 0;
    while (bucket < DURATION_BUCKETS.length && seconds > (DURATION_BUCKETS[bucket] ?? Infinity)) bucket++;
    const series = durations.find(first, second, third, fourth);
    series.buckets[bucket] = (series.buckets[bucket] ?? 0) + 1;
    series.sum += seconds;
    series.count++;
  };
}

interface CountedSeries {
  readonly labels: Labels;
  count: number;
  /** The part of `count` that prom-client has received. */
  reported: number;
}

interface DurationSeries extends CountedSeries {
  sum: number;
  /** Observations per bucket, not cumulative; the last bucket is +Inf. */
  readonly buckets: Float64Array;
}

function createDurationSeries(labels: Labels): DurationSeries {
  return { labels, count: 0, reported: 0, sum: 0, buckets: new Float64Array(DURATION_BUCKETS.length + 1) };
}

function registerCounter(
  { registry, name, help, labelNames }: Omit<CounterOptions, 'initial'>,
  table: SeriesTable<CountedSeries>,
): void {
  const counter = new Counter({
    name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      for (const series of table.all) {
        counter.inc(series.labels, series.count - series.reported);
        series.reported = series.count;
      }
    },
  });
}

type Labels = Record<string, string>;

interface RecentSeries<S> {
  readonly values: readonly [string, string, string, string];
  readonly series: S;
}

const RECENT_SERIES_MAX = 4;

/** The series of one metric, by label values. */
class SeriesTable<S> {
  readonly all: S[] = [];
  readonly #labelNames: readonly string[];
  readonly #create: (labels: Labels) => S;
  readonly #byValues = new Map<string, S>();
  /** Most updates go to one of the last few series. */
  readonly #recent: RecentSeries<S>[] = [];
  #oldestRecent = 0;

  constructor(labelNames: readonly string[], create: (labels: Labels) => S, initial: readonly (readonly string[])[]) {
    this.#labelNames = labelNames;
    this.#create = create;
    for (const [first = '', second = '', third = '', fourth = ''] of initial) this.find(first, second, third, fourth);
  }

  find(first: string, second: string, third: string, fourth: string): S {
    for (const { values, series } of this.#recent) {
      if (values[0] === first && values[1] === second && values[2] === third && values[3] === fourth) return series;
    }
    const key = `${first}\n${second}\n${third}\n${fourth}`;
    const values = [first, second, third, fourth] as const;
    const series = this.#byValues.get(key) ?? this.#add(key, values);
    this.#recent[this.#oldestRecent] = { values, series };
    this.#oldestRecent = (this.#oldestRecent + 1) % RECENT_SERIES_MAX;
    return series;
  }

  #add(key: string, values: readonly string[]): S {
    const series = this.#create(Object.fromEntries(this.#labelNames.map((name, index) => [name, values[index] ?? ''])));
    this.#byValues.set(key, series);
    this.all.push(series);
    return series;
  }
}

function toMetricValues(name: string, { labels, buckets, count, sum }: DurationSeries): MetricValueWithName<string>[] {
  let upTo = 0;
  const values = [...DURATION_BUCKETS, '+Inf'].map((le, bucket) => {
    upTo += buckets[bucket] ?? 0;
    return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: upTo };
  });
  return [
    ...values,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ];
}
