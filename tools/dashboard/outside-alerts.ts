/**
 * Alerts on what a sidecar cannot see of itself, in PromQL alone: it is down, restarts, stalls, or loses its log. The others are in
 * src/admin/alerts/alert-table.ts.
 */
import type { AlertText } from '../../src/admin/alerts/alert-table.ts';

/** An alert that only Prometheus evaluates. */
export interface OutsideAlert extends AlertText {
  readonly promql: string;
}

const MINUTE_MS = 60_000;
/** Another application on Node.js in the same Prometheus is not ours. */
const OF_SIDECAR = 'and on (job, instance) bearer_sidecar_build_info';

export const OUTSIDE_ALERTS = {
  BearerSidecarDown: {
    ...{ severity: 'critical', forMs: 2 * MINUTE_MS, group: 'service' },
    // Whatever the job is called. A day, so that the alert lasts as long as an outage; a target that is removed has no `up`.
    promql: 'up == 0 and on (job, instance) last_over_time(bearer_sidecar_build_info[1d])',
    headline: 'The sidecar cannot be scraped',
    description: 'Its admin port has not responded for two minutes. Requests of its application may fail.',
  },
  BearerSidecarRestarting: {
    ...{ severity: 'critical', forMs: 0, group: 'service' },
    promql: `changes(process_start_time_seconds[15m]) > 2\n${OF_SIDECAR}`,
    headline: 'The sidecar has restarted {count} times in 15 minutes',
    description: 'Each restart aborts the requests in flight and requests a new token.',
  },
  BearerSidecarEventLoopStalled: {
    ...{ severity: 'warning', forMs: 5 * MINUTE_MS, group: 'process' },
    // One stall of two seconds is enough: it counts for 15 minutes, longer than `for`, which applies to the first half.
    promql: `(nodejs_eventloop_lag_p99_seconds > 0.2 or max_over_time(nodejs_eventloop_lag_max_seconds[15m]) > 2)\n${OF_SIDECAR}`,
    headline: 'The event loop stalls for {duration}',
    description: 'Every request is delayed by that. The process has too little CPU or memory.',
  },
  BearerSidecarFileDescriptorsLow: {
    ...{ severity: 'warning', forMs: 5 * MINUTE_MS, group: 'process' },
    promql: `process_open_fds / process_max_fds > 0.8\n${OF_SIDECAR}`,
    headline: '{share} of the file descriptors are in use',
    description: 'When the limit of client connections is reached, idle ones are closed and new ones get 503.',
  },
  BearerSidecarLogLinesDropped: {
    ...{ severity: 'warning', forMs: 0, group: 'process' },
    promql: 'increase(bearer_sidecar_log_lines_dropped_total[10m]) > 0',
    headline: 'Log lines are dropped',
    description: 'Standard output is slow, full or closed. Requests are not delayed.',
  },
} as const satisfies Readonly<Record<string, OutsideAlert>>;
