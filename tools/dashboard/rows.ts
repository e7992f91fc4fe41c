/**
 * What the dashboard shows, row by row: the question of each panel and the PromQL that answers it. Ratios and quantiles are
 * asked of the metrics themselves and not of the recorded ones, so that it works without the rules.
 */
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Figure, Graph } from './panels.ts';

export interface Row {
  readonly title: string;
  /** Closed until somebody opens it. Default false. */
  readonly collapsed?: boolean;
  readonly figures?: readonly Figure[];
  /** Lines of the grid, each shared equally. */
  readonly graphs: readonly (readonly Graph[])[];
}

/** Labels of what the variables have chosen. */
export const TARGET = 'job=~"$job", namespace=~"$namespace", pod=~"$pod", instance=~"$instance"';
const ROUTE = `${TARGET}, route=~"$route"`;
const CREDENTIAL = `${TARGET}, credential=~"$credential"`;
/** What the application cannot use: see docs/operations.md. */
const FAILED = 'code=~"401|429|5.."';

function own(name: string, labels: string): string {
  return `bearer_sidecar_${name}{${labels}}`;
}

/** Of the process, and only where it is a sidecar. */
function ofProcess(name: string): string {
  return `${name}{${TARGET}} and on (job, instance) ${own('build_info', TARGET)}`;
}

function rate(name: string, labels: string, by: string): string {
  return `sum by (${by}) (rate(${own(name, labels)}[$__rate_interval]))`;
}

function count(name: string, labels: string, by: string): string {
  return `sum by (${by}) (increase(${own(name, labels)}[$__rate_interval]))`;
}

function quantiles(name: string, labels: string): (readonly [string, string])[] {
  return [0.5, 0.9, 0.99].map((q) => [
    `histogram_quantile(${q}, ${rate(`${name}_bucket`, labels, 'le')})`,
    `p${Math.round(q * 100)}`,
  ]);
}

/** 1 while nothing has failed. */
function success(range: string): string {
  const all = own('requests_total', ROUTE);
  const failed = own('requests_total', `${ROUTE}, ${FAILED}`);
  return `1 - (sum(increase(${failed}[${range}])) or vector(0)) / (sum(increase(${all}[${range}])) > 0)`;
}

const JOB_DONE: Row = {
  title: 'Is the job being done?',
  figures: [
    {
      title: 'Success',
      about: 'Requests that did not end with 401, 429 or 5xx, over the whole time shown.',
      unit: units.PercentUnit,
      decimals: 2,
      expr: success('$__range'),
      base: 'red',
      steps: [
        { from: 0.9, color: 'orange' },
        { from: 0.99, color: 'green' },
      ],
    },
    {
      title: 'Requests',
      about: 'Requests of applications that have ended, a second.',
      unit: units.RequestsPerSecond,
      expr: `sum(rate(${own('requests_total', ROUTE)}[$__rate_interval]))`,
    },
    {
      title: 'p99 latency',
      about: 'From the arrival of a request to the end of its answer, waits in the queue included.',
      unit: units.Seconds,
      expr: `histogram_quantile(0.99, sum by (le) (rate(${own('request_duration_seconds_bucket', ROUTE)}[$__rate_interval])))`,
    },
    {
      title: 'Shortest token',
      about: 'Time left of the token that ends first. It is renewed when 15 to 25 % of its life is left.',
      unit: units.Seconds,
      expr: `min(${own('token_expiry_timestamp_seconds', CREDENTIAL)} - time())`,
      base: 'red',
      steps: [
        { from: 0, color: 'orange' },
        { from: 60, color: 'green' },
      ],
    },
    {
      title: 'Waiting',
      about: 'Requests in the queue now.',
      unit: units.Short,
      expr: `sum(${own('queue_depth', ROUTE)})`,
    },
    {
      title: 'Sidecars',
      about: 'Sidecars that Prometheus has scraped just now.',
      unit: units.Short,
      expr: `count(${own('build_info', TARGET)})`,
    },
  ],
  graphs: [
    [
      {
        title: 'Requests by code',
        about: '499: the client left before the answer had ended.',
        unit: units.RequestsPerSecond,
        stacked: true,
        queries: [[rate('requests_total', ROUTE, 'code, source'), '{{code}} {{source}}']],
      },
      {
        title: 'Success',
        about: 'Requests that did not end with 401, 429 or 5xx.',
        unit: units.PercentUnit,
        max: 1,
        queries: [[success('$__rate_interval'), 'success']],
      },
      {
        title: 'Latency of requests',
        about: 'From the arrival of a request to the end of its answer, all waits and attempts together.',
        unit: units.Seconds,
        queries: quantiles('request_duration_seconds', ROUTE),
      },
    ],
    [
      {
        title: 'Requests by route',
        about: 'Which of the configured APIs is used.',
        unit: units.RequestsPerSecond,
        stacked: true,
        queries: [[rate('requests_total', ROUTE, 'route'), '{{route}}']],
      },
      {
        title: 'Responses that broke off',
        about:
          'The application received the beginning. upstream: the partner broke it off or fell silent. sidecar: the application stopped reading, or the shutdown ended it.',
        unit: units.RequestsPerSecond,
        stacked: true,
        queries: [[rate('responses_cut_total', ROUTE, 'route, by'), '{{route}} {{by}}']],
      },
      {
        title: 'Replies of the sidecar itself',
        about: 'What applications were told by the sidecar and not by the partner. All at 0 is good.',
        unit: units.RequestsPerSecond,
        stacked: true,
        queries: [[rate('local_replies_total', TARGET, 'code'), '{{code}}']],
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
        about: 'A saw: each tooth is a renewal. A line that comes down to 0 is an outage.',
        unit: units.Seconds,
        queries: [[`${own('token_expiry_timestamp_seconds', CREDENTIAL)} - time()`, '{{credential}} {{instance}}']],
      },
      {
        title: 'Requests for a token',
        about: 'rejected: the client is refused and somebody has to act. unavailable: the endpoint cannot be asked.',
        unit: units.Short,
        queries: [[count('token_requests_total', CREDENTIAL, 'credential, outcome'), '{{credential}} {{outcome}}']],
      },
      {
        title: 'Failures in a row',
        about: 'Of the token endpoint. While the held token is valid no request notices.',
        unit: units.Short,
        queries: [[own('token_endpoint_failures', CREDENTIAL), '{{credential}} {{instance}}']],
      },
    ],
    [
      {
        title: 'Duration of a token request',
        about: 'The mean. Nothing is shown while none was made.',
        unit: units.Seconds,
        queries: [
          [
            `${rate('token_request_duration_seconds_sum', CREDENTIAL, 'credential')} / (${rate('token_request_duration_seconds_count', CREDENTIAL, 'credential')} > 0)`,
            '{{credential}}',
          ],
        ],
      },
      {
        title: 'Tokens given up early',
        about: 'unauthorized: the API answered 401 to it. rotated: new credentials came.',
        unit: units.Short,
        queries: [
          [count('token_invalidations_total', CREDENTIAL, 'credential, reason'), '{{credential}} {{reason}}'],
          [
            count('credential_rotation_failures_total', CREDENTIAL, 'credential'),
            '{{credential}} new credentials refused',
          ],
        ],
      },
      {
        title: 'Scopes',
        about: 'Scopes that were asked for and not granted, and requests refused for want of one. Both at 0 is good.',
        unit: units.Short,
        queries: [
          [`max by (credential) (${own('token_scopes_missing', CREDENTIAL)})`, 'missing {{credential}}'],
          [count('insufficient_scope_total', ROUTE, 'route'), 'refused {{route}}'],
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
        about:
          'Permits spent, permits allowed (absent while no limit is known), and the limit that is believed, a second.',
        unit: units.RequestsPerSecond,
        queries: [
          [rate('permits_total', ROUTE, 'route'), '{{route}} spent'],
          [`max by (route) (${own('permit_rate', ROUTE)} < Inf)`, '{{route}} allowed to each'],
          [
            `max by (route) (${own('inferred_limit', ROUTE)} / ${own('inferred_window_seconds', ROUTE)})`,
            '{{route}} believed limit',
          ],
        ],
      },
      {
        title: 'Refused for the rate',
        about:
          'Calls that the partner refused. A few at the start and about one in 250 later on are the price of learning.',
        unit: units.RequestsPerSecond,
        queries: [[rate('rate_limited_total', ROUTE, 'route'), '{{route}}']],
      },
      {
        title: 'Share of refused calls',
        about: 'Of all permits spent.',
        unit: units.PercentUnit,
        queries: [
          [
            `${rate('rate_limited_total', ROUTE, 'route')} / (${rate('permits_total', ROUTE, 'route')} > 0)`,
            '{{route}}',
          ],
        ],
      },
    ],
    [
      {
        title: 'Paused',
        about: 'Part of the sidecars that may start no call now: after a refusal all wait.',
        unit: units.PercentUnit,
        max: 1,
        queries: [[`avg by (route) (${own('paused', ROUTE)})`, '{{route}}']],
      },
      {
        title: 'Believed limit',
        about:
          'Calls in a window, and its length in seconds. Absent while nothing is believed or the rate is configured.',
        unit: units.Short,
        queries: [
          [`max by (route) (${own('inferred_limit', ROUTE)})`, '{{route}} calls'],
          [`max by (route) (${own('inferred_window_seconds', ROUTE)})`, '{{route}} seconds'],
        ],
      },
      {
        title: 'Confidence',
        about: '0 none, 0.5 low, 1 high.',
        unit: units.Short,
        max: 1,
        queries: [[`min by (route) (${own('limit_confidence', ROUTE)})`, '{{route}}']],
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
        about: 'Requests that wait, and how many may.',
        unit: units.Short,
        queries: [
          [`sum by (route) (${own('queue_depth', ROUTE)})`, '{{route}} waiting'],
          [`sum by (route) (${own('queue_limit', ROUTE)})`, '{{route}} limit'],
        ],
      },
      {
        title: 'In flight',
        about: 'Attempts under way, and how many may be. Under auto the limit grows from 4.',
        unit: units.Short,
        queries: [
          [`sum by (route) (${own('in_flight', ROUTE)})`, '{{route}} under way'],
          [`sum by (route) (${own('in_flight_limit', ROUTE)})`, '{{route}} limit'],
        ],
      },
      {
        title: 'Wait for a permit',
        about: 'What the sidecar held requests back, to keep below the limit.',
        unit: units.Seconds,
        queries: quantiles('queue_wait_seconds', ROUTE),
      },
      {
        title: 'Left without a permit',
        about: 'full, timeout and expected_wait were told 503; client_left gave up by itself.',
        unit: units.RequestsPerSecond,
        stacked: true,
        queries: [[rate('queue_rejected_total', ROUTE, 'reason'), '{{reason}}']],
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
        about:
          'Every call that was sent to the partner, repeated ones too. reset: no response. cut: it broke off after its head.',
        unit: units.RequestsPerSecond,
        stacked: true,
        queries: [[rate('upstream_attempts_total', TARGET, 'outcome'), '{{outcome}}']],
      },
      {
        title: 'Duration of an attempt',
        about: 'What the partner itself takes to the head of its response.',
        unit: units.Seconds,
        queries: quantiles('upstream_duration_seconds', TARGET),
      },
      {
        title: 'Retries',
        about: 'Attempts that repeated an earlier one, and repetitions that the retry budget did not allow.',
        unit: units.RequestsPerSecond,
        queries: [
          [rate('retries_total', TARGET, 'reason'), '{{reason}}'],
          [rate('retry_budget_exhausted_total', TARGET, 'reason'), '{{reason}} held back'],
        ],
      },
      {
        title: 'Attempts for each request',
        about: '1 is best. Less: requests were answered without asking the partner.',
        unit: units.Short,
        decimals: 2,
        queries: [
          [
            `sum(rate(${own('upstream_attempts_total', TARGET)}[$__rate_interval])) / (sum(rate(${own('requests_total', TARGET)}[$__rate_interval])) > 0)`,
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
      about: 'Each version that runs, and how many of it.',
      unit: units.Short,
      expr: `count by (version) (${own('build_info', TARGET)})`,
      name: '{{version}}',
    },
    {
      title: 'Restarts',
      about: 'Over the whole time shown.',
      unit: units.Short,
      decimals: 0,
      expr: `sum(changes(process_start_time_seconds{${TARGET}}[$__range]) and on (job, instance) ${own('build_info', TARGET)})`,
      base: 'green',
      steps: [{ from: 1, color: 'orange' }],
    },
    {
      title: 'Youngest',
      about: 'Time since the last start of a sidecar.',
      unit: units.DurationSeconds,
      expr: `min(time() - (${ofProcess('process_start_time_seconds')}))`,
    },
    {
      title: 'Log lines lost',
      about: 'Over the whole time shown: the reader of standard output was too slow.',
      unit: units.Short,
      decimals: 0,
      expr: `sum(increase(${own('log_lines_dropped_total', TARGET)}[$__range]))`,
      base: 'green',
      steps: [{ from: 1, color: 'orange' }],
    },
  ],
  graphs: [
    [
      {
        title: 'Memory',
        about: 'Resident memory, and the used part of the heap.',
        unit: units.BytesIEC,
        queries: [
          [ofProcess('process_resident_memory_bytes'), '{{instance}} resident'],
          [ofProcess('nodejs_heap_size_used_bytes'), '{{instance}} heap'],
        ],
      },
      {
        title: 'CPU',
        about: 'Cores in use: one event loop uses at most one, and a little for its threads.',
        unit: units.Short,
        queries: [
          [
            `rate(process_cpu_seconds_total{${TARGET}}[$__rate_interval]) and on (job, instance) ${own('build_info', TARGET)}`,
            '{{instance}}',
          ],
        ],
      },
      {
        title: 'Event-loop lag',
        about: 'About 10 ms is rest: that is how fine it is measured.',
        unit: units.Seconds,
        queries: [
          [ofProcess('nodejs_eventloop_lag_p99_seconds'), '{{instance}} p99'],
          [ofProcess('nodejs_eventloop_lag_max_seconds'), '{{instance}} max'],
        ],
      },
    ],
    [
      {
        title: 'Open file descriptors',
        about: 'Each connection is one.',
        unit: units.Short,
        queries: [[ofProcess('process_open_fds'), '{{instance}}']],
      },
      {
        title: 'Garbage collection',
        about: 'Seconds a second that the event loop stood still for it.',
        unit: units.PercentUnit,
        queries: [
          [
            `sum by (instance) (rate(nodejs_gc_duration_seconds_sum{${TARGET}}[$__rate_interval]) and on (job, instance) ${own('build_info', TARGET)})`,
            '{{instance}}',
          ],
        ],
      },
      {
        title: 'Configuration and clients',
        about: 'Files read again on SIGHUP, and requests whose own Authorization was replaced.',
        unit: units.Short,
        queries: [
          [count('config_reloads_total', TARGET, 'outcome'), 'reload {{outcome}}'],
          [`sum(increase(${own('client_authorization_overridden_total', TARGET)}[$__rate_interval]))`, 'overridden'],
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
        about: '1 while Redis answers; at 0 a replica goes on alone.',
        unit: units.Short,
        max: 1,
        queries: [[own('fleet_connected', TARGET), '{{instance}}']],
      },
      {
        title: 'Replicas',
        about: 'That share the quota, as each of them sees it.',
        unit: units.Short,
        queries: [[`max by (route) (${own('fleet_replicas', ROUTE)})`, '{{route}}']],
      },
      {
        title: 'Commands to Redis',
        about: 'timeout: past fleet.timeoutMs. error: refused, or cut.',
        unit: units.OpsPerSecond,
        stacked: true,
        queries: [[rate('fleet_commands_total', TARGET, 'outcome'), '{{outcome}}']],
      },
      {
        title: 'Tokens of other replicas',
        about: 'Answers of the token endpoint taken over: no request was made for them.',
        unit: units.Short,
        queries: [[count('fleet_tokens_total', CREDENTIAL, 'credential, outcome'), '{{credential}} {{outcome}}']],
      },
    ],
  ],
};

/** From top to bottom. */
export const ROWS: readonly Row[] = [JOB_DONE, TOKEN, GOVERNOR, QUEUE, UPSTREAM, PROCESS, FLEET];
