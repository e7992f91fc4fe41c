/**
 * The counters and histograms: names, labels and closed sets of label values. Every series of a closed set exists from the start,
 * at 0, so that rate() and alerts see its first increase. metrics.ts and route-metrics.ts count.
 */
import { LOCAL_REPLY_CODES } from '../../platform/errors.ts';
import { FAULT_CAUSES, SUSPECT_STATUSES } from '../events.ts';
import type { AttemptOutcome, CutBy, FleetCommandOutcome, QueueRejectionReason, ReloadOutcome } from '../events.ts';
import type { RetryReason, SidecarEvent, TokenOutcome } from '../events.ts';
import type { SeriesRegistry } from './series.ts';

type InvalidationReason = Extract<SidecarEvent, { kind: 'token-invalidated' }>['reason'];

// Keys of a record, so that the compiler reports a missing one.
export const ATTEMPT_OUTCOMES = Object.keys({
  ok: 0,
  rate_limited: 0,
  unauthorized: 0,
  error_status: 0,
  cut: 0,
  client_left: 0,
  reset: 0,
  timeout: 0,
  unreachable: 0,
} satisfies Record<AttemptOutcome, 0>) as AttemptOutcome[];
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
const TOKEN_OUTCOMES = Object.keys({
  ok: 0,
  rejected: 0,
  unavailable: 0,
  malformed: 0,
} satisfies Record<TokenOutcome, 0>);
const RELOAD_OUTCOMES = Object.keys({ ok: 0, refused: 0, invalid: 0 } satisfies Record<ReloadOutcome, 0>);
const INVALIDATION_REASONS = Object.keys({ unauthorized: 0, rotated: 0 } satisfies Record<InvalidationReason, 0>);
const FLEET_COMMAND_OUTCOMES = Object.keys({ ok: 0, timeout: 0, error: 0 } satisfies Record<FleetCommandOutcome, 0>);

/** Every counter and histogram of a sidecar without a fleet. */
export type Catalogue = ReturnType<typeof createCatalogue>;

/** Label values that come from the configuration. */
export interface ConfiguredLabelValues {
  readonly routes: readonly string[];
  /** Default: the routes. */
  readonly throttleNames?: readonly string[];
  readonly credentials: readonly string[];
}

/** Registers the counters and histograms for these configured names. */
export function createCatalogue(
  series: SeriesRegistry,
  { routes, throttleNames = routes, credentials }: ConfiguredLabelValues,
) {
  return {
    ...defineRequests(series, routes),
    ...defineAttempts(series, routes),
    ...defineQueue(series, throttleNames),
    ...defineTokens(series, credentials),
    configReloads: series.addCounter({
      ...{ name: 'config_reloads_total', help: 'Configuration reloads, by outcome.' },
      ...{ labelNames: ['outcome'], initial: listLabels(RELOAD_OUTCOMES) },
    }),
  };
}

/** Registers the counters of a fleet: its Redis commands and shared tokens. */
export function createFleetCatalogue(series: SeriesRegistry, credentials: readonly string[]) {
  return {
    commands: series.addCounter({
      ...{ name: 'fleet_commands_total', help: 'Commands sent to the Redis of the fleet.' },
      ...{ labelNames: ['outcome'], initial: listLabels(FLEET_COMMAND_OUTCOMES) },
    }),
    tokens: series.addCounter({
      ...{ name: 'fleet_tokens_total', help: 'Token results taken over from another replica.' },
      ...{ labelNames: ['credential', 'outcome'], initial: listLabels(credentials, TOKEN_OUTCOMES) },
    }),
  };
}

function defineRequests(series: SeriesRegistry, routes: readonly string[]) {
  return {
    requests: series.addDurations(
      {
        ...{ name: 'requests_total', help: 'Client requests that have ended.' },
        labelNames: ['route', 'method', 'code', 'source'],
        // Status codes of an upstream are an open set; most dashboards need these.
        initial: listLabels(routes, ['GET', 'POST'], ['200'], ['upstream']),
      },
      {
        name: 'request_duration_seconds',
        help: 'Time from the arrival of a request to the end of its response.',
      },
    ),
    localReplies: series.addCounter({
      ...{ name: 'local_replies_total', help: 'Responses that the sidecar generated itself (local replies), by code.' },
      ...{ labelNames: ['route', 'code'], initial: listLabels(routes, LOCAL_REPLY_CODES) },
    }),
    unknownOutcomes: series.addCounter({
      name: 'unknown_outcomes_total',
      help: 'Calls that are not idempotent, were sent and got no response: perhaps carried out.',
      ...{ labelNames: ['route'], initial: listLabels(routes) },
    }),
    responsesCut: series.addCounter({
      ...{ name: 'responses_cut_total', help: 'Responses cut off after the client had received a part of them.' },
      ...{ labelNames: ['route', 'by'], initial: listLabels(routes, CUT_BY) },
    }),
    authorizationOverridden: series.addCounter({
      name: 'client_authorization_overridden_total',
      help: 'Requests whose own Authorization header was replaced.',
    }),
  };
}

function defineAttempts(series: SeriesRegistry, routes: readonly string[]) {
  const reasons = listLabels(RETRY_REASONS);
  return {
    attempts: series.addDurations(
      {
        ...{ name: 'upstream_attempts_total', help: 'Attempts sent to the upstream, counted when they end.' },
        ...{ labelNames: ['route', 'outcome'], initial: listLabels(routes, ATTEMPT_OUTCOMES) },
      },
      {
        name: 'upstream_duration_seconds',
        help: 'Time from the permit to the response head, or to the end of an attempt without a response.',
      },
    ),
    faults: series.addCounter({
      name: 'upstream_faults_total',
      help: 'Attempts without a whole response that the sidecar did not end itself, by cause.',
      ...{ labelNames: ['route', 'cause'], initial: listLabels(routes, FAULT_CAUSES) },
    }),
    retries: series.addCounter({
      ...{ name: 'retries_total', help: 'Retries, by reason.', labelNames: ['reason'], initial: reasons },
    }),
    retryBudgetExhausted: series.addCounter({
      ...{ name: 'retry_budget_exhausted_total', help: 'Retries that the retry budget refused.' },
      ...{ labelNames: ['reason'], initial: reasons },
    }),
    insufficientScope: series.addCounter({
      name: 'insufficient_scope_total',
      help: 'Requests that the upstream refused because the token lacks a scope.',
      ...{ labelNames: ['route'], initial: listLabels(routes) },
    }),
  };
}

function defineQueue(series: SeriesRegistry, throttles: readonly string[]) {
  const perThrottle = { labelNames: ['route'], initial: listLabels(throttles) };
  return {
    rateLimited: series.addCounter({
      ...{ name: 'rate_limited_total', help: 'Responses that signalled a rate limit.', ...perThrottle },
    }),
    unconfiguredRefusals: series.addCounter({
      name: 'unconfigured_refusals_total',
      help: 'Bare responses whose status may be a rate limit that throttle.refusals does not name.',
      ...{ labelNames: ['route', 'status'], initial: listLabels(throttles, SUSPECT_STATUSES.map(String)) },
    }),
    permits: series.addDurations(
      { name: 'permits_total', help: 'Permits granted.', ...perThrottle },
      { name: 'queue_wait_seconds', help: 'Time that a request waited for a permit.' },
    ),
    queueRejected: series.addCounter({
      ...{ name: 'queue_rejected_total', help: 'Requests that left the queue without a permit.' },
      ...{ labelNames: ['route', 'reason'], initial: listLabels(throttles, QUEUE_REJECTION_REASONS) },
    }),
  };
}

function defineTokens(series: SeriesRegistry, credentials: readonly string[]) {
  const perCredential = { labelNames: ['credential'], initial: listLabels(credentials) };
  return {
    tokenRequests: series.addDurations(
      {
        ...{ name: 'token_requests_total', help: 'Requests to the token endpoint.' },
        ...{ labelNames: ['credential', 'outcome'], initial: listLabels(credentials, TOKEN_OUTCOMES) },
      },
      { name: 'token_request_duration_seconds', help: 'Duration of a token request.' },
    ),
    tokenInvalidations: series.addCounter({
      ...{ name: 'token_invalidations_total', help: 'Tokens discarded before they expired.' },
      ...{ labelNames: ['credential', 'reason'], initial: listLabels(credentials, INVALIDATION_REASONS) },
    }),
    tokenFallbacks: series.addCounter({
      name: 'token_fallbacks_total',
      help: 'New tokens that the upstream did not accept at once, while the previous one was used.',
      ...perCredential,
    }),
    rotationFailures: series.addCounter({
      name: 'credential_rotation_failures_total',
      help: 'New credentials that could not be applied while the previous ones stay in use.',
      ...perCredential,
    }),
  };
}

/** All combinations of these label values. */
function listLabels(...values: readonly (readonly string[])[]): string[][] {
  return values.reduce<string[][]>((sets, next) => sets.flatMap((set) => next.map((value) => [...set, value])), [[]]);
}
