/**
 * The counters and gauges of the metrics over the last hour, as a Prometheus would see them: what the page, /status, the alerts and the
 * verdict read. Names are the exported ones without the prefix. Types alone; sample-ring.ts keeps the samples.
 */

/** Selects series by label: each value is a regular expression that must match the whole label value, as `=~` in PromQL. */
export type Selector = Readonly<Record<string, string>>;

/** The samples at one instant. A window reaches from then back; where less was recorded, it is as long as that. */
export interface Samples {
  /** Monotonic milliseconds. */
  readonly now: number;
  /** How long samples have been taken, milliseconds, at most an hour. */
  readonly spanMs: number;
  /**
   * Growth of the counters that match, summed. `<histogram>_count` and `<histogram>_bucket`, with `le` of an exposed bound as its text,
   * reach back five minutes.
   * @param windowMs at most an hour; to a second up to five minutes, beyond to 15 seconds
   */
  increase(metric: string, windowMs: number, selector?: Selector): number;
  /** The same for each value of one label; values without growth are left out. */
  increaseBy(label: string, metric: string, windowMs: number, selector?: Selector): ReadonlyMap<string, number>;
  /** The present value, summed over the gauges that match; undefined without one. */
  gauge(metric: string, selector?: Selector): number | undefined;
  /** The smallest of the present values; undefined without one. */
  least(metric: string, selector?: Selector): number | undefined;
  /** The mean of the samples of `queue_depth`, `in_flight`, `permit_rate` or `paused`; undefined without a sample. */
  average(metric: string, windowMs: number, selector?: Selector): number | undefined;
  /**
   * A quantile in milliseconds; undefined without an observation. Only `request_duration_seconds` is known to the second, and without
   * labels; `upstream_duration_seconds` and `queue_wait_seconds` have the label `route` and are known to five seconds.
   * @param share 0.5 for the median
   * @param windowMs at most five minutes
   */
  quantile(histogram: string, share: number, windowMs: number, selector?: Selector): number | undefined;
  /** Since when the counters have grown without a gap longer than `gapMs`, monotonic milliseconds; undefined when they do not grow. */
  growingSince(metric: string, gapMs: number, selector?: Selector): number | undefined;
  /** When the counters grew last, monotonic milliseconds; undefined when not within the hour. */
  lastGrowthAt(metric: string, selector?: Selector): number | undefined;
}

export type Labels = Readonly<Record<string, string>>;

/** A series that only grows, and is read again for each sample. */
export interface CounterReading {
  readonly labels: Labels;
  readonly count: number;
}

/** Observations in fine buckets, not cumulative; the last one has no upper bound. */
export interface DurationReading {
  readonly labels: Labels;
  readonly buckets: ArrayLike<number>;
}

export interface GaugeReading {
  readonly metric: string;
  readonly labels: Labels;
  readonly value: number;
}

/** What is sampled. The lists of series grow, in order, and never shrink. */
export interface SampleSource {
  readonly counters: ReadonlyMap<string, readonly CounterReading[]>;
  readonly durations: ReadonlyMap<string, readonly DurationReading[]>;
  /** Upper bounds of the fine buckets, seconds, ascending; one fewer than buckets. */
  readonly bounds: readonly number[];
  gauges(): readonly GaugeReading[];
}
