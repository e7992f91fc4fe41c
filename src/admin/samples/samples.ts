/**
 * The counters and gauges of the metrics over the last hour, as a Prometheus would see them: what the page, /status, the alerts and the
 * verdict read. Names are the exported ones without the prefix. Types alone, and which series a selector means; sample-ring.ts keeps the samples (pure).
 */
import { memoize } from '../../platform/memoize.ts';

/** Selects series by label: each value is a regular expression that must match the whole label value, as `=~` in PromQL. */
export type Selector = Readonly<Record<string, string>>;

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

const compile = memoize((pattern) => new RegExp(`^(?:${pattern})$`)).find;

export function matchLabels(labels: Labels, selector: Selector): boolean {
  for (const [name, pattern] of Object.entries(selector)) {
    const value = labels[name] ?? '';
    // A plain value needs no expression.
    if (value !== pattern && !compile(pattern).test(value)) return false;
  }
  return true;
}

/** The pattern that matches this text alone. */
export function quotePattern(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
}
