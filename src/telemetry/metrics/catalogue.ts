/**
 * The counters and histograms, one entry each: name, help, labels, and the rare events that it counts. Every series of a closed set exists
 * from the start, at 0, so that rate() and alerts see its first increase. What is frequent is counted by metrics.ts and route-counters.ts.
 */
import { LOCAL_REPLY_CODES } from '../../platform/errors.ts';
import {
  ATTEMPT_OUTCOMES,
  CUT_BY,
  FAULT_CAUSES,
  FLEET_COMMAND_OUTCOMES,
  INVALIDATION_REASONS,
  QUEUE_REJECTION_REASONS,
  RELOAD_OUTCOMES,
  RETRY_REASONS,
  LIMIT_SCOPES,
  SUSPECT_STATUSES,
  TOKEN_OUTCOMES,
} from '../events.ts';
import type { EventObserver, SidecarEvent } from '../events.ts';
import type {
  CountedSeries,
  DurationSeries,
  HistogramOptions,
  SeriesOptions,
  SeriesRegistry,
  SeriesTable,
} from './series.ts';

export interface ConfiguredLabelValues {
  readonly routes: readonly string[];
  /** Default: the routes. */
  readonly throttleNames?: readonly string[];
  readonly credentials: readonly string[];
}

interface MetricDefinition extends Pick<SeriesOptions, 'help'> {
  /** The values of each label, or which configured names they are. Default: no label. */
  readonly labels?: Readonly<Record<string, readonly string[] | 'routes' | 'throttles' | 'credentials'>>;
  /** A histogram of the same events. Default: none. */
  readonly durations?: HistogramOptions;
  /** The rare events that are counted, with their label values in the order of the labels; undefined: this one is not counted. */
  readonly events?: {
    readonly [Kind in SidecarEvent['kind']]?: (
      event: Extract<SidecarEvent, { readonly kind: Kind }>,
    ) => readonly string[] | undefined;
  };
}

/** By the name without the prefix. */
const METRICS = {
  requests_total: {
    help: 'Client requests that have ended.',
    // Status codes of an upstream are an open set; most dashboards need these.
    labels: { route: 'routes', method: ['GET', 'POST'], code: ['200'], source: ['upstream'] },
    durations: {
      name: 'request_duration_seconds',
      help: 'Time from the arrival of a request to the end of its response.',
    },
  },
  local_replies_total: {
    help: 'Responses that the sidecar generated itself (local replies), by code.',
    labels: { route: 'routes', code: LOCAL_REPLY_CODES },
  },
  unknown_outcomes_total: {
    help: 'Calls that are not idempotent, were sent and got no response: perhaps carried out.',
    labels: { route: 'routes' },
  },
  unknown_call_write_errors_total: {
    help: 'Writes to unknownCalls.file that failed.',
    events: { 'unknown-calls-file': ({ phase }) => (phase === 'works' ? undefined : []) },
  },
  state_file_write_errors_total: {
    help: 'Writes of throttle.stateFile that failed.',
    events: { 'state-file-not-written': () => [] },
  },
  responses_cut_total: {
    help: 'Responses cut off after the client had received a part of them.',
    labels: { route: 'routes', by: CUT_BY },
  },
  responses_broken_off_total: {
    help: 'Responses broken off because their clients read nothing while other requests waited for their places.',
    labels: { route: 'routes' },
    events: { 'response-broken-off': ({ route }) => [route] },
  },
  client_authorization_overridden_total: {
    help: 'Requests whose own Authorization header was replaced.',
    events: { 'authorization-overridden': () => [] },
  },
  upstream_attempts_total: {
    help: 'Attempts sent to the upstream, counted when they end.',
    labels: { route: 'routes', outcome: ATTEMPT_OUTCOMES },
    durations: {
      name: 'upstream_duration_seconds',
      help: 'Time from the permit to the response head, or to the end of an attempt without a response.',
      // Each outcome has them, so that every route has nine; 5 s is the threshold of an alert.
      bounds: [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 60],
    },
  },
  upstream_faults_total: {
    help: 'Attempts without a whole response that the sidecar did not end itself, by cause.',
    labels: { route: 'routes', cause: FAULT_CAUSES },
    events: { 'attempt-failed': ({ route, cause }) => (cause === undefined ? undefined : [route, cause]) },
  },
  retries_total: {
    help: 'Retries, by reason.',
    labels: { reason: RETRY_REASONS },
    events: { retry: ({ reason }) => [reason] },
  },
  retry_budget_exhausted_total: {
    help: 'Retries that the retry budget refused.',
    labels: { reason: RETRY_REASONS },
    events: { 'retry-budget-exhausted': ({ reason }) => [reason] },
  },
  insufficient_scope_total: {
    help: 'Requests that the upstream refused because the token lacks a scope.',
    labels: { route: 'routes' },
    events: { 'insufficient-scope': ({ route }) => [route] },
  },
  foreign_responses_total: {
    help: 'Responses with a status below 400 that are none of the API: unasked web pages, and redirects to another server.',
    labels: { route: 'routes' },
    events: { 'foreign-response': ({ route }) => [route] },
  },
  rate_limited_total: {
    help: 'Responses that signalled a rate limit.',
    labels: { route: 'throttles' },
    events: { 'rate-limited': ({ route }) => [route] },
  },
  limit_refusals_total: {
    help: 'Responses that signalled a rate limit, by what the limit counts: one operation, or the whole route.',
    labels: { route: 'throttles', scope: LIMIT_SCOPES },
    events: { 'rate-limited': ({ route, scope }) => [route, scope] },
  },
  unconfigured_refusals_total: {
    help: 'Bare responses whose status may be a rate limit that throttle.refusals does not name.',
    labels: { route: 'throttles', status: SUSPECT_STATUSES.map(String) },
    events: { 'unconfigured-refusal': ({ route, status }) => [route, String(status)] },
  },
  assumed_refusals_total: {
    help: 'Bare responses that are taken for a rate-limit refusal although throttle.refusals does not name them.',
    labels: { route: 'throttles' },
    events: { 'assumed-refusal': ({ route }) => [route] },
  },
  permits_total: {
    help: 'Permits granted.',
    labels: { route: 'throttles' },
    durations: { name: 'queue_wait_seconds', help: 'Time that a request waited for a permit.' },
  },
  queue_rejected_total: {
    help: 'Requests that left the queue without a permit.',
    labels: { route: 'throttles', reason: QUEUE_REJECTION_REASONS },
    events: { 'queue-rejected': ({ route, reason }) => [route, reason] },
  },
  would_permits_total: {
    help: 'Permits that calls would have had which throttle.mode observe let pass.',
    labels: { route: 'throttles' },
    durations: {
      name: 'would_wait_seconds',
      help: 'Time that such a call would have waited for its permit.',
      bounds: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300],
    },
  },
  would_refuse_total: {
    help: 'Calls that would have been rejected and that throttle.mode observe let pass.',
    labels: { route: 'throttles' },
    events: { 'would-refuse': ({ route }) => [route] },
  },
  token_requests_total: {
    help: 'Requests to the token endpoint.',
    labels: { credential: 'credentials', outcome: TOKEN_OUTCOMES },
    durations: { name: 'token_request_duration_seconds', help: 'Duration of a token request.' },
  },
  token_invalidations_total: {
    help: 'Tokens discarded before they expired.',
    labels: { credential: 'credentials', reason: INVALIDATION_REASONS },
    events: { 'token-invalidated': ({ credential, reason }) => [credential, reason] },
  },
  token_fallbacks_total: {
    help: 'New tokens that the upstream did not accept at once, while the previous one was used.',
    labels: { credential: 'credentials' },
    events: { 'token-not-accepted-yet': ({ credential }) => [credential] },
  },
  credential_rotation_failures_total: {
    help: 'New credentials that could not be applied while the previous ones stay in use.',
    labels: { credential: 'credentials' },
    events: { 'credential-rotation': ({ credential, outcome }) => (outcome === 'taken' ? undefined : [credential]) },
  },
  config_reloads_total: {
    help: 'Configuration reloads, by outcome.',
    labels: { outcome: RELOAD_OUTCOMES },
    events: { 'configuration-read': ({ outcome }) => [outcome] },
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;

const FLEET_METRICS = {
  fleet_commands_total: {
    help: 'Commands sent to the Redis of the fleet.',
    labels: { outcome: FLEET_COMMAND_OUTCOMES },
    events: { 'fleet-command': ({ outcome }) => [outcome] },
  },
  fleet_tokens_total: {
    help: 'Token results taken over from another replica.',
    labels: { credential: 'credentials', outcome: TOKEN_OUTCOMES },
    events: {
      'token-found': ({ credential, from }) => (from === 'fleet' ? [credential, 'ok'] : undefined),
      'token-not-asked': ({ credential, outcome }) => [credential, outcome],
    },
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;

export type Catalogue = {
  readonly [Name in keyof typeof METRICS]: (typeof METRICS)[Name] extends { readonly durations: object }
    ? SeriesTable<DurationSeries>
    : SeriesTable<CountedSeries>;
};

export function createCatalogue(
  series: SeriesRegistry,
  { routes, throttleNames = routes, credentials }: ConfiguredLabelValues,
  hasFleet: boolean,
): { readonly catalogue: Catalogue; readonly countEvent: EventObserver } {
  const configured = { routes, throttles: throttleNames, credentials };
  const counters = new Map<string, EventObserver[]>();
  const definitions: Readonly<Record<string, MetricDefinition>> = { ...METRICS, ...(hasFleet && FLEET_METRICS) };
  const tables = Object.entries(definitions).map(([name, { help, labels = {}, durations, events = {} }]) => {
    const values = Object.entries(labels).map(([label, list]) => [
      label,
      typeof list === 'string' ? configured[list] : list,
    ]);
    const options: SeriesOptions = { name, help, labels: Object.fromEntries(values) as SeriesOptions['labels'] & {} };
    const table = durations === undefined ? series.addCounter(options) : series.addDurations(options, durations);
    for (const [kind, listValues] of Object.entries(events) as [
      string,
      (event: SidecarEvent) => string[] | undefined,
    ][])
      counters.set(kind, [...(counters.get(kind) ?? []), (event) => countOne(table, listValues(event))]);
    return [name, table];
  });
  return {
    catalogue: Object.fromEntries(tables) as Catalogue,
    countEvent: (event) => counters.get(event.kind)?.forEach((count) => count(event)),
  };
}

function countOne(table: SeriesTable<CountedSeries>, values: readonly string[] | undefined): void {
  if (values !== undefined) table.find(...values).count++;
}
