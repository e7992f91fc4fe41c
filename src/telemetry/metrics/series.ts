/**
 * Counters and histograms as plain numbers. An update finds its series, or has it bound, and adds to it; prom-client, which needs a
 * microsecond per update, reads the sums at a scrape, and the ring of samples reads them once a second. Names are in catalogue.ts.
 */
import { Counter } from 'prom-client';
import type { Metric, MetricValueWithName, Registry } from 'prom-client';
import { DURATION_BOUNDS, findBucket, sumExposedBuckets } from './duration-buckets.ts';

/** The prefix of every metric of the sidecar itself. */
export const METRIC_PREFIX = 'bearer_sidecar_';

type Labels = Readonly<Record<string, string>>;

/** One series of a counter. */
export class CountedSeries {
  readonly labels: Labels;
  count = 0;
  /** The part of `count` that prom-client has received. */
  reported = 0;

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
    const bucket = findBucket(seconds);
    this.buckets[bucket] = (this.buckets[bucket] ?? 0) + 1;
    this.sum += seconds;
    this.count++;
  }
}

export interface SeriesOptions {
  /** Without the prefix. */
  readonly name: string;
  readonly help: string;
  /** Default: none. */
  readonly labelNames?: readonly string[];
  /** Sets of label values that exist from the start, at 0. Default: one series without labels. */
  readonly initial?: readonly (readonly string[])[];
}

/** The series of one metric, by label values. */
export class SeriesTable<S extends CountedSeries> {
  readonly all: S[] = [];
  readonly #labelNames: readonly string[];
  readonly #create: (labels: Labels) => S;
  readonly #byValues = new Map<string, S>();

  constructor({ labelNames = [], initial = [[]] }: SeriesOptions, create: (labels: Labels) => S) {
    this.#labelNames = labelNames;
    this.#create = create;
    for (const values of initial) this.find(...values);
  }

  /** @param values in the order of the label names */
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

/** All counters and histograms of the sidecar, for the exposition and for the ring of samples. */
export class SeriesRegistry {
  /** By name without the prefix. */
  readonly counters = new Map<string, readonly CountedSeries[]>();
  /** By name without the prefix. */
  readonly durations = new Map<string, readonly DurationSeries[]>();
  readonly bounds = DURATION_BOUNDS;
  readonly #registry: Registry;

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  addCounter(options: SeriesOptions): SeriesTable<CountedSeries> {
    const table = new SeriesTable(options, (labels) => new CountedSeries(labels));
    this.#registerCounter(options, table.all);
    return table;
  }

  /** A histogram of durations in seconds, and a counter of the same events. */
  addDurations(counter: SeriesOptions, histogram: Pick<SeriesOptions, 'name' | 'help'>): SeriesTable<DurationSeries> {
    const table = new SeriesTable(counter, (labels) => new DurationSeries(labels));
    this.#registerCounter(counter, table.all);
    this.durations.set(histogram.name, table.all);
    const name = METRIC_PREFIX + histogram.name;
    const get = () => {
      const values = table.all.flatMap((series) => listHistogramValues(name, series));
      return Promise.resolve({ name, help: histogram.help, type: 'histogram', aggregator: 'sum', values });
    };
    // A registry calls nothing else of a metric; the declared type is that of prom-client's classes.
    this.#registry.registerMetric({ name, get } as unknown as Metric);
    return table;
  }

  #registerCounter({ name, help, labelNames = [] }: SeriesOptions, all: readonly CountedSeries[]): void {
    this.counters.set(name, all);
    const counter = new Counter({
      name: METRIC_PREFIX + name,
      help,
      labelNames,
      registers: [this.#registry],
      collect() {
        for (const series of all) {
          counter.inc(series.labels, series.count - series.reported);
          series.reported = series.count;
        }
      },
    });
  }
}

function listHistogramValues(
  name: string,
  { labels, buckets, count, sum }: DurationSeries,
): MetricValueWithName<string>[] {
  return [
    ...Array.from(sumExposedBuckets(buckets), ([le, value]) => ({
      metricName: `${name}_bucket`,
      labels: { le, ...labels },
      value,
    })),
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ];
}
