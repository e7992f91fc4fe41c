/**
 * The events of the sidecar: one closed union that every part may emit, and that log, metrics, traces and the status page observe.
 * Parts never import a metrics or logging library. No event holds a token, a secret or a query string.
 */
/** What a rate limit counts. */
export const LIMIT_SCOPES = ['operation', 'route'] as const;
export type LimitScope = (typeof LIMIT_SCOPES)[number];

/** The statuses that may be a rate limit and that no setting names. */
export const SUSPECT_STATUSES = [403, 420, 503, 509, 529] as const;
export type SuspectStatus = (typeof SUSPECT_STATUSES)[number];

export const ATTEMPT_OUTCOMES = [
  'ok',
  'rate_limited',
  'unauthorized',
  'error_status',
  /** The response broke off after its head. */
  'cut',
  'client_left',
  /** No response: the connection broke, or the response was not valid HTTP. */
  'reset',
  'timeout',
  'unreachable',
] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** Why an attempt brought no whole response of the upstream, when the sidecar did not end it itself. */
export const FAULT_CAUSES = [
  'dns',
  'connection_refused',
  'connect_timeout',
  'unroutable',
  /** The connection broke while it was opened: the upstream has no byte of the request. */
  'reset_before_sent',
  /** The connection broke after the request had begun: the upstream may have carried it out. */
  'reset_after_sent',
  'no_response_in_time',
  /** The response broke off, or stopped, after its head. */
  'response_cut',
  'protocol',
  'tls',
  'certificate_expired',
  /** One of the two clocks may be wrong. */
  'certificate_not_yet_valid',
  'certificate_untrusted',
  'certificate_wrong_host',
  /** The upstream does not accept the client's certificate, or misses one. */
  'client_certificate',
  'egress_proxy',
  'beyond_egress_proxy',
  'intercepted',
  'other',
] as const;
export type FaultCause = (typeof FAULT_CAUSES)[number];

/** Who sends responses that are none of the API, although their status says success. */
export type ForeignCause = 'foreign_network' | 'foreign_partner';

/** Which side cut off a response that had begun; `upstream` also after a timeout or a protocol error in its body. */
export const CUT_BY = ['upstream', 'sidecar'] as const;
export type CutBy = (typeof CUT_BY)[number];

export const RETRY_REASONS = ['rate_limited', 'unauthorized', 'status', 'reset', 'connect'] as const;
export type RetryReason = (typeof RETRY_REASONS)[number];

export const QUEUE_REJECTION_REASONS = [
  'full',
  'timeout',
  'expected_wait',
  'quota',
  'draining',
  'client_left',
] as const;
export type QueueRejectionReason = (typeof QUEUE_REJECTION_REASONS)[number];

export const FLEET_COMMAND_OUTCOMES = ['ok', 'timeout', 'error'] as const;
export type FleetCommandOutcome = (typeof FLEET_COMMAND_OUTCOMES)[number];

export const RELOAD_OUTCOMES = ['ok', 'refused', 'invalid'] as const;
export type ReloadOutcome = (typeof RELOAD_OUTCOMES)[number];

export const TOKEN_OUTCOMES = ['ok', 'rejected', 'unavailable', 'malformed'] as const;
export type TokenOutcome = (typeof TOKEN_OUTCOMES)[number];

export const INVALIDATION_REASONS = ['unauthorized', 'rotated'] as const;
type InvalidationReason = (typeof INVALIDATION_REASONS)[number];

/**
 * What a rate-limit header field states, without the text that the upstream sent: a number as sent, a duration in seconds, a date as an RFC
 * 3339 text, the numbers of the members of a list, or the number of characters of a text that is none of these.
 */
export type StatedFieldValue =
  | number
  | string
  | readonly Readonly<Record<string, number>>[]
  | { readonly unparsed: number };

export type StatedFields = Readonly<Record<string, StatedFieldValue>>;

/** What the limits would have done to the calls that `throttle.mode: observe` let pass. */
export interface ObservedCalls {
  /** Epoch milliseconds: since the mode is in force, or since the last line in the log. */
  readonly since: number;
  readonly calls: number;
  readonly wouldWait: number;
  /** All together. */
  readonly wouldWaitMs: number;
  readonly wouldRefuse: number;
  /** `exact` as long as calls do not depend on responses · `unknown`: a limit that is not declared was learned before, or refused calls. */
  readonly certainty: 'exact' | 'unknown';
}

/** Each `detail` is fit for a log: it holds no token, no secret and no raw body. */
export type SidecarEvent =
  | {
      readonly kind: 'attempt-failed';
      readonly route: string;
      readonly outcome: AttemptOutcome;
      /** Undefined when the sidecar ended the attempt itself, or its response was a refusal by its head. */
      readonly cause: FaultCause | undefined;
      readonly detail: string;
      /** What helps. Default: not known here. */
      readonly advice?: string | undefined;
    }
  | { readonly kind: 'foreign-response'; readonly route: string; readonly cause: ForeignCause; readonly detail: string }
  | { readonly kind: 'retry'; readonly route: string; readonly reason: RetryReason }
  | { readonly kind: 'retry-budget-exhausted'; readonly route: string; readonly reason: RetryReason }
  | {
      readonly kind: 'rate-limited';
      readonly route: string;
      /** Which calls pause: those of one operation, or all of the route. */
      readonly scope: LimitScope;
      readonly status: number;
      readonly pauseMs: number;
      readonly stated: boolean;
      readonly fields: StatedFields;
    }
  /** A client took nothing of its response for `stalledMs`, while another request waited for the place that it held. */
  | { readonly kind: 'response-broken-off'; readonly route: string; readonly stalledMs: number }
  /** A bare response with a suspect status: no header states a limit, and no setting names it. */
  | { readonly kind: 'unconfigured-refusal'; readonly route: string; readonly status: SuspectStatus }
  /** Such a response is taken for a rate-limit refusal. */
  | { readonly kind: 'assumed-refusal'; readonly route: string }
  | {
      /** Calls are paced by such responses; emitted at most daily for each status. */
      readonly kind: 'limit-assumed';
      readonly route: string;
      readonly status: SuspectStatus;
      /** The line for the configuration file, and the same as a variable. */
      readonly setting: string;
      readonly variable: string;
    }
  | { readonly kind: 'queue-rejected'; readonly route: string; readonly reason: QueueRejectionReason }
  /** A call that is observed would have had its permit after such a wait, 0 included; or would have been rejected. */
  | { readonly kind: 'would-wait'; readonly route: string; readonly waitedMs: number }
  | { readonly kind: 'would-refuse'; readonly route: string }
  /** Emitted at most daily while calls are observed, and at the end of the mode. */
  | ({ readonly kind: 'calls-observed'; readonly route: string } & ObservedCalls)
  | {
      readonly kind: 'token-requested';
      readonly credential: string;
      /** The file that was read instead of a request. Default: a token request */
      readonly file?: string;
      readonly outcome: TokenOutcome;
      readonly durationMs: number;
      readonly detail?: string;
      readonly lifetimeMs?: number;
      /** When the next request is due. */
      readonly nextInMs?: number;
    }
  | { readonly kind: 'token-invalidated'; readonly credential: string; readonly reason: InvalidationReason }
  /** The upstream refused a new token, and the previous one is used (replication delay). */
  | { readonly kind: 'token-not-accepted-yet'; readonly credential: string }
  /** The upstream accepts a token that it had refused at first. `delayMs`: since its issue. */
  | { readonly kind: 'token-accepted-late'; readonly credential: string; readonly delayMs: number }
  /** A token was taken from a cache or from the fleet, without a token request. */
  | { readonly kind: 'token-found'; readonly credential: string; readonly from: string; readonly validForMs: number }
  | { readonly kind: 'token-circuit'; readonly credential: string; readonly phase: 'open' | 'closed' }
  /** Emitted when the set changes; empty when all requested scopes are granted again. */
  | { readonly kind: 'token-scopes-missing'; readonly credential: string; readonly missing: readonly string[] }
  | {
      readonly kind: 'credential-rotation';
      readonly credential: string;
      /** `refused`, `unreadable`: the previous credentials stay in use. */
      readonly outcome: 'taken' | 'refused' | 'unreadable';
      readonly detail?: string;
    }
  /** The upstream refused a request because the token lacks a scope (RFC 6750 §3.1). `needed`: undefined when it names none. */
  | { readonly kind: 'insufficient-scope'; readonly route: string; readonly needed: string | undefined }
  | {
      /** No token request was made, because another process has just failed with one. */
      readonly kind: 'token-not-asked';
      readonly credential: string;
      readonly from: string;
      readonly outcome: Exclude<TokenOutcome, 'ok'>;
      readonly detail: string;
      readonly nextInMs?: number;
    }
  | { readonly kind: 'fleet-joined'; readonly detail?: string }
  | { readonly kind: 'fleet-lost'; readonly detail: string }
  /** Redis is connected, and its replies are too late to be used. */
  | { readonly kind: 'fleet-degraded'; readonly detail: string }
  | { readonly kind: 'fleet-command'; readonly outcome: FleetCommandOutcome }
  /** The configuration was applied as a whole or not at all. `lines`: what has changed, which keys need a restart, or what is invalid. */
  | { readonly kind: 'configuration-read'; readonly outcome: ReloadOutcome; readonly lines: readonly string[] }
  | {
      /** A record of a call could not be written, or can be again. `code`: the system's, of a failure. */
      readonly kind: 'unknown-calls-file';
      readonly phase: 'fails' | 'fails-still' | 'works';
      readonly code: string | undefined;
    }
  /** What the upstream says in a 401. */
  | { readonly kind: 'unauthorized'; readonly route: string; readonly detail: string }
  /** `skewMs`: how far the clock of a response's origin is ahead of ours. `from`: its host, or the route. */
  | { readonly kind: 'clock-compared'; readonly from: string; readonly skewMs: number }
  /** A write of `throttle.stateFile` failed; the first one has a warning. */
  | { readonly kind: 'state-file-not-written' }
  | { readonly kind: 'authorization-overridden' }
  | { readonly kind: 'listening'; readonly server: 'proxy' | 'admin'; readonly url: string }
  | { readonly kind: 'draining'; readonly inFlight: number; readonly queued: number; readonly drainMs: number }
  | { readonly kind: 'stopped'; readonly cut: number }
  | { readonly kind: 'warning'; readonly message: string };

/** Receives events. Must not throw and must not block. */
export type EventObserver = (event: SidecarEvent) => void;

/** From the most verbose level to none. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/** Why log lines do not reach their destination at the moment. */
export interface LogDeliveryProblem {
  /** Node's code of the last write error; undefined: no error, the reader is too slow. */
  readonly code: string | undefined;
  /** Lines dropped since the last notice. */
  readonly lostLines: number;
}
