/**
 * Counters and histograms as plain numbers. An update finds its series, or has it bound, and adds to it; the exposition reads them at a
 * scrape, and the ring of samples once a second. prom-client's own metrics need a microsecond per update. Names are in catalogue.ts.
 */
import type { Metric, MetricValueWithName, Registry } from 'prom-client';
import { DURATION_BOUNDS, findBucket, sumExposedBuckets } from './duration-buckets.ts';

export const METRIC_PREFIX = 'bearer_sidecar_';

export type Labels = Readonly<Record<string, string>>;

export class CountedSeries {
  readonly labels: Labels;
  count = 0;

  constructor(labels: Labels) {
    this.labels = labels;
  }
}

/** One series of a histogram, and of the counter of the same events. */
export class DurationSeries extends CountedSeries {
  /** Seconds. */
  sum = 0;
  /** Observations per bucket of duration-buckets.ts, not cumulative. */
  readonly buckets = new Float64Array(DURATION_BOUNDS.length + 1);

  /** A negative or infinite duration counts as 0. */
  record(durationMs: number): void {
    const seconds = durationMs > 0 && Number.isFinite(durationMs) ? durationMs / 1000 : 0;
    // Most permits are granted at once.
    const bucket = seconds === 0 ? 0 : findBucket(seconds);
    this.buckets[bucket] = (this.buckets[bucket] ?? 0) + 1;
    this.sum += seconds;
    this.count++;
  }
}

export interface SeriesOptions {
  /** Without the prefix. */
  readonly name: string;
  readonly help: string;
  /** The values of each label; their combinations exist from the start, at 0. Default: one series without labels. */
  readonly labels?: Readonly<Record<string, readonly string[]>>;
}

export class SeriesTable<S extends CountedSeries> {
  readonly all: S[] = [];
  readonly #labelNames: readonly string[];
  readonly #create: (labels: Labels) => S;
  readonly #byValues = new Map<string, S>();

  constructor({ labels = {} }: SeriesOptions, create: (labels: Labels) => S) {
    this.#labelNames = Object.keys(labels);
    this.#create = create;
    for (const values of listCombinations(Object.values(labels))) this.find(...values);
  }

  /** @param values in the order of the labels */
  find(...values: readonly string[]): S {
    const key = values.join('\n');
    let series = this.#byValues.get(key);
    if (series !== undefined) return series;
    series = this.#create(Object.fromEntries(this.#labelNames.map((name, index) => [name, values[index] ?? ''])));
    this.#byValues.set(key, series);
    this.all.push(series);
    return series;
  }
}

function listCombinations(sets: readonly (readonly string[])[]): string[][] {
  return sets.reduce<string[][]>((lists, set) => lists.flatMap((list) => set.map((value) => [...list, value])), [[]]);
}

export interface HistogramOptions extends Pick<SeriesOptions, 'name' | 'help'> {
  /** Which of the exposed bounds it has, seconds; each has the value that it would have among all. Default: all. */
  readonly bounds?: readonly number[];
}

/** All counters and histograms of the sidecar, for the exposition and for the ring of samples. */
export class SeriesRegistry {
  /** Both by name without the prefix. */
  readonly counters = new Map<string, readonly CountedSeries[]>();
  readonly durations = new Map<string, readonly DurationSeries[]>();
  readonly bounds = DURATION_BOUNDS;
  readonly #registry: Registry;

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  addCounter(options: SeriesOptions): SeriesTable<CountedSeries> {
    const table = new SeriesTable(options, (labels) => new CountedSeries(labels));
    this.#exposeCounter(options, table.all);
    return table;
  }

  /** A histogram of durations in seconds, and a counter of the same events. */
  addDurations(counter: SeriesOptions, histogram: HistogramOptions): SeriesTable<DurationSeries> {
    const table = new SeriesTable(counter, (labels) => new DurationSeries(labels));
    this.#exposeCounter(counter, table.all);
    this.durations.set(histogram.name, table.all);
    const name = METRIC_PREFIX + histogram.name;
    expose(this.#registry, 'histogram', histogram, function* () {
      for (const series of table.all) yield* listHistogramValues(name, series, histogram.bounds);
    });
    return table;
  }

  #exposeCounter(options: SeriesOptions, all: readonly CountedSeries[]): void {
    this.counters.set(options.name, all);
    expose(this.#registry, 'counter', options, () => all.map(({ labels, count }) => ({ labels, value: count })));
  }
}

export function expose(
  registry: Registry,
  type: 'counter' | 'gauge' | 'histogram',
  { name, help }: Pick<SeriesOptions, 'name' | 'help'>,
  // Read while they are rendered: an array of them all would delay calls.
  listValues: () => Iterable<
    Pick<MetricValueWithName<string>, 'labels' | 'value'> & {
      readonly metricName?: string;
    }
  >,
): void {
  const metric = { name: METRIC_PREFIX + name, help, type, aggregator: 'sum' };
  const get = () => Promise.resolve({ ...metric, values: listValues() });
  // A registry calls nothing else of a metric; the declared type is that of prom-client's classes.
  registry.registerMetric({ name: metric.name, get } as unknown as Metric);
}

function listHistogramValues(
  name: string,
  { labels, buckets, count, sum }: DurationSeries,
  bounds: HistogramOptions['bounds'],
) {
  const exposed = [...sumExposedBuckets(buckets)].filter(
    ([le]) => le === '+Inf' || bounds === undefined || bounds.includes(le),
  );
  return [
    ...exposed.map(([le, value]) => ({ metricName: `${name}_bucket`, labels: { le, ...labels }, value })),
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ];
}
