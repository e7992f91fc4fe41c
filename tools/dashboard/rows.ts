/**
 * The panels of the dashboard, row by row, with their PromQL. Ratios and quantiles use the metrics, not the recording rules, so that
 * the dashboard works without the rules.
 */
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { StatOptions, GraphOptions } from './panels.ts';

export interface Row {
  readonly title: string;
  /** Collapsed at first. Default false. */
  readonly collapsed?: boolean;
  readonly figures?: readonly StatOptions[];
  /** Lines of the grid, each shared equally. */
  readonly graphs: readonly (readonly GraphOptions[])[];
}

/** Labels of what the variables have chosen. */
export const TARGET_LABELS = 'job=~"$job", namespace=~"$namespace", pod=~"$pod", instance=~"$instance"';
const ROUTE_LABELS = `${TARGET_LABELS}, route=~"$route"`;
const CREDENTIAL_LABELS = `${TARGET_LABELS}, credential=~"$credential"`;

function metricSelector(name: string, labels: string): string {
  return `bearer_sidecar_${name}{${labels}}`;
}

/** Of the process, and only where it is a sidecar. */
function processMetric(name: string): string {
  return `${name}{${TARGET_LABELS}} and on (job, instance) ${metricSelector('build_info', TARGET_LABELS)}`;
}

function rate(name: string, labels: string, by: string): string {
  return `sum by (${by}) (rate(${metricSelector(name, labels)}[$__rate_interval]))`;
}

function count(name: string, labels: string, by: string): string {
  return `sum by (${by}) (increase(${metricSelector(name, labels)}[$__rate_interval]))`;
}

/** Quantiles, and the mean, which needs no buckets (`metrics.buckets: none`). */
function latencies(name: string, labels: string): (readonly [string, string])[] {
  const quantiles = [0.5, 0.9, 0.99].map(
    (q) => [`histogram_quantile(${q}, ${rate(`${name}_bucket`, labels, 'le')})`, `p${Math.round(q * 100)}`] as const,
  );
  const [sum, count] = ['sum', 'count'].map((part) => metricSelector(`${name}_${part}`, labels));
  const mean = `sum(rate(${sum}[$__rate_interval])) / (sum(rate(${count}[$__rate_interval])) > 0)`;
  return [...quantiles, [mean, 'mean']];
}

/** Of all requests, from 0 to 1. @param by labels to keep */
function success(range: string, by = ''): string {
  const amount = (name: string, labels: string): string =>
    `sum by (${by}) (increase(${metricSelector(name, labels)}[${range}]))`;
  const all = amount('requests_total', ROUTE_LABELS);
  const passed = amount('requests_total', `${ROUTE_LABELS}, code=~"[123].."`);
  const foreign = amount('foreign_responses_total', ROUTE_LABELS);
  return `((${passed} or ${all} * 0) - (${foreign} or ${all} * 0)) / (${all} > 0)`;
}

/** The part of the requests with a 4xx that is none of the sidecar's or the partner's failures. */
function clientErrors(range: string): string {
  const all = metricSelector('requests_total', ROUTE_LABELS);
  const own = metricSelector('requests_total', `${ROUTE_LABELS}, code=~"4..", code!~"401|429"`);
  return `(sum(increase(${own}[${range}])) or vector(0)) / (sum(increase(${all}[${range}])) > 0)`;
}

const OVERVIEW: Row = {
  title: 'Overview',
  figures: [
    {
      title: 'Success rate',
      description:
        'Share of requests with a status below 400 and a response of the API, over the time range. The 4xx of the application are apart, below.',
      unit: units.PercentUnit,
      decimals: 2,
      query: success('$__range'),
      base: 'red',
      steps: [
        { from: 0.9, color: 'orange' },
        { from: 0.99, color: 'green' },
      ],
    },
    {
      title: 'Requests',
      description: 'Requests per second.',
      unit: units.RequestsPerSecond,
      query: `sum(rate(${metricSelector('requests_total', ROUTE_LABELS)}[$__rate_interval]))`,
    },
    {
      title: 'p99 latency',
      description:
        'From the arrival of a request to the end of its response, queue wait included. None with metrics.buckets none.',
      unit: units.Seconds,
      query: `histogram_quantile(0.99, sum by (le) (rate(${metricSelector('request_duration_seconds_bucket', ROUTE_LABELS)}[$__rate_interval])))`,
    },
    {
      title: 'Earliest token expiry',
      description: 'Remaining lifetime of the token that expires first. Tokens are refreshed when 15 to 25 % is left.',
      unit: units.Seconds,
      query: `min(${metricSelector('token_expiry_timestamp_seconds', CREDENTIAL_LABELS)} - time())`,
      base: 'red',
      steps: [
        { from: 0, color: 'orange' },
        { from: 60, color: 'green' },
      ],
    },
    {
      title: 'Queued',
      description: 'Requests in the queue now.',
      unit: units.Short,
      query: `sum(${metricSelector('queue_depth', ROUTE_LABELS)})`,
    },
    {
      title: 'Sidecars',
      description: 'Sidecars in the last scrape.',
      unit: units.Short,
      query: `count(${metricSelector('build_info', TARGET_LABELS)})`,
    },
  ],
  graphs: [
    [
      {
        title: 'Requests by code',
        description: '499: the client disconnected before the response had ended.',
        unit: units.RequestsPerSecond,
        stacked: true,
        queries: [[rate('requests_total', ROUTE_LABELS, 'code, source'), '{{code}} {{source}}']],
      },
      {
        title: 'Success by route',
        description:
          'Share of requests with a status below 400 and a response of the API; and of all routes the 4xx other than 401 and 429, which are the own ones of the application.',
        unit: units.PercentUnit,
        max: 1,
        queries: [
          [success('$__rate_interval', 'route'), '{{route}}'],
          [clientErrors('$__rate_interval'), '4xx of the application'],
        ],
      },
      {
        title: 'Request latency',
        description: 'From the arrival of a request to the end of its response, all waits and attempts included.',
        unit: units.Seconds,
        queries: latencies('request_duration_seconds', ROUTE_LABELS),
      },
    ],
    [
      {
        title: 'Requests by route',
        description: 'Requests per second of each route.',
        unit: units.RequestsPerSecond,
        stacked: true,
        queries: [[rate('requests_total', ROUTE_LABELS, 'route'), '{{route}}']],
      },
      {
        title: 'Responses cut off',
        description:
          'The application received a part. upstream: cut off or timed out by the upstream. sidecar: the application stopped reading, or shutdown.',
        unit: units.RequestsPerSecond,
        stacked: true,
        queries: [[rate('responses_cut_total', ROUTE_LABELS, 'route, by'), '{{route}} {{by}}']],
      },
      {
        title: 'Local replies',
        description: 'Error responses of the sidecar itself, by code. 0 is normal.',
        unit: units.RequestsPerSecond,
        stacked: true,
        queries: [[rate('local_replies_total', ROUTE_LABELS, 'code'), '{{code}}']],
      },
    ],
  ],
};

const TOKEN: Row = {
  title: 'Token',
  graphs: [
    [
      {
        title: 'Token lifetime left',
        description: 'Each jump is a refresh. At 0 requests fail.',
        unit: units.Seconds,
        queries: [
          [
            `${metricSelector('token_expiry_timestamp_seconds', CREDENTIAL_LABELS)} - time()`,
            '{{credential}} {{instance}}',
          ],
        ],
      },
      {
        title: 'Token requests',
        description:
          'rejected: the client is rejected and the configuration must change. unavailable: the endpoint cannot be reached.',
        unit: units.Short,
        queries: [
          [count('token_requests_total', CREDENTIAL_LABELS, 'credential, outcome'), '{{credential}} {{outcome}}'],
        ],
      },
      {
        title: 'Consecutive failures',
        description: 'Of the token endpoint. Requests are not affected while the held token is valid.',
        unit: units.Short,
        queries: [[metricSelector('token_endpoint_failures', CREDENTIAL_LABELS), '{{credential}} {{instance}}']],
      },
    ],
    [
      {
        title: 'Duration of a token request',
        description: 'Mean. Empty without token requests.',
        unit: units.Seconds,
        queries: [
          [
            `${rate('token_request_duration_seconds_sum', CREDENTIAL_LABELS, 'credential')} / (${rate('token_request_duration_seconds_count', CREDENTIAL_LABELS, 'credential')} > 0)`,
            '{{credential}}',
          ],
        ],
      },
      {
        title: 'Tokens discarded early',
        description:
          'unauthorized: the upstream responded 401. rotated: the credentials changed. Not accepted yet: the previous token was used.',
        unit: units.Short,
        queries: [
          [count('token_invalidations_total', CREDENTIAL_LABELS, 'credential, reason'), '{{credential}} {{reason}}'],
          [count('token_fallbacks_total', CREDENTIAL_LABELS, 'credential'), '{{credential}} not accepted yet'],
          [
            count('credential_rotation_failures_total', CREDENTIAL_LABELS, 'credential'),
            '{{credential}} new credentials refused',
          ],
        ],
      },
      {
        title: 'Scopes',
        description:
          'Scopes requested and not granted, and requests refused because the token lacks a scope. 0 is normal.',
        unit: units.Short,
        queries: [
          [
            `max by (credential) (${metricSelector('token_scopes_missing', CREDENTIAL_LABELS)})`,
            'missing {{credential}}',
          ],
          [count('insufficient_scope_total', ROUTE_LABELS, 'route'), 'refused {{route}}'],
        ],
      },
    ],
  ],
};

const GOVERNOR: Row = {
  title: 'Rate limit',
  graphs: [
    [
      {
        title: 'Rate',
        description: 'Permits granted, permit rate (absent without a limit), and learned limit, per second.',
        unit: units.RequestsPerSecond,
        queries: [
          [rate('permits_total', ROUTE_LABELS, 'route'), '{{route}} spent'],
          [`max by (route) (${metricSelector('permit_rate', ROUTE_LABELS)} < Inf)`, '{{route}} allowed to each'],
          [
            `max by (route) (${metricSelector('inferred_limit', ROUTE_LABELS)} / ${metricSelector('inferred_window_seconds', ROUTE_LABELS)})`,
            '{{route}} believed limit',
          ],
        ],
      },
      {
        title: 'Share of rate-limited attempts',
        description: 'Of all permits granted.',
        unit: units.PercentUnit,
        queries: [
          [
            `${rate('rate_limited_total', ROUTE_LABELS, 'route')} / (${rate('permits_total', ROUTE_LABELS, 'route')} > 0)`,
            '{{route}}',
          ],
        ],
      },
      {
        title: 'Rate-limit responses',
        description:
          'Responses that signalled a rate limit. Learning causes a few at the start, later about one in 250 attempts.',
        unit: units.RequestsPerSecond,
        queries: [[rate('rate_limited_total', ROUTE_LABELS, 'route'), '{{route}}']],
      },
    ],
    [
      {
        title: 'Paused',
        description: 'Share of the sidecars that are paused after a rate-limit response.',
        unit: units.PercentUnit,
        max: 1,
        queries: [[`avg by (route) (${metricSelector('paused', ROUTE_LABELS)})`, '{{route}}']],
      },
      {
        title: 'Learned limit',
        description:
          'Calls per window, and its length in seconds. Absent while nothing is learned or the rate is configured.',
        unit: units.Short,
        queries: [
          [`max by (route) (${metricSelector('inferred_limit', ROUTE_LABELS)})`, '{{route}} calls'],
          [`max by (route) (${metricSelector('inferred_window_seconds', ROUTE_LABELS)})`, '{{route}} seconds'],
        ],
      },
      {
        title: 'Confidence',
        description: 'In the learned limit: 0 none, 0.5 low, 1 high.',
        unit: units.Short,
        max: 1,
        queries: [[`min by (route) (${metricSelector('limit_confidence', ROUTE_LABELS)})`, '{{route}}']],
      },
    ],
    [
      {
        title: 'Declared limits used',
        description: 'Share of the calls that a limit of throttle.limits allows in its window: at 100 % requests wait.',
        unit: units.PercentUnit,
        isBars: true,
        queries: [
          [
            `max by (route, limit) (${metricSelector('declared_limit_used', ROUTE_LABELS)} / ${metricSelector('declared_limit_calls', ROUTE_LABELS)})`,
            '{{route}} {{limit}}',
          ],
        ],
      },
      {
        title: 'Declared limits: time left',
        description: 'Until a limit is used up at the pace of the last hour. Absent while it lasts.',
        unit: units.Seconds,
        queries: [
          [
            `min by (route, limit) (${metricSelector('declared_limit_exhausted_timestamp_seconds', ROUTE_LABELS)} - time())`,
            '{{route}} {{limit}}',
          ],
        ],
      },
    ],
  ],
};

const QUEUE: Row = {
  title: 'Queue',
  graphs: [
    [
      {
        title: 'Depth',
        description: 'Queued requests and the limit of the queue.',
        unit: units.Short,
        queries: [
          [`sum by (route) (${metricSelector('queue_depth', ROUTE_LABELS)})`, '{{route}} waiting'],
          [`sum by (route) (${metricSelector('queue_limit', ROUTE_LABELS)})`, '{{route}} limit'],
        ],
      },
      {
        title: 'In flight',
        description: 'Attempts in flight and their limit. With auto the limit grows from 4.',
        unit: units.Short,
        queries: [
          [`sum by (route) (${metricSelector('in_flight', ROUTE_LABELS)})`, '{{route}} under way'],
          [`sum by (route) (${metricSelector('in_flight_limit', ROUTE_LABELS)})`, '{{route}} limit'],
        ],
      },
      {
        title: 'Queue wait',
        description: 'Time that requests waited for a permit.',
        unit: units.Seconds,
        queries: latencies('queue_wait_seconds', ROUTE_LABELS),
      },
      {
        title: 'Rejected in the queue',
        description: 'full, timeout, expected_wait and quota got 503; client_left disconnected.',
        unit: units.RequestsPerSecond,
        stacked: true,
        queries: [[rate('queue_rejected_total', ROUTE_LABELS, 'reason'), '{{reason}}']],
      },
    ],
  ],
};

const UPSTREAM: Row = {
  title: 'Upstream: attempts and retries',
  graphs: [
    [
      {
        title: 'Attempts by outcome',
        description: 'All attempts, retries included. reset: no response. cut: cut off after the response head.',
        unit: units.RequestsPerSecond,
        stacked: true,
        queries: [[rate('upstream_attempts_total', ROUTE_LABELS, 'outcome'), '{{outcome}}']],
      },
      {
        title: 'Attempt latency',
        description: 'Time of the upstream to the response head.',
        unit: units.Seconds,
        queries: latencies('upstream_duration_seconds', ROUTE_LABELS),
      },
      {
        title: 'Retries',
        description: 'Retries, and retries that the retry budget refused.',
        unit: units.RequestsPerSecond,
        queries: [
          [rate('retries_total', TARGET_LABELS, 'reason'), '{{reason}}'],
          [rate('retry_budget_exhausted_total', TARGET_LABELS, 'reason'), '{{reason}} held back'],
        ],
      },
      {
        title: 'Attempts per request',
        description: '1 is ideal. Below 1, the sidecar rejected requests without an attempt.',
        unit: units.Short,
        decimals: 2,
        queries: [
          [
            `sum(rate(${metricSelector('upstream_attempts_total', ROUTE_LABELS)}[$__rate_interval])) / (sum(rate(${metricSelector('requests_total', ROUTE_LABELS)}[$__rate_interval])) > 0)`,
            'attempts',
          ],
        ],
      },
    ],
    [
      {
        title: 'Attempts without a response',
        description:
          'By cause. What the sidecar ended itself is not counted. response_cut: cut off after the response head.',
        unit: units.RequestsPerSecond,
        stacked: true,
        queries: [[rate('upstream_faults_total', ROUTE_LABELS, 'cause'), '{{cause}}']],
      },
      {
        title: 'Calls with an unknown outcome',
        description: 'Not idempotent, sent, and without a response: each may have been carried out. 0 is normal.',
        unit: units.Short,
        queries: [[count('unknown_outcomes_total', ROUTE_LABELS, 'route'), '{{route}}']],
      },
      {
        title: 'Attempt latency by route',
        description: 'Mean time of the upstream to the response head. The wait in the queue is not part of it.',
        unit: units.Seconds,
        queries: [
          [
            `${rate('upstream_duration_seconds_sum', ROUTE_LABELS, 'route')} / (${rate('upstream_duration_seconds_count', ROUTE_LABELS, 'route')} > 0)`,
            '{{route}}',
          ],
        ],
      },
    ],
  ],
};

const PROCESS: Row = {
  title: 'Process',
  figures: [
    {
      title: 'Version',
      description: 'Number of sidecars per version.',
      unit: units.Short,
      query: `count by (version) (${metricSelector('build_info', TARGET_LABELS)})`,
      legend: '{{version}}',
    },
    {
      title: 'Restarts',
      description: 'Over the time range.',
      unit: units.Short,
      decimals: 0,
      query: `sum(changes(process_start_time_seconds{${TARGET_LABELS}}[$__range]) and on (job, instance) ${metricSelector('build_info', TARGET_LABELS)})`,
      base: 'green',
      steps: [{ from: 1, color: 'orange' }],
    },
    {
      title: 'Shortest uptime',
      description: 'Time since the last start of a sidecar.',
      unit: units.DurationSeconds,
      query: `min(time() - (${processMetric('process_start_time_seconds')}))`,
    },
    {
      title: 'Log lines dropped',
      description: 'Over the time range: standard output was slow, full or closed.',
      unit: units.Short,
      decimals: 0,
      query: `sum(increase(${metricSelector('log_lines_dropped_total', TARGET_LABELS)}[$__range]))`,
      base: 'green',
      steps: [{ from: 1, color: 'orange' }],
    },
  ],
  graphs: [
    [
      {
        title: 'Memory',
        description: 'Resident memory and used heap.',
        unit: units.BytesIEC,
        queries: [
          [processMetric('process_resident_memory_bytes'), '{{instance}} resident'],
          [processMetric('nodejs_heap_size_used_bytes'), '{{instance}} heap'],
        ],
      },
      {
        title: 'CPU',
        description: 'Cores in use. The event loop uses at most one core.',
        unit: units.Short,
        queries: [
          [
            `rate(process_cpu_seconds_total{${TARGET_LABELS}}[$__rate_interval]) and on (job, instance) ${metricSelector('build_info', TARGET_LABELS)}`,
            '{{instance}}',
          ],
        ],
      },
      {
        title: 'Event-loop lag',
        description: 'About 10 ms is idle: that is the resolution.',
        unit: units.Seconds,
        queries: [
          [processMetric('nodejs_eventloop_lag_p99_seconds'), '{{instance}} p99'],
          [processMetric('nodejs_eventloop_lag_max_seconds'), '{{instance}} max'],
        ],
      },
    ],
    [
      {
        title: 'Open file descriptors',
        description: 'Each connection uses one.',
        unit: units.Short,
        queries: [[processMetric('process_open_fds'), '{{instance}}']],
      },
      {
        title: 'Garbage collection',
        description: 'Share of the time that the event loop is paused for it.',
        unit: units.PercentUnit,
        queries: [
          [
            `sum by (instance) (rate(nodejs_gc_duration_seconds_sum{${TARGET_LABELS}}[$__rate_interval]) and on (job, instance) ${metricSelector('build_info', TARGET_LABELS)})`,
            '{{instance}}',
          ],
        ],
      },
      {
        title: 'Configuration and clients',
        description: 'Configuration reloads, and requests whose Authorization was replaced.',
        unit: units.Short,
        queries: [
          [count('config_reloads_total', TARGET_LABELS, 'outcome'), 'reload {{outcome}}'],
          [
            `sum(increase(${metricSelector('client_authorization_overridden_total', TARGET_LABELS)}[$__rate_interval]))`,
            'overridden',
          ],
        ],
      },
    ],
  ],
};

const FLEET: Row = {
  title: 'Fleet (with SIDECAR_REDIS_URL only)',
  collapsed: true,
  graphs: [
    [
      {
        title: 'Connected',
        description:
          '1 while connected to Redis and its replies are in time; at 0 a replica works alone. degraded: the replies are too late.',
        unit: units.Short,
        max: 1,
        queries: [
          [metricSelector('fleet_connected', TARGET_LABELS), '{{instance}}'],
          [metricSelector('fleet_degraded', TARGET_LABELS), '{{instance}} degraded'],
        ],
      },
      {
        title: 'Replicas',
        description: 'Replicas that share the quota, as reported by each.',
        unit: units.Short,
        queries: [[`max by (route) (${metricSelector('fleet_replicas', ROUTE_LABELS)})`, '{{route}}']],
      },
      {
        title: 'Commands to Redis',
        description: 'timeout: longer than fleet.timeoutMs. error: refused or reset.',
        unit: units.OpsPerSecond,
        stacked: true,
        queries: [[rate('fleet_commands_total', TARGET_LABELS, 'outcome'), '{{outcome}}']],
      },
      {
        title: 'Tokens of other replicas',
        description: 'Token results taken over from other replicas, without a token request.',
        unit: units.Short,
        queries: [
          [count('fleet_tokens_total', CREDENTIAL_LABELS, 'credential, outcome'), '{{credential}} {{outcome}}'],
        ],
      },
    ],
  ],
};

/** From top to bottom. */
export const ROWS: readonly Row[] = [OVERVIEW, TOKEN, GOVERNOR, QUEUE, UPSTREAM, PROCESS, FLEET];
