/**
 * Every alert at 0.8 and at 1.2 times each of its thresholds, and situations that must stay silent or alert. promtool evaluates the rules
 * of deploy/prometheus on these series, and the ring of samples the same conditions; both must have the same alerts.
 */
import { ALERTS } from '../../../src/admin/alerts/alert-table.ts';
import type { AlertName } from '../../../src/admin/alerts/alert-table.ts';
import { OUTSIDE_ALERTS } from '../../../tools/dashboard/outside-alerts.ts';
import { durations, events, eventsAt, flag, gaugeBy, level, levelFrom, minutes } from './scenario-series.ts';
import { outside, steady, steadyFrom } from './scenario-series.ts';
import type { ScenarioSeries } from './scenario-series.ts';

export type AnyAlertName = AlertName | keyof typeof OUTSIDE_ALERTS;

/** What is expected at a minute. */
export interface Expectation {
  readonly minute: number;
  /** Alerts whose conditions hold: pending or firing. */
  readonly holds: readonly AnyAlertName[];
  readonly fires: readonly AnyAlertName[];
  /** The routes that they are about. Default: not compared. */
  readonly routes?: readonly string[];
}

export interface Scenario {
  readonly name: string;
  readonly series: readonly ScenarioSeries[];
  readonly expected: readonly Expectation[];
  /** An alert that is not sent yet at this minute. */
  readonly notYet?: { readonly alert: AnyAlertName; readonly minute: number };
}

/** Series at a factor of one threshold; the others are passed by far. */
interface Threshold {
  readonly of: AnyAlertName;
  readonly what: string;
  readonly at: (factor: number) => readonly ScenarioSeries[];
  /** Alerts that hold beside it, above the threshold and below it. */
  readonly beside?: readonly AnyAlertName[];
  readonly besideBelow?: readonly AnyAlertName[];
  /** At the end the condition has not lasted for its time. */
  readonly isPending?: boolean;
}

const R = { route: 'default' };
const C = { credential: 'default' };
/** The end of each scenario of a threshold. */
const END = 20;

const failed = (code: string, source: string) => ({ ...R, method: 'POST', code, source });
/** A whole number on the other side of the threshold, for a factor above or below 1. */
const around = (threshold: number, factor: number): number =>
  factor < 1 ? Math.floor(threshold * factor) : Math.ceil(threshold * factor);
/** For a threshold of 0: none, or some. */
const some = (factor: number, count = 1): number => (factor < 1 ? 0 : count);
/** A token with this much left at each step. */
const tokenLeft = (seconds: number) => gaugeBy('token_expiry_timestamp_seconds', C, (step) => step * 30 + seconds);
const validToken = tokenLeft(2000);
const attempts = (outcome: string) => ({ ...R, outcome });

const THRESHOLDS: readonly Threshold[] = [
  {
    ...{ of: 'BearerSidecarRequestsFailing', what: 'a tenth of the requests' },
    at: (factor) => [
      steady('requests_total', failed('503', 'sidecar'), 100 * factor),
      steady('requests_total', failed('200', 'upstream'), 1000 - 100 * factor),
    ],
  },
  {
    ...{ of: 'BearerSidecarRequestsFailing', what: 'three failures in five minutes' },
    at: (factor) => [
      events('requests_total', failed('429', 'upstream'), around(2.7, factor), 5),
      events('requests_total', failed('200', 'upstream'), 3, 5),
    ],
  },
  ...['403', '404', '422', '499'].map((code): Threshold => {
    const source = code === '499' ? 'sidecar' : 'upstream';
    return {
      ...{ of: 'BearerSidecarNoCallSucceeds', what: `nearly all calls with ${code}` },
      at: (factor) => [
        steady('requests_total', failed(code, source), Math.min(1000, 950 * factor)),
        steady('requests_total', failed('200', 'upstream'), Math.max(0, 1000 - 950 * factor)),
      ],
    };
  }),
  {
    ...{ of: 'BearerSidecarNoCallSucceeds', what: 'five in ten minutes' },
    at: (factor) => [events('requests_total', failed('404', 'upstream'), around(5, factor), 10)],
  },
  {
    ...{ of: 'BearerSidecarTokenMissing', what: 'the expiry' },
    at: (factor) => [level('token_endpoint_failures', C, 0), tokenLeft(factor < 1 ? 1000 : -1000)],
  },
  {
    ...{ of: 'BearerSidecarTokenExpiring', what: '300 s with a failure' },
    at: (factor) => [level('token_endpoint_failures', C, 3), tokenLeft(300 / factor)],
    beside: ['BearerSidecarTokenEndpointFailing'],
    besideBelow: ['BearerSidecarTokenEndpointFailing'],
  },
  {
    ...{ of: 'BearerSidecarTokenExpiring', what: 'a failure below 300 s' },
    at: (factor) => [level('token_endpoint_failures', C, some(factor)), tokenLeft(200)],
    beside: ['BearerSidecarTokenEndpointFailing'],
  },
  {
    ...{ of: 'BearerSidecarTokenExpiring', what: '120 s with the same token' },
    at: (factor) => [
      level('token_endpoint_failures', C, 0),
      level('token_expiry_timestamp_seconds', C, END * 60 + 120 / factor),
    ],
    isPending: true,
  },
  {
    ...{ of: 'BearerSidecarTokenExpiring', what: 'the same token for twelve minutes' },
    at: (factor) => {
      // A minute more, for which the condition lasts.
      const renewedAt = END - around(12, factor) - some(factor);
      return [
        level('token_endpoint_failures', C, 0),
        levelFrom('token_expiry_timestamp_seconds', C, END * 60 - 300, renewedAt, END * 60 + 30),
        eventsAt('token_requests_total', { ...C, outcome: 'ok' }, [1, renewedAt]),
      ];
    },
  },
  {
    ...{ of: 'BearerSidecarTokenEndpointFailing', what: 'a failure' },
    at: (factor) => [level('token_endpoint_failures', C, some(factor)), validToken],
  },
  {
    ...{ of: 'BearerSidecarClientRejected', what: 'a rejection each minute' },
    at: (factor) => [events('token_requests_total', { ...C, outcome: 'rejected' }, some(factor), 1)],
  },
  {
    ...{ of: 'BearerSidecarClientRejected', what: 'a rejection of another replica each minute' },
    at: (factor) => [events('fleet_tokens_total', { ...C, outcome: 'rejected' }, some(factor), 1)],
  },
  {
    ...{ of: 'BearerSidecarRotationFailing', what: 'a failure' },
    at: (factor) => [events('credential_rotation_failures_total', C, some(factor), 10)],
  },
  {
    ...{ of: 'BearerSidecarRefreshTokenUnkept', what: 'a refresh token that is not kept' },
    at: (factor) => [level('refresh_token_unkept', C, some(factor))],
  },
  {
    ...{ of: 'BearerSidecarTokenNotAccepted', what: 'a twentieth of the attempts' },
    at: (factor) => [
      steady('upstream_attempts_total', attempts('unauthorized'), 50 * factor),
      steady('upstream_attempts_total', attempts('ok'), 1000 - 50 * factor),
    ],
  },
  {
    ...{ of: 'BearerSidecarScopeMissing', what: 'a missing scope' },
    at: (factor) => [level('token_scopes_missing', C, some(factor))],
  },
  {
    ...{ of: 'BearerSidecarScopeMissing', what: 'refused requests' },
    at: (factor) => [events('insufficient_scope_total', R, some(factor), 5)],
  },
  {
    ...{ of: 'BearerSidecarRateLimited', what: 'a tenth of the permits' },
    at: (factor) => [steady('rate_limited_total', R, 10 * factor), steady('permits_total', R, 100)],
  },
  {
    ...{ of: 'BearerSidecarRateLimited', what: 'five in ten minutes' },
    at: (factor) => [events('rate_limited_total', R, around(5, factor), 10), events('permits_total', R, 12, 10)],
  },
  {
    ...{ of: 'BearerSidecarDeclaredLimitUsedUp', what: 'a forecast for one of two limits' },
    at: (factor) => [
      level('declared_limit_used', { ...R, limit: 'hour' }, 900),
      levelFrom(
        'declared_limit_exhausted_timestamp_seconds',
        { ...R, limit: 'hour' },
        undefined,
        1,
        factor < 1 ? undefined : 7200,
      ),
      level('declared_limit_used', { ...R, limit: 'day' }, 900),
    ],
  },
  {
    ...{ of: 'BearerSidecarPaused', what: 'nine tenths of ten minutes' },
    at: (factor) => [flag('paused', R, Math.min(1, 0.9 * factor))],
  },
  {
    ...{ of: 'BearerSidecarQueueSaturated', what: 'four fifths of the places' },
    at: (factor) => [level('queue_depth', R, 800 * factor), level('queue_limit', R, 1000)],
  },
  {
    ...{ of: 'BearerSidecarQueueSlow', what: 'ten seconds' },
    at: (factor) => [durations('queue_wait_seconds', R, [{ seconds: 10 * factor, perStep: 10 }])],
  },
  {
    ...{ of: 'BearerSidecarQueueSlow', what: 'a twentieth of the requests' },
    at: (factor) => [
      durations('queue_wait_seconds', R, [
        { seconds: 0.01, perStep: 1000 - 50 * factor },
        { seconds: 100, perStep: 50 * factor },
      ]),
    ],
  },
  {
    ...{ of: 'BearerSidecarQueueSlow', what: 'ten seconds, with few buckets' },
    at: (factor) => [durations('queue_wait_seconds', R, [{ seconds: 10 * factor, perStep: 10 }], [0.1, 1, 10, 60])],
  },
  {
    ...{ of: 'BearerSidecarQueueSlow', what: 'ten seconds on average, without buckets' },
    at: (factor) => [durations('queue_wait_seconds', R, [{ seconds: 10 * factor, perStep: 10 }], [])],
  },
  {
    ...{ of: 'BearerSidecarRequestsShed', what: 'a hundredth of the requests' },
    at: (factor) => [
      steady('queue_rejected_total', { ...R, reason: 'full' }, 30 * factor),
      steady('queue_rejected_total', { ...R, reason: 'timeout' }, 30 * factor),
      steady('queue_rejected_total', { ...R, reason: 'expected_wait' }, 40 * factor),
      steady('queue_rejected_total', { ...R, reason: 'client_left' }, 5000),
      steady('permits_total', R, 10_000 - 100 * factor),
    ],
  },
  {
    ...{ of: 'BearerSidecarUpstreamUnreachable', what: 'half of the attempts' },
    at: (factor) => [
      steady('upstream_faults_total', { ...R, cause: 'connection_refused' }, 30 * factor),
      steady('upstream_faults_total', { ...R, cause: 'no_response_in_time' }, 20 * factor),
      steady('upstream_attempts_total', attempts('unreachable'), 30 * factor),
      steady('upstream_attempts_total', attempts('timeout'), 20 * factor),
      steady('upstream_attempts_total', attempts('ok'), 100 - 50 * factor),
    ],
  },
  {
    ...{ of: 'BearerSidecarUpstreamUnreachable', what: 'five faults in five minutes' },
    at: (factor) => [
      events('upstream_faults_total', { ...R, cause: 'reset_after_sent' }, around(5, factor), 5),
      events('upstream_attempts_total', attempts('reset'), around(5, factor), 5),
    ],
  },
  {
    ...{ of: 'BearerSidecarCallsIntercepted', what: 'a tenth of the attempts' },
    at: (factor) => [
      steady('upstream_faults_total', { ...R, cause: 'intercepted' }, 100 * factor),
      steady('upstream_attempts_total', attempts('error_status'), 100 * factor),
      steady('upstream_attempts_total', attempts('ok'), 1000 - 100 * factor),
    ],
  },
  {
    ...{ of: 'BearerSidecarCallsIntercepted', what: 'three in five minutes' },
    at: (factor) => [
      events('upstream_faults_total', { ...R, cause: 'intercepted' }, around(2.7, factor), 5),
      events('upstream_attempts_total', attempts('error_status'), around(2.7, factor), 5),
    ],
  },
  {
    ...{ of: 'BearerSidecarForeignResponses', what: 'a tenth of the responses' },
    at: (factor) => [
      steady('foreign_responses_total', R, 100 * factor),
      steady('requests_total', failed('200', 'upstream'), 1000),
    ],
  },
  {
    ...{ of: 'BearerSidecarForeignResponses', what: 'three in five minutes' },
    at: (factor) => [
      events('foreign_responses_total', R, around(2.7, factor), 5),
      events('requests_total', failed('200', 'upstream'), around(2.7, factor), 5),
    ],
  },
  {
    ...{ of: 'BearerSidecarUpstreamErrors', what: 'a tenth of the requests' },
    at: (factor) => [
      steady('requests_total', failed('500', 'upstream'), 50 * factor),
      steady('requests_total', failed('503', 'upstream'), 50 * factor),
      steady('requests_total', failed('200', 'upstream'), 1000 - 100 * factor),
    ],
    beside: ['BearerSidecarRequestsFailing'],
  },
  {
    ...{ of: 'BearerSidecarUpstreamErrors', what: 'three errors in five minutes' },
    at: (factor) => [
      events('requests_total', failed('502', 'upstream'), around(2.7, factor), 5),
      events('requests_total', failed('200', 'upstream'), 3, 5),
    ],
    beside: ['BearerSidecarRequestsFailing'],
  },
  {
    ...{ of: 'BearerSidecarUpstreamSlow', what: 'five seconds' },
    at: (factor) => slowAttempts([{ seconds: 5 * factor, perStep: 10 }]),
  },
  {
    ...{ of: 'BearerSidecarUpstreamSlow', what: 'half of the attempts' },
    at: (factor) =>
      slowAttempts([
        { seconds: 0.05, perStep: 100 - 50 * factor },
        { seconds: 30, perStep: 50 * factor },
      ]),
  },
  {
    ...{ of: 'BearerSidecarUpstreamSlow', what: 'five attempts in five minutes' },
    at: (factor) => [
      events('upstream_attempts_total', attempts('ok'), around(5, factor), 5),
      durations('upstream_duration_seconds', attempts('ok'), [{ seconds: 8, perStep: 1 }]),
    ],
  },
  {
    ...{ of: 'BearerSidecarUpstreamSlow', what: 'five seconds, with bounds as Prometheus 3 stores them' },
    // A mean of 4.9 or 9.4 s would fire, or not, on its own.
    // The mean would fire below the threshold, and not above it.
    at: (factor) =>
      slowAttempts(
        [
          { seconds: 0.5, perStep: 100 - 50 * factor },
          { seconds: factor < 1 ? 20 : 6, perStep: 50 * factor },
        ],
        ['0.5', '1.0', '2.5', '5.0', '10.0', '30.0'],
      ),
  },
  {
    ...{ of: 'BearerSidecarUpstreamSlow', what: 'five seconds on average, with few buckets' },
    at: (factor) => slowAttempts([{ seconds: 5 * factor, perStep: 10 }], [0.1, 1, 10, 60]),
  },
  {
    ...{ of: 'BearerSidecarUpstreamSlow', what: 'five seconds on average, without buckets' },
    at: (factor) => slowAttempts([{ seconds: 5 * factor, perStep: 10 }], []),
  },
  {
    ...{ of: 'BearerSidecarOutcomeUnknown', what: 'a call' },
    at: (factor) => [events('unknown_outcomes_total', R, some(factor), 10)],
  },
  {
    ...{ of: 'BearerSidecarResponsesCut', what: 'a hundredth of the responses' },
    at: (factor) => [
      steady('responses_cut_total', { ...R, by: 'upstream' }, 10 * factor),
      steady('responses_cut_total', { ...R, by: 'sidecar' }, 100),
      steady('upstream_faults_total', { ...R, cause: 'response_cut' }, 900),
      steady('upstream_attempts_total', attempts('cut'), 1000),
      steady('requests_total', failed('200', 'upstream'), 1000),
    ],
  },
  {
    ...{ of: 'BearerSidecarResponsesCut', what: 'five in ten minutes' },
    at: (factor) => [
      events('responses_cut_total', { ...R, by: 'upstream' }, around(5, factor), 10),
      events('requests_total', failed('200', 'upstream'), 20, 10),
    ],
  },
  {
    ...{ of: 'BearerSidecarRetryBudgetExhausted', what: 'a refused retry' },
    at: (factor) => [events('retry_budget_exhausted_total', { reason: 'status' }, some(factor), 2)],
  },
  {
    ...{ of: 'BearerSidecarReloadFailed', what: 'the last reload failed' },
    at: (factor) => [level('config_reload_failed', {}, some(factor))],
  },
  {
    ...{ of: 'BearerSidecarUnknownCallsNotRecorded', what: 'a write' },
    at: (factor) => [events('unknown_call_write_errors_total', {}, some(factor), 10)],
  },
  {
    ...{ of: 'BearerSidecarStateFileNotWritten', what: 'a write' },
    at: (factor) => [events('state_file_write_errors_total', {}, some(factor), 10)],
  },
  {
    ...{ of: 'BearerSidecarFleetDisconnected', what: 'connected' },
    at: (factor) => [level('fleet_connected', {}, factor < 1 ? 1 : 0), level('fleet_degraded', {}, 0)],
  },
  {
    ...{ of: 'BearerSidecarFleetDisconnected', what: 'degraded instead' },
    at: (factor) => [level('fleet_connected', {}, 0), level('fleet_degraded', {}, factor < 1 ? 1 : 0)],
    besideBelow: ['BearerSidecarFleetDegraded'],
  },
  {
    ...{ of: 'BearerSidecarFleetDegraded', what: 'degraded' },
    at: (factor) => [level('fleet_connected', {}, 1), level('fleet_degraded', {}, some(factor))],
  },
  {
    ...{ of: 'BearerSidecarDown', what: 'a scrape' },
    at: (factor) => [level('build_info', { version: '1' }, 1), outside('up', () => (factor < 1 ? 1 : 0))],
  },
  {
    ...{ of: 'BearerSidecarRestarting', what: 'two restarts in 15 minutes' },
    at: (factor) => [
      level('build_info', { version: '1' }, 1),
      // As many in each quarter of an hour.
      outside('process_start_time_seconds', (step) => Math.floor((step * (factor < 1 ? 2 : 3)) / minutes(15))),
    ],
  },
  {
    ...{ of: 'BearerSidecarEventLoopStalled', what: 'a p99 of 0.2 s' },
    at: (factor) => [
      level('build_info', { version: '1' }, 1),
      outside('nodejs_eventloop_lag_p99_seconds', () => 0.2 * factor),
    ],
  },
  {
    ...{ of: 'BearerSidecarEventLoopStalled', what: 'a stall of two seconds in 15 minutes' },
    at: (factor) => [
      level('build_info', { version: '1' }, 1),
      outside('nodejs_eventloop_lag_p99_seconds', () => 0.01),
      outside('nodejs_eventloop_lag_max_seconds', (step) => (step === minutes(END - 8) ? 2 * factor : 0.1)),
    ],
  },
  {
    ...{ of: 'BearerSidecarFileDescriptorsLow', what: 'four fifths' },
    at: (factor) => [
      level('build_info', { version: '1' }, 1),
      outside('process_open_fds', () => 800 * factor),
      outside('process_max_fds', () => 1000),
    ],
  },
  {
    ...{ of: 'BearerSidecarLogLinesDropped', what: 'a line' },
    at: (factor) => [events('log_lines_dropped_total', {}, some(factor), 5)],
  },
];

function slowAttempts(
  observed: readonly { readonly seconds: number; readonly perStep: number }[],
  bounds?: readonly (number | string)[],
): readonly ScenarioSeries[] {
  const count = observed.reduce((sum, { perStep }) => sum + perStep, 0);
  return [
    durations('upstream_duration_seconds', attempts('ok'), observed, bounds),
    steady('upstream_attempts_total', attempts('ok'), count),
  ];
}

/** Firing after its time, and not before. */
function playThreshold(threshold: Threshold): readonly Scenario[] {
  const { of, what, at, beside = [], besideBelow = [], isPending = false } = threshold;
  const above = [of, ...beside];
  const { forMs } = of in ALERTS ? ALERTS[of as AlertName] : OUTSIDE_ALERTS[of as keyof typeof OUTSIDE_ALERTS];
  return [
    {
      name: `${of} is silent below its threshold: ${what}`,
      series: at(0.8),
      expected: [{ minute: END, holds: besideBelow, fires: besideBelow }],
    },
    {
      name: `${of} fires above its threshold: ${what}`,
      series: at(1.2),
      expected: [{ minute: END, holds: above, fires: isPending ? [] : above }],
      ...(forMs > 0 && { notYet: { alert: of, minute: forMs / 60_000 - 0.5 } }),
    },
  ];
}

const nothing = (minute: number): Expectation => ({ minute, holds: [], fires: [] });
const only = (minute: number, ...names: readonly AnyAlertName[]): Expectation => ({
  minute,
  holds: names,
  fires: names,
});
const pending = (minute: number, ...names: readonly AnyAlertName[]): Expectation => ({
  ...{ minute, holds: names, fires: [] },
});
const credential = (name: string) => ({ credential: name });
const OTHER = { job: 'other', instance: 'b' };

const HEALTH: Scenario = {
  name: 'health: tokens of one hour, two minutes and half an hour, and a limit that costs one call in 250',
  series: [
    outside('up', () => 1),
    level('build_info', { version: '1' }, 1),
    outside('process_start_time_seconds', (step) => (step < 40 ? 0 : 900)),
    outside('process_open_fds', () => 40),
    outside('process_max_fds', () => 1024),
    outside('nodejs_eventloop_lag_p99_seconds', () => 0.012),
    outside('nodejs_eventloop_lag_max_seconds', () => 0.05),
    steady('requests_total', failed('200', 'upstream'), 300),
    steady('requests_total', failed('404', 'upstream'), 60),
    steady('requests_total', failed('503', 'upstream'), 3),
    steady('upstream_attempts_total', attempts('ok'), 300),
    steady('upstream_attempts_total', attempts('unreachable'), 1),
    steady('upstream_attempts_total', attempts('unauthorized'), 1),
    steady('upstream_faults_total', { ...R, cause: 'connection_refused' }, 1),
    durations('upstream_duration_seconds', attempts('ok'), [
      { seconds: 0.2, perStep: 280 },
      { seconds: 40, perStep: 20 },
    ]),
    steady('unknown_outcomes_total', R, 0),
    steady('responses_cut_total', { ...R, by: 'upstream' }, 1),
    steady('permits_total', R, 250),
    steady('rate_limited_total', R, 1),
    steady('queue_rejected_total', { ...R, reason: 'full' }, 0),
    steady('queue_rejected_total', { ...R, reason: 'client_left' }, 20),
    gaugeBy('queue_depth', R, (step) => [0, 200, 40][step] ?? 0),
    level('queue_limit', R, 1000),
    durations('queue_wait_seconds', R, [
      { seconds: 0.005, perStep: 200 },
      { seconds: 4, perStep: 50 },
    ]),
    // A limit probe now and then is followed by a short pause.
    gaugeBy('paused', R, (step) => (step === 1 || step === 5 ? 1 : 0)),
    // Renewed after 48 minutes, 96 seconds and 25 minutes.
    gaugeBy('token_expiry_timestamp_seconds', credential('hour'), (step) => (step < 96 ? 3600 : 6480)),
    gaugeBy('token_expiry_timestamp_seconds', credential('minutes'), (step) => (step < 3 ? 120 : 126 + step * 30)),
    gaugeBy('token_expiry_timestamp_seconds', credential('half-hour'), (step) => 1800 + 1500 * Math.floor(step / 50)),
    level('token_endpoint_failures', credential('hour'), 0),
    level('token_endpoint_failures', credential('minutes'), 0),
    // One failure, made good at the next try.
    gaugeBy('token_endpoint_failures', credential('half-hour'), (step) => (step === 46 || step === 47 ? 1 : 0)),
    eventsAt('token_requests_total', { ...credential('hour'), outcome: 'rejected' }, [50.5]),
    level('token_scopes_missing', credential('hour'), 0),
    steady('insufficient_scope_total', R, 0),
    steady('foreign_responses_total', R, 3),
    steady('credential_rotation_failures_total', credential('hour'), 0),
    steady('retry_budget_exhausted_total', { reason: 'status' }, 0),
    steady('log_lines_dropped_total', {}, 0),
    level('config_reload_failed', {}, 0),
    gaugeBy('fleet_connected', {}, (step) => ([61, 62, 83, 84].includes(step) ? 0 : 1)),
    gaugeBy('fleet_degraded', {}, (step) => ([83, 84].includes(step) ? 1 : 0)),
    steady('fleet_tokens_total', { ...credential('hour'), outcome: 'rejected' }, 0),
    // Another application on Node.js.
    outside('up', () => 0, OTHER),
    outside('process_start_time_seconds', (step) => step * 30, OTHER),
    outside('nodejs_eventloop_lag_p99_seconds', () => 3, OTHER),
    outside('process_open_fds', () => 1023, OTHER),
    outside('process_max_fds', () => 1024, OTHER),
  ],
  expected: [
    ...Array.from({ length: 99 }, (_, minute) => nothing(minute)).filter(
      ({ minute }) => ![23, 31, 42, 51, 52, 53].includes(minute),
    ),
    pending(23, 'BearerSidecarTokenEndpointFailing'),
    pending(31, 'BearerSidecarFleetDisconnected'),
    pending(42, 'BearerSidecarFleetDegraded'),
    pending(52, 'BearerSidecarClientRejected'),
  ],
};

const STORIES: readonly Scenario[] = [
  HEALTH,
  {
    name: 'a sidecar is down for 90 minutes, and back',
    series: [
      outside('up', (step) => (step < minutes(10) || step >= minutes(101) ? 1 : 0)),
      levelFrom('build_info', { version: '1' }, 1, 10, undefined),
    ],
    expected: [
      nothing(9.5),
      pending(11, 'BearerSidecarDown'),
      ...[13, 30, 69, 71, 100].map((minute) => only(minute, 'BearerSidecarDown')),
      nothing(102),
    ],
  },
  {
    name: 'a target of another job, and one that was never a sidecar, are not ours',
    series: [outside('up', () => 0, OTHER), outside('up', () => 0)],
    expected: [nothing(30)],
  },
  {
    name: 'two requests fail in a quiet night',
    series: [
      eventsAt('requests_total', failed('200', 'upstream'), [1]),
      eventsAt('requests_total', failed('504', 'sidecar'), [2, 3.5]),
    ],
    expected: [nothing(4), nothing(8), nothing(10)],
  },
  {
    name: 'of two requests in five minutes one gets 500, for half an hour',
    series: [
      events('requests_total', failed('200', 'upstream'), 1, 5),
      events('requests_total', failed('500', 'upstream'), 1, 5),
    ],
    expected: [nothing(12), nothing(22), nothing(32)],
  },
  {
    name: 'a lookup of a route gets 404 nine times of ten, and some requests of another are refused: that is ordinary use',
    series: [
      steady('requests_total', { ...failed('404', 'upstream'), route: 'lookups' }, 9),
      steady('requests_total', { ...failed('200', 'upstream'), route: 'lookups' }, 1),
      steady('requests_total', { ...failed('422', 'upstream'), route: 'orders' }, 3),
      steady('requests_total', { ...failed('200', 'upstream'), route: 'orders' }, 7),
    ],
    expected: [nothing(15), nothing(30)],
  },
  {
    name: 'one of three routes gets 403 for every call',
    series: ['a', 'b', 'c'].map((route) =>
      steady('requests_total', { ...failed(route === 'b' ? '403' : '200', 'upstream'), route }, route === 'b' ? 1 : 99),
    ),
    expected: [{ ...only(20, 'BearerSidecarNoCallSucceeds'), routes: ['b'] }],
  },
  {
    name: 'no token from the start',
    series: [gaugeBy('token_endpoint_failures', C, (step) => step + 1)],
    expected: [
      { minute: 1.5, holds: ['BearerSidecarTokenMissing', 'BearerSidecarTokenEndpointFailing'], fires: [] },
      {
        ...{ minute: 2.5, holds: ['BearerSidecarTokenMissing', 'BearerSidecarTokenEndpointFailing'] },
        fires: ['BearerSidecarTokenMissing'],
      },
    ],
  },
  {
    name: 'the token endpoint is down from minute 45 on: first a warning, then the end comes near, then there is no token',
    series: [
      levelFrom('token_expiry_timestamp_seconds', C, 3600, 62, undefined),
      gaugeBy('token_endpoint_failures', C, (step) => Math.max(0, step - minutes(45))),
    ],
    expected: [
      nothing(45),
      pending(50, 'BearerSidecarTokenEndpointFailing'),
      only(51, 'BearerSidecarTokenEndpointFailing'),
      only(57, 'BearerSidecarTokenEndpointFailing', 'BearerSidecarTokenExpiring'),
      only(63, 'BearerSidecarTokenEndpointFailing', 'BearerSidecarTokenMissing'),
    ],
  },
  {
    name: 'a token of ten minutes is not renewed, and nothing fails: until its end that is like health',
    series: [level('token_expiry_timestamp_seconds', C, 600), level('token_endpoint_failures', C, 0)],
    expected: [nothing(9), nothing(9.5), only(12.5, 'BearerSidecarTokenMissing')],
  },
  {
    name: 'a new secret is refused once',
    series: [eventsAt('credential_rotation_failures_total', C, [10])],
    expected: [nothing(9), only(11, 'BearerSidecarRotationFailing'), nothing(27)],
  },
  {
    name: 'a server replaces the refresh token, and no file keeps it',
    series: [level('refresh_token_unkept', C, 1)],
    expected: [only(1, 'BearerSidecarRefreshTokenUnkept')],
  },
  {
    name: 'one call is refused because a scope is missing',
    series: [eventsAt('insufficient_scope_total', R, [5])],
    expected: [
      nothing(4),
      pending(7, 'BearerSidecarScopeMissing'),
      pending(14, 'BearerSidecarScopeMissing'),
      nothing(16),
    ],
  },
  {
    name: 'calls are refused now and then because a scope is missing',
    series: [eventsAt('insufficient_scope_total', R, [5.5, 14, 22.5])],
    expected: [pending(20, 'BearerSidecarScopeMissing'), only(22, 'BearerSidecarScopeMissing')],
  },
  {
    name: 'the retry budget is used up by one burst',
    series: [eventsAt('retry_budget_exhausted_total', { reason: 'status' }, [5])],
    expected: [pending(9, 'BearerSidecarRetryBudgetExhausted'), nothing(11), nothing(16)],
  },
  {
    name: 'three requests in a hundred wait for minutes: the p95 is short, though the mean is not',
    series: [
      durations('queue_wait_seconds', R, [
        { seconds: 0.01, perStep: 97 },
        { seconds: 400, perStep: 3 },
      ]),
    ],
    expected: [nothing(12)],
  },
  {
    name: 'requests are all rejected in the queue',
    series: [steady('queue_rejected_total', { ...R, reason: 'expected_wait' }, 4), steady('permits_total', R, 0)],
    expected: [pending(4, 'BearerSidecarRequestsShed'), only(6, 'BearerSidecarRequestsShed')],
  },
  {
    name: 'clients leave before their responses',
    series: [
      steady('upstream_attempts_total', attempts('ok'), 1),
      steady('upstream_attempts_total', attempts('client_left'), 4),
    ],
    expected: [nothing(4), nothing(20)],
  },
  {
    name: 'no packet of the upstream arrives: attempts that take ten seconds to connect are unreachable, not slow',
    series: [
      steady('upstream_faults_total', { ...R, cause: 'connect_timeout' }, 4),
      steady('upstream_attempts_total', attempts('unreachable'), 4),
      durations('upstream_duration_seconds', attempts('unreachable'), [{ seconds: 10, perStep: 4 }]),
    ],
    expected: [only(20, 'BearerSidecarUpstreamUnreachable')],
  },
  {
    name: 'one of five routes refuses connections',
    series: ['a', 'b', 'c', 'd', 'e'].flatMap((route) => [
      steady('upstream_faults_total', { route, cause: 'connection_refused' }, route === 'b' ? 4 : 0),
      steady('upstream_attempts_total', { route, outcome: 'unreachable' }, route === 'b' ? 4 : 0),
      steady('upstream_attempts_total', { route, outcome: 'ok' }, route === 'b' ? 0 : 100),
    ]),
    expected: [{ ...only(10, 'BearerSidecarUpstreamUnreachable'), routes: ['b'] }],
  },
  {
    name: 'the upstream refuses every fifth attempt for its rate, from the tenth minute on',
    series: [steady('permits_total', R, 50), steadyFrom('rate_limited_total', R, 10, 10)],
    expected: [nothing(10), pending(18, 'BearerSidecarRateLimited'), only(25, 'BearerSidecarRateLimited')],
  },
  {
    name: 'the event loop stands still once',
    series: [
      level('build_info', { version: '1' }, 1),
      outside('nodejs_eventloop_lag_p99_seconds', () => 0.012),
      outside('nodejs_eventloop_lag_max_seconds', (step) => (step === 10 ? 3 : 0.1)),
    ],
    expected: [pending(9, 'BearerSidecarEventLoopStalled'), only(11, 'BearerSidecarEventLoopStalled'), nothing(21)],
  },
];

export const SCENARIOS: readonly Scenario[] = [...STORIES, ...THRESHOLDS.flatMap(playThreshold)];

/** Whether an alert is about what a sidecar cannot see of itself. */
export function isOutside(name: AnyAlertName): boolean {
  return name in OUTSIDE_ALERTS;
}
