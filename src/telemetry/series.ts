/**
 * Counters and histograms as plain functions: each set of label values is resolved once, so that an update on the way of
 * a request costs a map look-up. Which series there are is told in metrics.ts.
 */
import { Counter, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';

/** Sub-millisecond to minutes: what the sidecar adds by itself, and what queues and slow answers take. */
const DURATION_BUCKETS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300,
];

export interface SeriesOptions {
  readonly registry: Registry;
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  /** Sets of label values that are there from the start, at 0; one empty set for a metric without labels. */
  readonly initial: readonly (readonly string[])[];
}

/** Adds 1 to the series of these label values, given in the order of the label names. */
export type Count = (...labels: string[]) => void;

/** Records a duration, milliseconds, in the series of these label values. What is no duration counts as 0. */
export type Time = (durationMs: number, ...labels: string[]) => void;

/** Registers a counter. */
export function createCounter({ registry, name, help, labelNames, initial }: SeriesOptions): Count {
  const counter = new Counter({ name, help, labelNames, registers: [registry] });
  for (const labels of initial) counter.labels(...labels).inc(0);
  const childOf = rememberChildren((labels) => counter.labels(...labels));
  return (...labels) => {
    childOf(labels).inc();
  };
}

/** Registers a histogram of durations, in seconds. */
export function createHistogram({ registry, name, help, labelNames, initial }: SeriesOptions): Time {
  const histogram = new Histogram({ name, help, labelNames, buckets: DURATION_BUCKETS, registers: [registry] });
  for (const labels of initial) {
    histogram.zero(Object.fromEntries(labelNames.map((labelName, index) => [labelName, labels[index] ?? ''])));
  }
  const childOf = rememberChildren((labels) => histogram.labels(...labels));
  return (durationMs, ...labels) => {
    // prom-client throws on what is not finite, and an observer must not.
    childOf(labels).observe(durationMs > 0 && Number.isFinite(durationMs) ? durationMs / 1000 : 0);
  };
}

function rememberChildren<C>(create: (labels: string[]) => C): (labels: string[]) => C {
  const children = new Map<string, C>();
  return (labels) => {
    const key = labels.length === 1 ? (labels[0] ?? '') : labels.join('\n');
    let child = children.get(key);
    if (child === undefined) children.set(key, (child = create(labels)));
    return child;
  };
}
