/**
 * The counters of the sidecar, and their exposition. Frequent facts are counted where they happen, by what is bound here (`bindRoute`,
 * `bindThrottle`); rare ones come as events. Gauges are read at a scrape (gauges.ts). It has its own registry, not prom-client's global one.
 */
import { collectDefaultMetrics, Counter, Registry } from 'prom-client';
import { limitBuckets } from './buckets.ts';
import type { ExposedBuckets } from './buckets.ts';
import { createCatalogue, createFleetCatalogue } from './catalogue.ts';
import type { Catalogue, ConfiguredLabelValues } from './catalogue.ts';
import type { EventObserver, SidecarEvent } from '../events.ts';
import { readGauges, registerGauges } from './gauges.ts';
import type { GaugeReading, GaugeStates } from './gauges.ts';
import type { RecordObservers, RecordPermit, RouteCounters } from '../request-record.ts';
import { RouteMetrics } from './route-metrics.ts';
import { METRIC_PREFIX, SeriesRegistry } from './series.ts';

/** Gauges of prom-client that `promtool check metrics` refuses: `_total` is for counters. */
const EXCLUDED_DEFAULT_METRICS = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

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

export interface Metrics {
  /** Counts rare events. */
  readonly observe: EventObserver;
  /** The counters of a route. @param observers who gets its records besides. Default: none */
  bindRoute(route: string, observers?: RecordObservers): RouteCounters;
  /** The counter of a throttle's permits. */
  bindThrottle(name: string, observers?: RecordObservers): RecordPermit;
  /** The raw numbers, for the ring of samples. */
  readonly series: SeriesRegistry;
  readonly readGauges: () => GaugeReading[];
  /** All metrics in the Prometheus text format. Rejects when a state cannot be read. */
  render(): Promise<string>;
  /** The content type of that text. */
  readonly contentType: string;
}

const NO_OBSERVERS: RecordObservers = { requests: [] };

/** Creates a registry with every metric, those of the process included. */
export function createMetrics(options: MetricsOptions): Metrics {
  const { readStates, hasFleet = false, credentials } = options;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of EXCLUDED_DEFAULT_METRICS) registry.removeSingleMetric(name);
  const series = new SeriesRegistry(registry);
  const catalogue = createCatalogue(series, options);
  const fleet = hasFleet ? createFleetCatalogue(series, credentials) : undefined;
  const updateGauges = registerGauges(registry, hasFleet);
  countDroppedLines(registry, options.readDroppedLines ?? (() => 0));
  limitBuckets(registry, options.buckets ?? 'default');
  return {
    observe(event) {
      countEvent(catalogue, event);
      if (fleet !== undefined) countFleetEvent(fleet, event);
    },
    bindRoute: (route, observers = NO_OBSERVERS) => new RouteMetrics(route, catalogue, observers),
    bindThrottle: (route, observers = NO_OBSERVERS) => {
      const permits = catalogue.permits.find(route);
      return (waitedMs) => {
        permits.record(waitedMs);
        observers.debug?.({ kind: 'permit-granted', route, waitedMs });
      };
    },
    series,
    readGauges: () => readGauges(readStates()),
    async render() {
      updateGauges(readStates());
      return await registry.metrics();
    },
    contentType: registry.contentType,
  };
}

function countEvent(catalogue: Catalogue, event: SidecarEvent): void {
  switch (event.kind) {
    case 'attempt-failed':
      if (event.cause !== undefined) catalogue.faults.find(event.route, event.cause).count++;
      break;
    case 'retry':
      catalogue.retries.find(event.reason).count++;
      break;
    case 'retry-budget-exhausted':
      catalogue.retryBudgetExhausted.find(event.reason).count++;
      break;
    case 'rate-limited':
      catalogue.rateLimited.find(event.route).count++;
      break;
    case 'unconfigured-refusal':
      catalogue.unconfiguredRefusals.find(event.route, String(event.status)).count++;
      break;
    case 'queue-rejected':
      catalogue.queueRejected.find(event.route, event.reason).count++;
      break;
    case 'insufficient-scope':
      catalogue.insufficientScope.find(event.route).count++;
      break;
    case 'authorization-overridden':
      catalogue.authorizationOverridden.find().count++;
      break;
    case 'configuration-read':
      catalogue.configReloads.find(event.outcome).count++;
      break;
    default:
      countTokenEvent(catalogue, event);
  }
}

function countTokenEvent(catalogue: Catalogue, event: SidecarEvent): void {
  switch (event.kind) {
    case 'token-requested':
      catalogue.tokenRequests.find(event.credential, event.outcome).record(event.durationMs);
      break;
    case 'token-invalidated':
      catalogue.tokenInvalidations.find(event.credential, event.reason).count++;
      break;
    case 'token-not-accepted-yet':
      catalogue.tokenFallbacks.find(event.credential).count++;
      break;
    case 'credential-rotation':
      if (event.outcome !== 'taken') catalogue.rotationFailures.find(event.credential).count++;
      break;
    default:
  }
}

function countFleetEvent(fleet: ReturnType<typeof createFleetCatalogue>, event: SidecarEvent): void {
  if (event.kind === 'fleet-command') fleet.commands.find(event.outcome).count++;
  if (event.kind === 'token-found' && event.from === 'fleet') fleet.tokens.find(event.credential, 'ok').count++;
  if (event.kind === 'token-not-asked') fleet.tokens.find(event.credential, event.outcome).count++;
}

function countDroppedLines(registry: Registry, droppedLines: () => number): void {
  let counted = 0;
  new Counter({
    name: `${METRIC_PREFIX}log_lines_dropped_total`,
    help: 'Log lines dropped because standard output was too slow, full or closed.',
    registers: [registry],
    collect() {
      const dropped = droppedLines();
      this.inc(dropped - counted);
      counted = dropped;
    },
  });
}
