/**
 * `metrics.buckets`: leaves buckets of the histograms out of the exposition. Buckets are cumulative, so that those that stay keep
 * their values. What the histograms count, series.ts and prom-client decide.
 */
import type { Metric, MetricObjectWithValues, MetricValueWithName, Registry } from 'prom-client';

/** Which buckets are exposed: all, a few, or none. */
export type ExposedBuckets = 'default' | 'few' | 'none';

/** Of `few`, beside +Inf, in seconds. 10 is the threshold of an alert, which needs a bucket above it, too. */
const FEW: readonly number[] = [0.1, 1, 10, 60];

type Samples = MetricObjectWithValues<MetricValueWithName<string>>;

/** Applies to all metrics that are registered by now. `none` turns histograms into summaries: those may have a count and a sum only. */
export function limitBuckets(registry: Registry, exposed: ExposedBuckets): void {
  if (exposed === 'default') return;
  for (const { name } of registry.getMetricsAsArray()) {
    const metric = registry.getSingleMetric(name);
    if (metric === undefined) continue;
    registry.removeSingleMetric(name);
    const get = async () => withoutBuckets(await metric.get(), exposed);
    // A registry calls nothing else of a metric; the declared type is that of prom-client's classes.
    registry.registerMetric({ name, get } as unknown as Metric);
  }
}

function withoutBuckets(samples: Samples, exposed: 'few' | 'none'): Samples {
  if (!isHistogram(samples)) return samples;
  const values = samples.values.filter(({ metricName, labels }) => {
    if (metricName !== `${samples.name}_bucket`) return true;
    return exposed === 'few' && (labels.le === '+Inf' || FEW.includes(Number(labels.le)));
  });
  return { ...samples, values, ...(exposed === 'none' && { type: 'summary' as unknown as Samples['type'] }) };
}

/** prom-client declares the type as a numeric enum and gives its name. */
function isHistogram({ type }: Samples): boolean {
  return String(type) === 'histogram';
}
