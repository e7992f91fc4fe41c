/**
 * What the dashboard shows, row by row: the question of each panel and the PromQL that answers it. Ratios and quantiles are
 * asked of the metrics themselves and not of the recorded ones, so that it works without the rules.
 */
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { StatOptions, GraphOptions } from './panels.ts';

export interface Row {
  readonly title: string;
  /** Closed until somebody opens it. Default false. */
  readonly collapsed?: boolean;
  readonly figures?: readonly StatOptions[];
  /** Lines of the grid, each shared equally. */
  readonly graphs: readonly (readonly GraphOptions[])[];
}

/** Labels of what the variables have chosen. */
export const TARGET_LABELS = 'job=~"$job", namespace=~"$namespace", pod=~"$pod", instance=~"$instance"';
const ROUTE_LABELS = `${TARGET_LABELS}, route=~"$route"`;
const CREDENTIAL_LABELS = `${TARGET_LABELS}, credential=~"$credential"`;
/** What the application cannot use: see docs/operations.md. */
const FAILED_CODES = 'code=~"401|429|5.."';

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

function quantiles(name: string, labels: string): (readonly [string, string])[] {
  return [0.5, 0.9, 0.99].map((q) => [
    `histogram_quantile(${q}, ${rate(`${name}_bucket`, labels, 'le')})`,
    `p${Math.round(q * 100)}`,
  ]);
}

/** 1 while nothing has failed. */
function success(range: string): string {
  const all = metricSelector('requests_total', ROUTE_LABELS);
  const failed = metricSelector('requests_total', `${ROUTE_LABELS}, ${FAILED_CODES}`);
  return `1 - (sum(increase(${failed}[${range}])) or vector(0)) / (sum(increase(${all}[${range}])) > 0)`;
}

const OVERVIEW: Row = {
  title: 'Is the job being done?',
  figures: [
    {
      title: 'Success',
      description: 'Requests that did not end with 401, 429 or 5xx, over the whole time shown.',
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
      description: 'Requests of applications that have ended, a second.',
      unit: units.RequestsPerSecond,
      query: `sum(rate(${metricSelector('requests_total', ROUTE_LABELS)}[$__rate_interval]))`,
    },
    {
      title: 'p99 latency',
      description: 'From the arrival of a request to the end of its answer, waits in the queue included.',
      unit: units.Seconds,
      query: `histogram_quantile(0.99, sum by (le) (rate(${metricSelector('request_duration_seconds_bucket', ROUTE_LABELS)}[$__rate_interval])))`,
    },
    {
      title: 'Shortest token',
      description: 'Time left of the token that ends first. It is renewed when 15 to 25 % of its life is left.',
      unit: units.Seconds,
      query: `min(${metricSelector('token_expiry_timestamp_seconds', CREDENTIAL_LABELS)} - time())`,
      base: 'red',
      steps: [
        { from: 0, color: 'orange' },
        { from: 60, color: 'green' },
      ],
    },
    {
      title: 'Waiting',
      description: 'Requests in the queue now.',
      unit: units.Short,
      query: `sum(${metricSelector('queue_depth', ROUTE_LABELS)})`,
    },
    {
      title: 'Sidecars',
      description: 'Sidecars that Prometheus has scraped just now.',
      unit: units.Short,
      query: `count(${metricSelector('build_info', TARGET_LABELS)})`,
    },
  ],
  graphs: [
    [
      {
        title: 'Requests by code',
        description: '499: the client left before the answer had ended.',
        unit: units.RequestsPerSecond,
        stacked: true,
        queries: [[rate('requests_total', ROUTE_LABELS, 'code, source'), '{{code}} {{source}}']],
      },
      {
        title: 'Success',
        description: 'Requests that did not end with 401, 429 or 5xx.',
        unit: units.PercentUnit,
        max: 1,
        queries: [[success('$__rate_interval'), 'success']],
      },
      {
        title: 'Latency of requests',
        description: 'From the arrival of a request to the end of its answer, all waits and attempts together.',
        unit: units.Seconds,
        queries: quantiles('request_duration_seconds', ROUTE_LABELS),
      },
    ],
    [
      {
        title: 'Requests by route',
        description: 'Which of the configured APIs is used.',
        unit: units.RequestsPerSecond,
        stacked: true,
        queries: [[rate('requests_total', ROUTE_LABELS, 'route'), '{{route}}']],
      },
      {
        title: 'Responses that broke off',
        description:
          'The application received the beginning. upstream: the partner broke it off or fell silent. sidecar: the application stopped reading, or the shutdown ended it.',
        unit: units.RequestsPerSecond,
        stacked: true,
        queries: [[rate('responses_cut_total', ROUTE_LABELS, 'route, by'), '{{route}} {{by}}']],
      },
      {
        title: 'Replies of the sidecar itself',
        description: 'What applications were told by the sidecar and not by the partner. All at 0 is good.',
        unit: units.RequestsPerSecond,
        stacked: true,
        queries: [[rate('local_replies_total', TARGET_LABELS, 'code'), '{{code}}']],
      },
    ],
  ],
};

const TOKEN: Row = {
  title: 'Token',
  graphs: [
    [
      {
        title: 'Time left',
        description: 'A saw: each tooth is a renewal. A line that comes down to 0 is an outage.',
        unit: units.Seconds,
        queries: [
          [
            `${metricSelector('token_expiry_timestamp_seconds', CREDENTIAL_LABELS)} - time()`,
            '{{credential}} {{instance}}',
          ],
        ],
      },
      {
        title: 'Requests for a token',
        description:
          'rejected: the client is refused and somebody has to act. unavailable: the endpoint cannot be asked.',
        unit: units.Short,
        queries: [
          [count('token_requests_total', CREDENTIAL_LABELS, 'credential, outcome'), '{{credential}} {{outcome}}'],
        ],
      },
      {
        title: 'Failures in a row',
        description: 'Of the token endpoint. While the held token is valid no request notices.',
        unit: units.Short,
        queries: [[metricSelector('token_endpoint_failures', CREDENTIAL_LABELS), '{{credential}} {{instance}}']],
      },
    ],
    [
      {
        title: 'Duration of a token request',
        description: 'The mean. Nothing is shown while none was made.',
        unit: units.Seconds,
        queries: [
          [
            `${rate('token_request_duration_seconds_sum', CREDENTIAL_LABELS, 'credential')} / (${rate('token_request_duration_seconds_count', CREDENTIAL_LABELS, 'credential')} > 0)`,
            '{{credential}}',
          ],
        ],
      },
      {
        title: 'Tokens given up early',
        description: 'unauthorized: the API answered 401 to it. rotated: new credentials came.',
        unit: units.Short,
        queries: [
          [count('token_invalidations_total', CREDENTIAL_LABELS, 'credential, reason'), '{{credential}} {{reason}}'],
          [
            count('credential_rotation_failures_total', CREDENTIAL_LABELS, 'credential'),
            '{{credential}} new credentials refused',
          ],
        ],
      },
      {
        title: 'Scopes',
        description:
          'Scopes that were asked for and not granted, and requests refused for want of one. Both at 0 is good.',
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
  title: 'Governor: what the partner allows',
  graphs: [
    [
      {
        title: 'Rate',
        description:
          'Permits spent, permits allowed (absent while no limit is known), and the limit that is believed, a second.',
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
        title: 'Refused for the rate',
        description:
          'Calls that the partner refused. A few at the start and about one in 250 later on are the price of learning.',
        unit: units.RequestsPerSecond,
        queries: [[rate('rate_limited_total', ROUTE_LABELS, 'route'), '{{route}}']],
      },
      {
        title: 'Share of refused calls',
        description: 'Of all permits spent.',
        unit: units.PercentUnit,
        queries: [
          [
            `${rate('rate_limited_total', ROUTE_LABELS, 'route')} / (${rate('permits_total', ROUTE_LABELS, 'route')} > 0)`,
            '{{route}}',
          ],
        ],
      },
    ],
    [
      {
        title: 'Paused',
        description: 'Part of the sidecars that may start no call now: after a refusal all wait.',
        unit: units.PercentUnit,
        max: 1,
        queries: [[`avg by (route) (${metricSelector('paused', ROUTE_LABELS)})`, '{{route}}']],
      },
      {
        title: 'Believed limit',
        description:
          'Calls in a window, and its length in seconds. Absent while nothing is believed or the rate is configured.',
        unit: units.Short,
        queries: [
          [`max by (route) (${metricSelector('inferred_limit', ROUTE_LABELS)})`, '{{route}} calls'],
          [`max by (route) (${metricSelector('inferred_window_seconds', ROUTE_LABELS)})`, '{{route}} seconds'],
        ],
      },
      {
        title: 'Confidence',
        description: '0 none, 0.5 low, 1 high.',
        unit: units.Short,
        max: 1,
        queries: [[`min by (route) (${metricSelector('limit_confidence', ROUTE_LABELS)})`, '{{route}}']],
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
        description: 'Requests that wait, and how many may.',
        unit: units.Short,
        queries: [
          [`sum by (route) (${metricSelector('queue_depth', ROUTE_LABELS)})`, '{{route}} waiting'],
          [`sum by (route) (${metricSelector('queue_limit', ROUTE_LABELS)})`, '{{route}} limit'],
        ],
      },
      {
        title: 'In flight',
        description: 'Attempts under way, and how many may be. Under auto the limit grows from 4.',
        unit: units.Short,
        queries: [
          [`sum by (route) (${metricSelector('in_flight', ROUTE_LABELS)})`, '{{route}} under way'],
          [`sum by (route) (${metricSelector('in_flight_limit', ROUTE_LABELS)})`, '{{route}} limit'],
        ],
      },
      {
        title: 'Wait for a permit',
        description: 'What the sidecar held requests back, to keep below the limit.',
        unit: units.Seconds,
        queries: quantiles('queue_wait_seconds', ROUTE_LABELS),
      },
      {
        title: 'Left without a permit',
        description: 'full, timeout and expected_wait were told 503; client_left gave up by itself.',
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
        description:
          'Every call that was sent to the partner, repeated ones too. reset: no response. cut: it broke off after its head.',
        unit: units.RequestsPerSecond,
        stacked: true,
        queries: [[rate('upstream_attempts_total', TARGET_LABELS, 'outcome'), '{{outcome}}']],
      },
      {
        title: 'Duration of an attempt',
        description: 'What the partner itself takes to the head of its response.',
        unit: units.Seconds,
        queries: quantiles('upstream_duration_seconds', TARGET_LABELS),
      },
      {
        title: 'Retries',
        description: 'Attempts that repeated an earlier one, and repetitions that the retry budget did not allow.',
        unit: units.RequestsPerSecond,
        queries: [
          [rate('retries_total', TARGET_LABELS, 'reason'), '{{reason}}'],
          [rate('retry_budget_exhausted_total', TARGET_LABELS, 'reason'), '{{reason}} held back'],
        ],
      },
      {
        title: 'Attempts for each request',
        description: '1 is best. Less: requests were answered without asking the partner.',
        unit: units.Short,
        decimals: 2,
        queries: [
          [
            `sum(rate(${metricSelector('upstream_attempts_total', TARGET_LABELS)}[$__rate_interval])) / (sum(rate(${metricSelector('requests_total', TARGET_LABELS)}[$__rate_interval])) > 0)`,
            'attempts',
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
      description: 'Each version that runs, and how many of it.',
      unit: units.Short,
      query: `count by (version) (${metricSelector('build_info', TARGET_LABELS)})`,
      legend: '{{version}}',
    },
    {
      title: 'Restarts',
      description: 'Over the whole time shown.',
      unit: units.Short,
      decimals: 0,
      query: `sum(changes(process_start_time_seconds{${TARGET_LABELS}}[$__range]) and on (job, instance) ${metricSelector('build_info', TARGET_LABELS)})`,
      base: 'green',
      steps: [{ from: 1, color: 'orange' }],
    },
    {
      title: 'Youngest',
      description: 'Time since the last start of a sidecar.',
      unit: units.DurationSeconds,
      query: `min(time() - (${processMetric('process_start_time_seconds')}))`,
    },
    {
      title: 'Log lines lost',
      description: 'Over the whole time shown: the reader of standard output was too slow.',
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
        description: 'Resident memory, and the used part of the heap.',
        unit: units.BytesIEC,
        queries: [
          [processMetric('process_resident_memory_bytes'), '{{instance}} resident'],
          [processMetric('nodejs_heap_size_used_bytes'), '{{instance}} heap'],
        ],
      },
      {
        title: 'CPU',
        description: 'Cores in use: one event loop uses at most one, and a little for its threads.',
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
        description: 'About 10 ms is rest: that is how fine it is measured.',
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
        description: 'Each connection is one.',
        unit: units.Short,
        queries: [[processMetric('process_open_fds'), '{{instance}}']],
      },
      {
        title: 'Garbage collection',
        description: 'Seconds a second that the event loop stood still for it.',
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
        description: 'Files read again on SIGHUP, and requests whose own Authorization was replaced.',
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
        title: 'Joined',
        description: '1 while Redis answers; at 0 a replica goes on alone.',
        unit: units.Short,
        max: 1,
        queries: [[metricSelector('fleet_connected', TARGET_LABELS), '{{instance}}']],
      },
      {
        title: 'Replicas',
        description: 'That share the quota, as each of them sees it.',
        unit: units.Short,
        queries: [[`max by (route) (${metricSelector('fleet_replicas', ROUTE_LABELS)})`, '{{route}}']],
      },
      {
        title: 'Commands to Redis',
        description: 'timeout: past fleet.timeoutMs. error: refused, or cut.',
        unit: units.OpsPerSecond,
        stacked: true,
        queries: [[rate('fleet_commands_total', TARGET_LABELS, 'outcome'), '{{outcome}}']],
      },
      {
        title: 'Tokens of other replicas',
        description: 'Answers of the token endpoint taken over: no request was made for them.',
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
