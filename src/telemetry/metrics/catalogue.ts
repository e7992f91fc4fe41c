/**
 * The counters and histograms: names, labels and closed sets of label values. Every series of a closed set exists from the start,
 * at 0, so that rate() and alerts see its first increase. metrics.ts updates them.
 */
import type { Registry } from 'prom-client';
import { LOCAL_REPLY_CODES } from '../../platform/errors.ts';
import { SUSPECT_STATUSES } from '../events.ts';
import type { AttemptOutcome, CutBy, QueueRejectionReason, ReloadOutcome } from '../events.ts';
import type { RetryReason, SidecarEvent, TokenOutcome } from '../events.ts';
import { createCounter, createDurationMetric } from './series.ts';
import type { IncrementCounter, RecordDuration } from './series.ts';

type InvalidationReason = Extract<SidecarEvent, { kind: 'token-invalidated' }>['reason'];

// Keys of a record, so that the compiler reports a missing one.
const ATTEMPT_OUTCOMES = Object.keys({
  ok: 0,
  rate_limited: 0,
  unauthorized: 0,
  error_status: 0,
  cut: 0,
  client_left: 0,
  reset: 0,
  timeout: 0,
  unreachable: 0,
} satisfies Record<AttemptOutcome, 0>);
const CUT_BY = Object.keys({ upstream: 0, sidecar: 0 } satisfies Record<CutBy, 0>);
const RETRY_REASONS = Object.keys({
  rate_limited: 0,
  unauthorized: 0,
  status: 0,
  reset: 0,
  connect: 0,
} satisfies Record<RetryReason, 0>);
const QUEUE_REJECTION_REASONS = Object.keys({
  full: 0,
  timeout: 0,
  expected_wait: 0,
  draining: 0,
  client_left: 0,
} satisfies Record<QueueRejectionReason, 0>);
/** The outcomes of a token request. */
export const TOKEN_OUTCOMES = Object.keys({
  ok: 0,
  rejected: 0,
  unavailable: 0,
  malformed: 0,
} satisfies Record<TokenOutcome, 0>);
const RELOAD_OUTCOMES = Object.keys({ ok: 0, refused: 0, invalid: 0 } satisfies Record<ReloadOutcome, 0>);
const INVALIDATION_REASONS = Object.keys({ unauthorized: 0, rotated: 0 } satisfies Record<InvalidationReason, 0>);

/** The prefix of every metric of the sidecar itself. */
export const METRIC_PREFIX = 'bearer_sidecar_';

type MetricDescription = readonly [name: string, help: string];
type CreateCounter = (
  name: string,
  help: string,
  labelNames?: readonly string[],
  initial?: readonly string[][],
) => IncrementCounter;
type CreateDuration = (
  total: MetricDescription,
  seconds: MetricDescription,
  labelNames: readonly string[],
  initial: readonly string[][],
) => RecordDuration;

/** Every counter and histogram. */
export type EventMetrics = ReturnType<typeof createEventMetrics>;

/** Label values that come from the configuration. */
export interface ConfiguredLabelValues {
  readonly routes: readonly string[];
  /** Default: the routes. */
  readonly throttleNames?: readonly string[];
  readonly credentials: readonly string[];
}

/** Registers the counters and histograms for these configured names. */
export function createEventMetrics(
  registry: Registry,
  { routes, throttleNames = routes, credentials }: ConfiguredLabelValues,
) {
  const counter: CreateCounter = (name, help, labelNames = [], initial = [[]]) =>
    createCounter({ registry, name: `${METRIC_PREFIX}${name}`, help, labelNames, initial });
  const timer: CreateDuration = (total, seconds, labelNames, initial) =>
    createDurationMetric({ registry, total: withPrefix(total), seconds: withPrefix(seconds), labelNames, initial });
  return {
    ...defineRequests(counter, timer, routes),
    ...defineAttempts(counter, timer, routes),
    ...defineQueue(counter, timer, throttleNames),
    ...defineTokens(counter, timer, credentials),
    configReloads: counter(
      'config_reloads_total',
      'Configuration reloads, by outcome.',
      ['outcome'],
      labelSetsOf(RELOAD_OUTCOMES),
    ),
  };
}

function defineRequests(counter: CreateCounter, timer: CreateDuration, routes: readonly string[]) {
  const labels = ['route', 'method', 'code', 'source'];
  // Status codes of an upstream are an open set; most dashboards need these.
  const usual = labelPairsOf(routes, ['GET', 'POST']).map((pair) => [...pair, '200', 'upstream']);
  return {
    requests: timer(
      ['requests_total', 'Client requests that have ended.'],
      ['request_duration_seconds', 'Time from the arrival of a request to the end of its response.'],
      labels,
      usual,
    ),
    localReplies: counter(
      'local_replies_total',
      'Responses that the sidecar generated itself (local replies), by code.',
      ['code'],
      labelSetsOf(LOCAL_REPLY_CODES),
    ),
    responsesCut: counter(
      'responses_cut_total',
      'Responses cut off after the client had received a part of them.',
      ['route', 'by'],
      labelPairsOf(routes, CUT_BY),
    ),
    authorizationOverridden: counter(
      'client_authorization_overridden_total',
      'Requests whose own Authorization header was replaced.',
    ),
  };
}

function defineAttempts(counter: CreateCounter, timer: CreateDuration, routes: readonly string[]) {
  const outcomes = labelSetsOf(ATTEMPT_OUTCOMES);
  const reasons = labelSetsOf(RETRY_REASONS);
  return {
    attempts: timer(
      ['upstream_attempts_total', 'Attempts sent to the upstream, counted when they end.'],
      [
        'upstream_duration_seconds',
        'Time from the permit to the response head, or to the end of an attempt without a response.',
      ],
      ['outcome'],
      outcomes,
    ),
    retries: counter('retries_total', 'Retries, by reason.', ['reason'], reasons),
    retryBudgetExhausted: counter(
      'retry_budget_exhausted_total',
      'Retries that the retry budget refused.',
      ['reason'],
      reasons,
    ),
    insufficientScope: counter(
      'insufficient_scope_total',
      'Requests that the upstream refused because the token lacks a scope.',
      ['route'],
      labelSetsOf(routes),
    ),
  };
}

function defineQueue(counter: CreateCounter, timer: CreateDuration, routes: readonly string[]) {
  const perRoute = labelSetsOf(routes);
  return {
    rateLimited: counter('rate_limited_total', 'Responses that signalled a rate limit.', ['route'], perRoute),
    unconfiguredRefusals: counter(
      'unconfigured_refusals_total',
      'Bare responses whose status may be a rate limit that throttle.refusals does not name.',
      ['route', 'status'],
      labelPairsOf(routes, SUSPECT_STATUSES.map(String)),
    ),
    permits: timer(
      ['permits_total', 'Permits granted.'],
      ['queue_wait_seconds', 'Time that a request waited for a permit.'],
      ['route'],
      perRoute,
    ),
    queueRejected: counter(
      'queue_rejected_total',
      'Requests that left the queue without a permit.',
      ['route', 'reason'],
      labelPairsOf(routes, QUEUE_REJECTION_REASONS),
    ),
  };
}

function defineTokens(counter: CreateCounter, timer: CreateDuration, credentials: readonly string[]) {
  const labels = ['credential', 'outcome'];
  const outcomes = labelPairsOf(credentials, TOKEN_OUTCOMES);
  return {
    tokenRequests: timer(
      ['token_requests_total', 'Requests to the token endpoint.'],
      ['token_request_duration_seconds', 'Duration of a token request.'],
      labels,
      outcomes,
    ),
    tokenInvalidations: counter(
      'token_invalidations_total',
      'Tokens discarded before they expired.',
      ['credential', 'reason'],
      labelPairsOf(credentials, INVALIDATION_REASONS),
    ),
    tokenFallbacks: counter(
      'token_fallbacks_total',
      'New tokens that the upstream did not accept at once, while the previous one was used.',
      ['credential'],
      labelSetsOf(credentials),
    ),
    rotationFailures: counter(
      'credential_rotation_failures_total',
      'New credentials that could not be applied while the previous ones stay in use.',
      ['credential'],
      labelSetsOf(credentials),
    ),
  };
}

function withPrefix([name, help]: MetricDescription): { readonly name: string; readonly help: string } {
  return { name: `${METRIC_PREFIX}${name}`, help };
}

function labelSetsOf(values: readonly string[]): string[][] {
  return values.map((value) => [value]);
}

function labelPairsOf(first: readonly string[], second: readonly string[]): string[][] {
  return first.flatMap((one) => second.map((other) => [one, other]));
}
