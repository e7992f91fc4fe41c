/** What observes the sidecar: the metrics, the ring of their samples and the record of notable events, with the log of the command. */
import { createActivity } from '../admin/history/activity.ts';
import { PastSuccesses } from '../admin/history/past-successes.ts';
import { Sampler } from '../admin/samples/sampler.ts';
import type { Clock } from '../platform/clock.ts';
import { findThrottleGroups, type Config } from '../config/config.ts';
import { DEFAULT_NAME } from '../config/schema/schema-routes.ts';
import { maskEvent } from '../telemetry/event-texts.ts';
import type { SidecarEvent } from '../telemetry/events.ts';
import type { Log } from '../telemetry/log/log.ts';
import type { GaugeStates } from '../telemetry/metrics/gauges.ts';
import { createMetrics } from '../telemetry/metrics/metrics.ts';

export interface ObservationOptions {
  readonly config: Config;
  readonly clock: Clock;
  /** Read at every scrape and every sample, from `sampler.start()` on. */
  readonly readStates: () => GaugeStates;
  /** Gets every event first; the recent calls are added to its recorders. */
  readonly log: Pick<Log, 'observe' | 'recorders' | 'droppedLines' | 'secrets'>;
}

export type Observation = ReturnType<typeof createObservation>;

export function createObservation({ config, clock, log, readStates }: ObservationOptions) {
  const metrics = createMetrics({
    ...config.metrics,
    readStates,
    hasFleet: config.fleet !== undefined,
    // Requests without a route are counted under the default one.
    routes: [...new Set([DEFAULT_NAME, ...config.routes.map(({ name }) => name)])],
    throttleNames: [...findThrottleGroups(config).keys()],
    credentials: config.credentials.map(({ name }) => name),
    readDroppedLines: log.droppedLines,
  });
  const activity = createActivity(clock, config.admin.recentCalls, log.secrets.mask);
  log.recorders.requests.push(activity.recordRequest);
  const { counters, durations, bounds } = metrics.series;
  const source = { counters, durations, bounds, gauges: metrics.readGauges };
  const sampler = new Sampler({ clock, source, routes: config.routes.length });
  const successes = new PastSuccesses(source, clock);
  sampler.subscribe(() => successes.sample());
  return {
    metrics,
    activity,
    successes,
    sampler,
    observe: (received: SidecarEvent): void => {
      const event = maskEvent(received, log.secrets.mask);
      log.observe(event);
      metrics.observe(event);
      activity.observe(event);
      successes.observe(event);
    },
    bindRoute: (route: string) => metrics.bindRoute(route, log.recorders),
    bindThrottle: (group: string) => metrics.bindThrottle(group, log.recorders),
  };
}
