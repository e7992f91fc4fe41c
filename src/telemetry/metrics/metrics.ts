/**
 * The counters of the sidecar, and their exposition. Frequent facts are counted where they happen, by what is bound here (`bindRoute`,
 * `bindThrottle`); rare ones come as events. Gauges are read at a scrape (gauges.ts). It has its own registry, not prom-client's global one.
 */
import { collectDefaultMetrics, Registry } from 'prom-client';
import type { Metric, MetricObjectWithValues, MetricValueWithName } from 'prom-client';
import { createCatalogue, type ConfiguredLabelValues } from './catalogue.ts';
import type { SidecarEvent } from '../events.ts';
import { readGauges, registerGauges, type GaugeStates } from './gauges.ts';
import type { RecordObservers, RecordPermit } from '../request-record.ts';
import { createRouteCounters } from './route-counters.ts';
import { expose, SeriesRegistry } from './series.ts';
import { renderMetrics } from './text-format.ts';

/** Gauges of prom-client that `promtool check metrics` refuses: `_total` is for counters. */
const EXCLUDED_DEFAULT_METRICS = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

export type ExposedBuckets = 'default' | 'few' | 'none';

/** The bounds that `few` exposes beside +Inf, seconds. 10 is the threshold of an alert, which needs a bucket above it, too. */
const FEW_BUCKETS: readonly number[] = [0.1, 1, 10, 60];

export interface MetricsOptions extends ConfiguredLabelValues {
  /** Read at every scrape and every sample. */
  readonly readStates: () => GaugeStates;
  /** Default false: no metrics of a fleet. */
  readonly hasFleet?: boolean;
  /** The buckets of all histograms. Default: all. */
  readonly buckets?: ExposedBuckets;
  /** Log lines dropped since the start. Default: 0. */
  readonly readDroppedLines?: () => number;
}

export type Metrics = ReturnType<typeof createMetrics>;

const NO_OBSERVERS: RecordObservers = { requests: [] };

export function createMetrics(options: MetricsOptions) {
  const { readStates, hasFleet = false, buckets = 'default', readDroppedLines = () => 0 } = options;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of EXCLUDED_DEFAULT_METRICS) registry.removeSingleMetric(name);
  const series = new SeriesRegistry(registry);
  const { catalogue, countEvent } = createCatalogue(series, options, hasFleet);
  // Read once for all gauges of a scrape.
  let states: GaugeStates;
  registerGauges(registry, hasFleet, () => states);
  const dropped = 'Log lines dropped because standard output was too slow, full or closed.';
  expose(registry, 'counter', { name: 'log_lines_dropped_total', help: dropped }, () => [
    { labels: {}, value: readDroppedLines() },
  ]);
  if (buckets !== 'default') limitBuckets(registry, buckets);
  return {
    observe(event: SidecarEvent): void {
      countEvent(event);
      if (event.kind === 'token-requested')
        catalogue.token_requests_total.find(event.credential, event.outcome).record(event.durationMs);
      if (event.kind === 'would-wait') catalogue.would_permits_total.find(event.route).record(event.waitedMs);
    },
    /** @param observers who gets the records of the route besides. Default: none */
    bindRoute: (route: string, observers = NO_OBSERVERS) => createRouteCounters(route, catalogue, observers),
    bindThrottle: (route: string, observers = NO_OBSERVERS): RecordPermit => {
      const permits = catalogue.permits_total.find(route);
      return (waitedMs) => {
        permits.record(waitedMs);
        observers.debug?.({ kind: 'permit-granted', route, waitedMs });
      };
    },
    series,
    readGauges: () => readGauges(readStates()),
    /** All metrics in the Prometheus text format. Rejects when a state cannot be read. */
    async render(): Promise<string> {
      states = readStates();
      return await renderMetrics(registry);
    },
    contentType: registry.contentType,
  };
}

type Samples = MetricObjectWithValues<MetricValueWithName<string>>;

/**
 * `metrics.buckets`: leaves buckets of the histograms out of the exposition. Buckets are cumulative, so that those that stay keep their
 * values. Applies to all metrics that are registered by now. `none` turns histograms into summaries: those may have a count and a sum only.
 */
function limitBuckets(registry: Registry, exposed: 'few' | 'none'): void {
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
  // prom-client declares the type as a numeric enum and gives its name.
  if (String(samples.type) !== 'histogram') return samples;
  const values = [...samples.values].filter(({ metricName, labels }) => {
    if (metricName !== `${samples.name}_bucket`) return true;
    return exposed === 'few' && (labels.le === '+Inf' || FEW_BUCKETS.includes(Number(labels.le)));
  });
  return { ...samples, values, ...(exposed === 'none' && { type: 'summary' as unknown as Samples['type'] }) };
}
