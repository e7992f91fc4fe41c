/**
 * Every alert whose condition one sidecar can see, in one place (pure). The page, /status, deploy/prometheus, the chart and the table of
 * docs/operations.md follow from it. tools/dashboard/outside-alerts.ts has those about what a process cannot see of itself.
 */
import type { Condition, ConditionInputs, Series } from './conditions.ts';

export interface AlertText {
  /** critical: requests of the application fail, or will fail within minutes. warning: needs attention within a day. */
  readonly severity: 'critical' | 'warning';
  /** How long the condition must last before Prometheus sends the alert; the page shows it from its first second. */
  readonly forMs: number;
  readonly group: 'service' | 'token' | 'limits' | 'upstream' | 'process' | 'fleet';
  /** One short line, with the value in the place of `{share}`, `{count}` or `{duration}`. Prometheus adds what it is about. */
  readonly headline: string;
  readonly description: string;
}

export interface Alert extends AlertText {
  readonly condition: Condition;
  /** Sentences with settings and commands in backticks. */
  readonly advice: readonly [string, ...string[]];
  /** What an alert shows by itself; the verdict may know better. */
  readonly where: 'partner' | 'network' | 'setting' | 'limit' | 'token' | 'unclear';
}

type AlertEntry = Pick<Alert, 'condition' | 'headline' | 'description' | 'advice'> & Partial<Pick<Alert, 'where'>>;

const PLACES: Readonly<Record<AlertText['group'], Alert['where']>> = {
  service: 'unclear',
  token: 'token',
  limits: 'limit',
  upstream: 'unclear',
  process: 'setting',
  fleet: 'network',
};

const MINUTE_MS = 60_000;

const critical = (group: AlertText['group'], minutes: number, entry: AlertEntry): Alert => {
  return { severity: 'critical', group, forMs: minutes * MINUTE_MS, where: PLACES[group], ...entry };
};
const warning = (group: AlertText['group'], minutes: number, entry: AlertEntry): Alert => {
  return { ...critical(group, minutes, entry), severity: 'warning' };
};

const perRoute = (metric: string, where: Series['where'] = {}): Series => ({ metric, per: 'route', where });
const perCredential = (metric: string, where: Series['where'] = {}): Series => ({ metric, per: 'credential', where });
const ofProcess = (metric: string, where: Series['where'] = {}): Series => ({ metric, per: undefined, where });
const ratio = (part: Series, whole: Series | readonly Series[], minutes: number, above: number): Condition => {
  return { form: 'ratio', of: part, whole: [whole].flat(), windowMs: minutes * MINUTE_MS, above };
};
const increase = (of: Series, minutes: number, above: number): Condition => {
  return { form: 'increase', of, windowMs: minutes * MINUTE_MS, above };
};
const quantile = (of: Series, share: number, minutes: number, above: number): Condition => {
  return { form: 'quantile', of, share, windowMs: minutes * MINUTE_MS, above };
};
const all = (...conditions: readonly Condition[]): Condition => ({ form: 'all', conditions });
const any = (...conditions: readonly Condition[]): Condition => ({ form: 'any', conditions });

const REQUESTS = perRoute('requests_total');
/** What the application cannot use. */
const FAILED_REQUESTS = perRoute('requests_total', { code: '401|429|5..' });
/** Responses with 4xx, and calls whose clients left: faults of the application, unless no call succeeds. */
const CLIENT_ERRORS: Series = { ...perRoute('requests_total', { code: '4..' }), except: { code: '401|429' } };
const RESPONSES = perRoute('requests_total', { source: 'upstream' });
const FOREIGN = perRoute('foreign_responses_total');
const UPSTREAM_ERRORS = perRoute('requests_total', { code: '5..', source: 'upstream' });
/** Three within five minutes: one failure at low traffic is no trend. */
const LEAST_FAILURES = 2.7;
const ATTEMPTS = perRoute('upstream_attempts_total');
/** Attempts without a response: one that breaks off after its head counts for BearerSidecarResponsesCut. */
const FAULTS: Series = { ...perRoute('upstream_faults_total'), except: { cause: 'response_cut|intercepted' } };
const INTERCEPTED = perRoute('upstream_faults_total', { cause: 'intercepted' });
const PERMITS = perRoute('permits_total');
const REJECTED = perRoute('queue_rejected_total', { reason: 'full|timeout|expected_wait|quota' });
const RATE_LIMITED = perRoute('rate_limited_total');
const CUT = perRoute('responses_cut_total', { by: 'upstream' });
const TOKEN_EXPIRY = perCredential('token_expiry_timestamp_seconds');
const TOKEN_FAILURES = perCredential('token_endpoint_failures');

const CHECK =
  'Run `bearer-sidecar check` with the settings of this process: it names the first fault between here and the partner.';
const ASK_FOR_LIMIT = 'Send fewer calls, or agree a higher limit with the partner.';

/** Prometheus compares the expiry itself, which has no history here; a new expiry comes with a new token. */
function isTokenUnchanged({ samples }: ConditionInputs, credential: string): boolean {
  const windowMs = 12 * MINUTE_MS;
  const renewals = { credential, outcome: 'ok' };
  const count = ['token_requests_total', 'fleet_tokens_total'].reduce(
    (sum, metric) => sum + samples.increase(metric, windowMs, renewals),
    0,
  );
  return samples.spanMs >= windowMs && count === 0;
}

export const ALERTS = {
  BearerSidecarRequestsFailing: critical('service', 5, {
    condition: all(ratio(FAILED_REQUESTS, REQUESTS, 5, 0.1), increase(FAILED_REQUESTS, 5, LEAST_FAILURES)),
    headline: '{share} of the requests fail',
    description: 'More than 10 % of the requests end with 401, 429 or 5xx, from the upstream or from the sidecar.',
    advice: ['See status and reason of the failed calls under Recent calls.'],
  }),
  BearerSidecarNoCallSucceeds: warning('service', 10, {
    // Lookups of a route may all get 404 for a while: neither a few calls nor a few minutes are enough.
    condition: all(ratio(CLIENT_ERRORS, REQUESTS, 10, 0.95), increase(CLIENT_ERRORS, 10, 5)),
    headline: '{share} of the requests end with 4xx',
    description:
      'Nearly every call of a route ends with 403, 404, 422 or another 4xx, or its client leaves (499). Each is an answer of the partner to one call; together they mean that the application cannot work.',
    advice: ['See status and reason of the calls under Recent calls; the body of a response says what is wrong.'],
  }),
  BearerSidecarTokenMissing: critical('token', 2, {
    condition: {
      form: 'unless',
      condition: { form: 'gauge', of: TOKEN_FAILURES },
      unless: { form: 'age', of: TOKEN_EXPIRY, above: 0 },
    },
    headline: 'No token',
    description:
      'Every request gets TOKEN_REJECTED or TOKEN_UNAVAILABLE. Token requests failed {{ $value }} times in a row.',
    advice: [CHECK],
  }),
  BearerSidecarTokenExpiring: critical('token', 1, {
    // A token is refreshed when 15 to 25 % of its lifetime is left, so a long-lived one does not normally come below 300 s. A short-lived
    // one does; then either its refresh has failed, or it is the same token as twelve minutes ago.
    condition: any(
      all({ form: 'age', of: TOKEN_EXPIRY, above: 0, below: 300 }, { form: 'gauge', of: TOKEN_FAILURES, above: 0 }),
      all(
        { form: 'age', of: TOKEN_EXPIRY, above: 0, below: 120 },
        {
          form: 'own',
          per: 'credential',
          promql:
            'bearer_sidecar_token_expiry_timestamp_seconds == bearer_sidecar_token_expiry_timestamp_seconds offset 12m',
          evaluate: (inputs, credential) => (isTokenUnchanged(inputs, credential) ? 1 : undefined),
        },
      ),
    ),
    headline: 'The token expires soon and is not refreshed',
    description: 'Requests fail in {{ $value | humanizeDuration }}.',
    advice: ['The token must be refreshed before it expires; see the last failure under Token.', CHECK],
  }),
  BearerSidecarTokenEndpointFailing: warning('token', 5, {
    condition: { form: 'gauge', of: TOKEN_FAILURES, above: 0 },
    headline: 'A new token cannot be obtained',
    description:
      '{{ $value }} consecutive failures of the token endpoint, or of reading the token file. Requests are not affected while the held token is valid.',
    advice: [CHECK],
  }),
  BearerSidecarClientRejected: critical('token', 3, {
    // A rejected client retries every 60 s, so that a single rejection does not last for three minutes.
    condition: any(
      increase(perCredential('token_requests_total', { outcome: 'rejected' }), 3, 0),
      increase(perCredential('fleet_tokens_total', { outcome: 'rejected' }), 3, 0),
    ),
    headline: 'The authorization server rejects the client',
    description:
      'Client id, secret, audience or scope are not accepted. This needs a change of the configuration; the log and /status show the OAuth error.',
    advice: ['Check client id, secret, audience and scope with `bearer-sidecar check`.'],
  }),
  BearerSidecarRotationFailing: warning('token', 0, {
    condition: increase(perCredential('credential_rotation_failures_total'), 15, 0),
    headline: 'A new secret cannot be used; the previous one stays in use',
    description:
      'New credentials are rejected or cannot be read. The previous ones stay in use as long as they are accepted.',
    advice: ['Correct the new secret at its source; the previous one stays in use until then.'],
  }),
  BearerSidecarRefreshTokenUnkept: warning('token', 0, {
    condition: { form: 'gauge', of: perCredential('refresh_token_unkept'), above: 0 },
    headline: 'A restart would end the service: the refresh token is replaced at each use and not kept',
    description:
      'The authorization server replaces the refresh token at each use, and no file keeps the newest one. After a restart the configured one is refused.',
    advice: ['Set `SIDECAR_AUTH_CACHE_FILE` to a file on a disk that stays, or ask for the grant client_credentials.'],
  }),
  BearerSidecarTokenNotAccepted: warning('token', 10, {
    condition: ratio(perRoute('upstream_attempts_total', { outcome: 'unauthorized' }), ATTEMPTS, 5, 0.05),
    headline: '{share} of the attempts get 401',
    description:
      'The upstream rejects tokens that the authorization server has just issued: requests need a second attempt, or fail.',
    advice: [
      'Check `SIDECAR_AUDIENCE` and `SIDECAR_SCOPE`, and that `SIDECAR_AUTH_URL` and `SIDECAR_BASE_URL` are of the same environment.',
      'If calls succeed between the 401s, other replicas or programs may use the same client, and each new token ends the one before: share it with `SIDECAR_REDIS_URL`, or use one client each.',
    ],
  }),
  BearerSidecarScopeMissing: warning('token', 15, {
    // One refused request counts for ten minutes: the alert needs at least two.
    condition: any(
      { form: 'gauge', of: perCredential('token_scopes_missing'), above: 0 },
      increase(perRoute('insufficient_scope_total'), 10, 0),
    ),
    headline: 'A scope is missing',
    description:
      'The token has fewer scopes than requested (of a credential), or requests were refused with insufficient_scope (of a route).',
    advice: ['Ask the partner to grant the scopes, or correct `SIDECAR_SCOPE`.'],
  }),
  BearerSidecarRateLimited: warning('limits', 10, {
    // Learning a limit causes some rate-limit responses: a few at the start, later about one in 250 attempts.
    condition: all(ratio(RATE_LIMITED, PERMITS, 5, 0.1), increase(RATE_LIMITED, 10, 5)),
    headline: 'Rate limited: {share} of the attempts are refused',
    description:
      'Requests do not stay below the limit of the upstream: another client uses the same quota, or the limit is of a kind that cannot be learned.',
    advice: [
      'Another client may use the same quota: leave a part of it with `SIDECAR_THROTTLE_MAX_RATE` or `throttle.share`.',
    ],
  }),
  BearerSidecarDeclaredLimitUsedUp: warning('limits', 15, {
    // The gauge exists only while a limit of an hour or longer is used up before its window ends.
    condition: {
      form: 'own',
      per: 'route',
      promql: 'min without (limit) (bearer_sidecar_declared_limit_exhausted_timestamp_seconds) - time()',
      evaluate: ({ samples, wallNow }, route) => {
        const at = samples.least('declared_limit_exhausted_timestamp_seconds', { route });
        // The first calls after a start are no pace yet.
        return at === undefined || samples.spanMs < 15 * MINUTE_MS ? undefined : Math.max(0, at - wallNow / 1000);
      },
    },
    headline: 'A declared limit will be used up too early: in {duration}',
    description:
      'At the pace of the last hour the calls of a limit in throttle.limits do not last until its window ends. Then requests wait, and those that may not wait so long get 503 with QUOTA_EXHAUSTED. /status has the limit under limits.',
    advice: [
      ASK_FOR_LIMIT,
      "Calls for urgent requests are kept with `reserve`, and `spread: even` deals out what is left: see the entry's members in `throttle.limits`.",
    ],
  }),
  BearerSidecarPaused: warning('limits', 5, {
    condition: { form: 'gauge', of: perRoute('paused'), meanOverMs: 10 * MINUTE_MS, above: 0.9 },
    headline: 'Paused for most of the last ten minutes',
    description: 'The upstream has stated a wait, or refuses every probe. A quota per hour or day may be used up.',
    advice: ['A quota per hour or per day may be used up: see the last rate-limit response under Rate limit.'],
  }),
  BearerSidecarQueueSaturated: warning('limits', 2, {
    condition: { form: 'gauge', of: perRoute('queue_depth'), dividedBy: perRoute('queue_limit'), above: 0.8 },
    headline: 'The queue is {share} full',
    description:
      'At 100 % further requests get 503 with QUEUE_FULL. BearerSidecarRequestsShed fires when more than 1 % of the requests are refused.',
    advice: [ASK_FOR_LIMIT, 'More places, if the callers can wait: `SIDECAR_QUEUE_MAX`.'],
  }),
  BearerSidecarQueueSlow: warning('limits', 10, {
    condition: quantile(perRoute('queue_wait_seconds'), 0.95, 5, 10),
    headline: 'Requests wait long in the queue: {duration}',
    description:
      'This is the p95 (the mean, where metrics.buckets is none). The application sends more requests than may be forwarded. Requests fail when they wait longer than queue.timeoutMs or the time-out of the caller.',
    advice: [ASK_FOR_LIMIT, 'Urgent calls go first with the header field `x-sidecar-priority: high`.'],
  }),
  BearerSidecarRequestsShed: warning('limits', 5, {
    condition: ratio(REJECTED, [REJECTED, PERMITS], 5, 0.01),
    headline: 'The queue rejects {share} of the requests',
    description: 'These requests get 503 with QUEUE_FULL, QUEUE_TIMEOUT or QUOTA_EXHAUSTED.',
    advice: [
      ASK_FOR_LIMIT,
      'A longer wait, if the callers can wait: `SIDECAR_QUEUE_TIMEOUT_MS`, within `SIDECAR_DEADLINE_MS`.',
    ],
  }),
  BearerSidecarUpstreamUnreachable: critical('upstream', 3, {
    // One failed request makes several attempts: a single request does not alert.
    condition: all(ratio(FAULTS, ATTEMPTS, 5, 0.5), increase(FAULTS, 5, 5)),
    headline: '{share} of the attempts get no response from the upstream',
    description:
      'Connections fail to open, are reset, or time out. bearer_sidecar_upstream_faults_total has the causes.',
    advice: ['Check `SIDECAR_BASE_URL`, DNS, firewall and proxy from this machine.', CHECK],
  }),
  BearerSidecarCallsIntercepted: critical('upstream', 5, {
    where: 'network',
    condition: all(ratio(INTERCEPTED, ATTEMPTS, 5, 0.1), increase(INTERCEPTED, 5, LEAST_FAILURES)),
    headline: 'A firewall or proxy refuses {share} of the attempts',
    description:
      'Responses that a firewall or proxy between here and the partner has made: 407, or a page of its own. The partner does not see these calls.',
    advice: [
      'Give the team of the firewall or proxy the time, the path and the status of a call under Recent calls, and ask it to let these calls pass.',
    ],
  }),
  BearerSidecarForeignResponses: critical('upstream', 2, {
    where: 'partner',
    // As BearerSidecarRequestsFailing: these requests failed too, and their status does not show it.
    condition: all(ratio(FOREIGN, RESPONSES, 5, 0.1), increase(FOREIGN, 5, LEAST_FAILURES)),
    headline: '{share} of the responses are none of the API',
    description:
      'More than 10 % are web pages that were not asked for, or redirects to another server, from operations that responded as an API before. Their status says success.',
    advice: [
      'Open the address of a call under Recent calls from this machine: a login page, a captive portal or a maintenance page responds to it.',
    ],
  }),
  BearerSidecarUpstreamErrors: warning('upstream', 10, {
    where: 'partner',
    condition: all(ratio(UPSTREAM_ERRORS, REQUESTS, 5, 0.1), increase(UPSTREAM_ERRORS, 5, LEAST_FAILURES)),
    headline: '{share} of the requests get 5xx from the upstream',
    description: 'The application got these responses after the retries that are allowed.',
    advice: ['Give the partner the time, the path and the status of a failed call under Recent calls.'],
  }),
  BearerSidecarUpstreamSlow: warning('upstream', 10, {
    where: 'partner',
    // The median: neither a few long reports nor quick refusals decide. Attempts without a connection are not slow but unreachable.
    condition: all(
      quantile(perRoute('upstream_duration_seconds'), 0.5, 5, 5),
      increase(perRoute('upstream_attempts_total', { outcome: 'ok|error_status|cut|client_left|timeout' }), 5, 5),
    ),
    headline: 'The upstream is slow: {duration} for a typical attempt',
    description:
      'Half of the attempts take longer than 5 s from the permit to the response head (the mean does, where metrics.buckets is few or none). The wait in the queue is not part of it.',
    advice: [
      'Give the partner the time, the path and the duration of some calls under Recent calls, and ask how long it has been slow.',
    ],
  }),
  BearerSidecarOutcomeUnknown: warning('upstream', 0, {
    condition: increase(perRoute('unknown_outcomes_total'), 15, 0),
    headline: 'Calls with an unknown outcome: {count}',
    description:
      'Calls that are not idempotent were sent and got no response: each may have been carried out. Ask the partner before they are repeated.',
    advice: [
      'Ask the partner whether the calls marked under Recent calls were carried out, before the application repeats them.',
    ],
  }),
  BearerSidecarResponsesCut: warning('upstream', 5, {
    condition: all(increase(CUT, 10, 5), ratio(CUT, REQUESTS, 10, 0.01)),
    headline: 'The upstream cut off {count} responses',
    description:
      'In ten minutes. The application received a part of each response, then its connection was closed. They are counted with the status of the upstream, mostly 200.',
    advice: ['Compare `SIDECAR_BODY_IDLE_TIMEOUT_MS` with the pauses within responses of the partner.'],
  }),
  BearerSidecarRetryBudgetExhausted: warning('upstream', 10, {
    // One burst counts for five minutes: the alert needs a fault that lasts.
    condition: increase(ofProcess('retry_budget_exhausted_total'), 5, 0),
    headline: 'Failed attempts are not repeated: the retry budget is used up',
    description: 'So many attempts fail that the retry budget is used up: failed attempts are not repeated.',
    advice: ['Failed attempts are not repeated while so many fail; see the causes above.'],
  }),
  BearerSidecarReloadFailed: warning('process', 0, {
    condition: { form: 'gauge', of: ofProcess('config_reload_failed'), above: 0 },
    headline: 'The changed configuration is not in use',
    description:
      'It is invalid or needs a restart; the previous configuration stays active as a whole. The log and /status have the reason.',
    advice: ['Correct the configuration as its last reload says, then send SIGHUP.'],
  }),
  BearerSidecarUnknownCallsNotRecorded: warning('process', 0, {
    condition: increase(ofProcess('unknown_call_write_errors_total'), 15, 0),
    headline: 'Calls cannot be recorded in `unknownCalls.file`',
    description:
      'Calls that are not idempotent are sent without a record, or refused with UNKNOWN_CALLS_NOT_RECORDED (unknownCalls.onWriteError). /status has the error code while it lasts.',
    advice: ['See `degraded` in `/status`: free disk space, or give back the folder of `unknownCalls.file`.'],
  }),
  BearerSidecarStateFileNotWritten: warning('process', 0, {
    condition: increase(ofProcess('state_file_write_errors_total'), 15, 0),
    headline: '`throttle.stateFile` cannot be written',
    description:
      'Learned limits and the counts of throttle.limits end with the process: after a restart a limit per day or month counts from an older state. The log has the error code.',
    advice: ['Free disk space, or give back the folder of `throttle.stateFile`: it is written again every 10 s.'],
  }),
  BearerSidecarFleetDisconnected: warning('fleet', 5, {
    condition: {
      form: 'unless',
      condition: { form: 'gauge', of: ofProcess('fleet_connected'), below: 1 },
      unless: { form: 'gauge', of: ofProcess('fleet_degraded'), above: 0 },
    },
    headline: 'The fleet is not connected; this replica works alone',
    description:
      'Redis is not reachable, or cannot be used as it is. The replica continues with its share of the last known rate and a token of its own.',
    advice: ['Check `SIDECAR_REDIS_URL` and that Redis can be reached; nothing else depends on it.'],
  }),
  BearerSidecarFleetDegraded: warning('fleet', 5, {
    condition: { form: 'gauge', of: ofProcess('fleet_degraded'), above: 0 },
    headline: 'Redis replies too late; this replica works alone',
    description:
      'Most replies come after fleet.timeoutMs. The replica continues with its share of the last known rate and a token of its own, as without Redis; /status has the latency.',
    advice: ['Compare the latency of Redis with `fleet.timeoutMs`.'],
  }),
} satisfies Readonly<Record<string, Alert>>;

export type AlertName = keyof typeof ALERTS;

export const ALERT_NAMES = Object.keys(ALERTS) as readonly AlertName[];

/** @returns its path in this repository */
export function runbookOf(alert: string): string {
  return `docs/runbooks.md#${alert.toLowerCase()}`;
}
