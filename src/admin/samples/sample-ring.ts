/**
 * The ring of samples (pure): one a second for five minutes, one each 15 seconds for an hour. A series has a column of numbers from its
 * first event on, and a reading compares its present value with an older sample. Memory is bounded.
 */
import { DurationColumns } from './duration-columns.ts';
import { SampleTier } from './sample-tier.ts';
import { matchLabels, type CounterReading, type GaugeReading, type SampleSource, type Selector } from './samples.ts';

const SECONDS = 300;
const SECOND_MS = 1000;
const QUARTER_MS = 15_000;
const QUARTERS = 240;
const KEPT_GAUGES: ReadonlySet<string> = new Set(['queue_depth', 'in_flight', 'permit_rate', 'paused']);
const EVERYTHING: Selector = {};
/** Reads as 0 everywhere. */
const NO_SAMPLES = new Uint32Array(0);

interface CounterColumns {
  readonly series: CounterReading;
  readonly seconds: Uint32Array;
  readonly quarters: Uint32Array;
}

interface GaugeColumns {
  readonly metric: string;
  readonly labels: GaugeReading['labels'];
  readonly seconds: Float32Array;
  /** The mean of the samples since the one before. */
  readonly quarters: Float32Array;
  sum: number;
  samples: number;
}

/** What can be read at one instant. A window reaches from then back; where less was recorded, it is as long as that. */
export type Samples = ReturnType<SampleRing['read']>;

export type SecondReading = ReturnType<SampleRing['readSeconds']> extends Generator<infer Second> ? Second : never;

export class SampleRing {
  readonly #source: SampleSource;
  readonly #maxBytes: number;
  readonly #seconds = new SampleTier(SECOND_MS, SECONDS + 1);
  readonly #quarters = new SampleTier(QUARTER_MS, QUARTERS + 1);
  /** A series has columns from the first sample at which it has counted something; undefined where there was no memory for them. */
  readonly #counters = new Map<CounterReading, CounterColumns | undefined>();
  readonly #gauges = new Map<string, GaugeColumns>();
  readonly #durations: DurationColumns;
  /** By metric; made anew when there are more series. */
  readonly #byRoute = new Map<string, { size: number; lists: ReadonlyMap<string, readonly CounterReading[]> }>();
  #bytes: number;
  #statusBytes = 0;

  /** @param maxBytes of all columns, half of it for statuses; a series that comes when they are used up counts as 0 */
  constructor(source: SampleSource, maxBytes: number) {
    this.#source = source;
    this.#maxBytes = maxBytes;
    this.#bytes = 8 * (this.#seconds.length + this.#quarters.length);
    this.#durations = new DurationColumns(source, this.#seconds, (bytes) => this.#reserve(bytes));
  }

  get bytes(): number {
    return this.#bytes;
  }

  sample(now: number): void {
    const isQuarter = this.#quarters.isDue(now);
    this.#seconds.begin(now);
    if (isQuarter) this.#quarters.begin(now);
    for (const list of this.#source.counters.values())
      for (const series of list) if (series.count > 0) this.#sampleCounter(series, isQuarter);
    for (const gauge of this.#source.gauges()) if (KEPT_GAUGES.has(gauge.metric)) this.#sampleGauge(gauge, isQuarter);
    this.#durations.sample(now);
  }

  /** @param now monotonic milliseconds, as all instants here; each window is at most an hour */
  read(now: number) {
    let gauges: readonly GaugeReading[] | undefined;
    const valuesOf = (wanted: string, selector = EVERYTHING): number[] =>
      (gauges ??= this.#source.gauges())
        .filter(({ metric, labels }) => metric === wanted && matchLabels(labels, selector))
        .map(({ value }) => value);
    return {
      now,
      /** How long samples have been taken, at most an hour. */
      spanMs: this.#spanMs(now),
      /** How much of the window the process stood still, by its own samples: each is a second and what the event loop was late. */
      stalledMs: (windowMs: number): number =>
        Math.max(0, Math.min(windowMs, this.#spanMs(now)) - this.#seconds.countSince(now - windowMs) * SECOND_MS),
      /** Summed growth, to 15 seconds beyond five minutes. `<histogram>_count` and `_bucket`, with `le` as its text, reach no further back. */
      increase: (metric: string, windowMs: number, selector?: Selector): number =>
        this.#increase(metric, now - windowMs, selector),
      /** The same for each value of one label; values without growth are left out. */
      increaseBy: (label: string, metric: string, windowMs: number, selector?: Selector): ReadonlyMap<string, number> =>
        this.#increaseBy(label, metric, now - windowMs, selector),
      /** The sum of the present values; undefined without one, as the smallest of them is. */
      gauge: (metric: string, selector?: Selector): number | undefined => {
        const values = valuesOf(metric, selector);
        return values.length === 0 ? undefined : sumOf(values, (value) => value);
      },
      least: (metric: string, selector?: Selector): number | undefined => {
        const values = valuesOf(metric, selector);
        return values.length === 0 ? undefined : Math.min(...values);
      },
      /** The mean of the samples of a kept gauge; undefined without a sample. */
      average: (metric: string, windowMs: number, selector?: Selector): number | undefined =>
        this.#average(metric, now - windowMs, selector),
      /**
       * A quantile of the last five minutes in milliseconds; undefined without an observation. Only `request_duration_seconds` is known to
       * the second, and without labels; `upstream_duration_seconds` and `queue_wait_seconds` have the label `route` and are known to five.
       */
      quantile: (histogram: string, share: number, windowMs: number, selector?: Selector): number | undefined =>
        this.#durations.quantile(histogram, share, now - windowMs, selector),
      /** Since when the counters have grown without a gap longer than `gapMs`; undefined when they do not grow. */
      growingSince: (metric: string, gapMs: number, selector?: Selector): number | undefined =>
        this.#growingSince(metric, now, gapMs, selector),
      /** When the counters grew last; undefined when not within the hour. */
      lastGrowthAt: (metric: string, selector?: Selector): number | undefined =>
        this.#listGrowths(metric, now, selector).next().value,
    };
  }

  /** The last seconds, oldest first. @param limit default: all, at most 300 */
  *readSeconds(limit = SECONDS) {
    const tier = this.#seconds;
    // A selector that is asked about in each second is looked up once.
    const counters = memoizeLists((metric, selector) => this.#listCounters(metric, selector));
    const gauges = memoizeLists((metric, selector) => this.#listGauges(metric, selector));
    for (let sample = Math.max(tier.first + 1, tier.taken - limit); sample < tier.taken; sample++)
      yield {
        /** The end of this second, and of the one before. */
        at: tier.timeOf(sample),
        from: tier.timeOf(sample - 1),
        increase: (metric: string, selector?: Selector): number =>
          sumOf(counters(metric, selector), ({ seconds }) => tier.growthOf(seconds, sample)),
        gauge: (metric: string, selector?: Selector): number =>
          sumOf(gauges(metric, selector), ({ seconds }) => tier.read(seconds, sample)),
        /** A quantile of `request_duration_seconds`, milliseconds; undefined without a request. */
        quantile: (share: number): number | undefined => this.#durations.quantileOfSecond(share, sample),
      };
  }

  #reserve(bytes: number): boolean {
    if (this.#bytes + bytes > this.#maxBytes) return false;
    this.#bytes += bytes;
    return true;
  }

  #sampleCounter(series: CounterReading, isQuarter: boolean): void {
    if (!this.#counters.has(series)) this.#counters.set(series, this.#createCounterColumns(series));
    const columns = this.#counters.get(series);
    if (columns === undefined) return;
    columns.seconds[this.#seconds.slot] = series.count;
    if (isQuarter) columns.quarters[this.#quarters.slot] = series.count;
  }

  #createCounterColumns(series: CounterReading): CounterColumns | undefined {
    const [seconds, quarters] = [this.#seconds.length, this.#quarters.length];
    const bytes = 4 * (seconds + quarters);
    // Statuses are an open set: an upstream that sends hundreds of them must not take the place of faults.
    if (series.labels.code !== undefined && series.labels.source !== undefined) {
      if (this.#statusBytes + bytes > this.#maxBytes / 2) return undefined;
      this.#statusBytes += bytes;
    }
    if (!this.#reserve(bytes)) return undefined;
    return { series, seconds: new Uint32Array(seconds), quarters: new Uint32Array(quarters) };
  }

  #sampleGauge({ metric, labels, value }: GaugeReading, isQuarter: boolean): void {
    const key = `${metric} ${Object.values(labels).join(' ')}`;
    let gauge = this.#gauges.get(key);
    if (gauge === undefined) {
      if (!this.#reserve(4 * (this.#seconds.length + this.#quarters.length))) return;
      const columns = {
        seconds: new Float32Array(this.#seconds.length),
        quarters: new Float32Array(this.#quarters.length),
      };
      gauge = { metric, labels, ...columns, sum: 0, samples: 0 };
      this.#gauges.set(key, gauge);
    }
    gauge.seconds[this.#seconds.slot] = value;
    gauge.sum += value;
    gauge.samples++;
    if (!isQuarter) return;
    gauge.quarters[this.#quarters.slot] = gauge.sum / gauge.samples;
    gauge.sum = gauge.samples = 0;
  }

  #listCounters(metric: string, selector = EVERYTHING): CounterColumns[] {
    const found: CounterColumns[] = [];
    for (const series of this.#findSeries(metric, selector.route)) {
      if (series.count === 0 || !matchLabels(series.labels, selector)) continue;
      const columns = this.#counters.has(series)
        ? this.#counters.get(series)
        : { series, seconds: NO_SAMPLES, quarters: NO_SAMPLES };
      if (columns !== undefined) found.push(columns);
    }
    return found;
  }

  /** A route has few of the series of all routes. */
  #findSeries(metric: string, route: string | undefined): readonly CounterReading[] {
    const all = this.#source.counters.get(metric) ?? [];
    if (route === undefined) return all;
    let index = this.#byRoute.get(metric);
    if (index?.size !== all.length) {
      index = { size: all.length, lists: Map.groupBy(all, ({ labels }) => labels.route ?? '') };
      this.#byRoute.set(metric, index);
    }
    // A pattern that is no name is looked for in all.
    return index.lists.get(route) ?? all;
  }

  #listGauges(metric: string, selector = EVERYTHING): readonly GaugeColumns[] {
    return [...this.#gauges.values()].filter((gauge) => gauge.metric === metric && matchLabels(gauge.labels, selector));
  }

  #increase(metric: string, from: number, selector?: Selector): number {
    const histogram = /^(.+_seconds)_(?:count|bucket)$/.exec(metric)?.[1];
    if (histogram !== undefined) return this.#durations.count(histogram, from, selector);
    return sumOf(this.#listCounters(metric, selector), this.#growthSince(from));
  }

  #increaseBy(label: string, metric: string, from: number, selector?: Selector): Map<string, number> {
    const growths = new Map<string, number>();
    const growthOf = this.#growthSince(from);
    for (const columns of this.#listCounters(metric, selector)) {
      const growth = growthOf(columns);
      const value = columns.series.labels[label] ?? '';
      if (growth > 0) growths.set(value, (growths.get(value) ?? 0) + growth);
    }
    return growths;
  }

  /** Before the first sample that was ever taken, a counter was at 0. */
  #growthSince(from: number): (columns: CounterColumns) => number {
    const [name, tier] = this.#tierOf(from);
    const found = tier.findAt(from);
    if (found < 0 && tier.first === 0) return ({ series }) => series.count >>> 0;
    const sample = Math.max(found, tier.first);
    return (columns) => (columns.series.count - tier.read(columns[name], sample)) >>> 0;
  }

  #tierOf(from: number): readonly ['seconds' | 'quarters', SampleTier] {
    const { first } = this.#seconds;
    return first === 0 || this.#seconds.timeOf(first) <= from
      ? ['seconds', this.#seconds]
      : ['quarters', this.#quarters];
  }

  #average(metric: string, from: number, selector?: Selector): number | undefined {
    const [name, tier] = this.#tierOf(from);
    const gauges = this.#listGauges(metric, selector);
    let [sum, samples] = [0, 0];
    for (let sample = tier.taken - 1; sample >= tier.first && tier.timeOf(sample) > from; sample--, samples++)
      for (const gauge of gauges) sum += tier.read(gauge[name], sample);
    return samples === 0 || gauges.length === 0 ? undefined : sum / samples;
  }

  #growingSince(metric: string, now: number, gapMs: number, selector?: Selector): number | undefined {
    let since: number | undefined;
    for (const at of this.#listGrowths(metric, now, selector)) {
      if ((since ?? now) - at > gapMs) break;
      since = at;
    }
    return since;
  }

  /** The instants of the samples at which the counters had grown, newest first. */
  *#listGrowths(metric: string, now: number, selector?: Selector): Generator<number, undefined> {
    const list = this.#listCounters(metric, selector);
    const newest = this.#seconds.taken - 1;
    if (list.some(({ series, seconds }) => series.count !== this.#seconds.read(seconds, newest))) yield now;
    let until = now;
    for (const [name, tier] of [['seconds', this.#seconds] as const, ['quarters', this.#quarters] as const]) {
      for (let sample = tier.findAt(until); sample > tier.first; sample--)
        if (list.some((columns) => tier.growthOf(columns[name], sample) !== 0)) yield tier.timeOf(sample);
      if (tier.first === 0) return undefined;
      until = tier.timeOf(tier.first);
    }
    return undefined;
  }

  #spanMs(now: number): number {
    return this.#quarters.taken === 0 ? 0 : now - this.#quarters.timeOf(this.#quarters.first);
  }
}

function memoizeLists<T>(list: (metric: string, selector: Selector) => readonly T[]) {
  const lists = new Map<string, Map<Selector, readonly T[]>>();
  return (metric: string, selector = EVERYTHING): readonly T[] => {
    const ofMetric = lists.get(metric) ?? new Map<Selector, readonly T[]>();
    lists.set(metric, ofMetric);
    let found = ofMetric.get(selector);
    if (found === undefined) ofMetric.set(selector, (found = list(metric, selector)));
    return found;
  };
}

function sumOf<T>(parts: readonly T[], read: (part: T) => number): number {
  return parts.reduce((sum, part) => sum + read(part), 0);
}
