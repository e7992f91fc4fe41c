/** What observes the sidecar: the metrics, the ring of their samples and the record of notable events, with the log of the command. */
import { createActivity, type Activity } from '../admin/history/activity.ts';
import { Sampler } from '../admin/samples/sampler.ts';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../config/config.ts';
import { DEFAULT_NAME } from '../config/schema/schema-routes.ts';
import type { EventObserver } from '../telemetry/events.ts';
import type { GaugeStates } from '../telemetry/metrics/gauges.ts';
import { createMetrics, type Metrics } from '../telemetry/metrics/metrics.ts';
import type { RecordObservers, RecordPermit, RouteCounters } from '../telemetry/request-record.ts';
import { findThrottleGroups } from './routes.ts';

export interface ObservationOptions {
  readonly config: Config;
  readonly clock: Clock;
  /** Read at every scrape and every sample, from `sampler.start()` on. */
  readonly readStates: () => GaugeStates;
  readonly readDroppedLines: () => number;
  /** Gets every event first. */
  readonly log: EventObserver;
  /** Get each record, for the log; the recent calls are added to them. Default: none. */
  readonly recorders: RecordObservers | undefined;
}

export interface Observation {
  readonly metrics: Metrics;
  readonly activity: Activity;
  readonly sampler: Sampler;
  readonly observe: EventObserver;
  readonly bindRoute: (route: string) => RouteCounters;
  readonly bindThrottle: (group: string) => RecordPermit;
}

export function createObservation(options: ObservationOptions): Observation {
  const { config, clock, log, readStates, readDroppedLines, recorders = { requests: [] } } = options;
  const metrics = createMetrics({
    ...config.metrics,
    readStates,
    hasFleet: config.fleet !== undefined,
    // Requests without a route are counted under the default one.
    routes: [...new Set([DEFAULT_NAME, ...config.routes.map(({ name }) => name)])],
    throttleNames: [...findThrottleGroups(config).keys()],
    credentials: config.credentials.map(({ name }) => name),
    readDroppedLines,
  });
  const activity = createActivity(clock, config.admin.recentCalls);
  recorders.requests.push(activity.recordRequest);
  const { counters, durations, bounds } = metrics.series;
  const source = { counters, durations, bounds, gauges: metrics.readGauges };
  return {
    metrics,
    activity,
    sampler: new Sampler({ clock, source, routes: config.routes.length }),
    observe: (event) => {
      log(event);
      metrics.observe(event);
      activity.observe(event);
    },
    bindRoute: (route) => metrics.bindRoute(route, recorders),
    bindThrottle: (group) => metrics.bindThrottle(group, recorders),
  };
}
