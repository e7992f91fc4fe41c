/**
 * The thresholds and windows of the alerts in deploy/prometheus, for the verdict of the status page (pure). A test compares both.
 * active-alerts.ts applies them to the counters of alert-counters.ts.
 */

const MINUTE_MS = 60_000;

export type AlertSeverity = 'critical' | 'warning';

/** One alert. Names that end in `Ms` are windows in milliseconds, all others of `limits` are thresholds: the alert holds above them. */
export interface AlertRule {
  readonly alert: string;
  readonly severity: AlertSeverity;
  /** How long the condition must last before Prometheus sends the alert; the page shows it from its first second. */
  readonly forMs: number;
  readonly limits: Readonly<Record<string, number>>;
}

/** Every alert whose condition one sidecar can see. */
export const ALERT_RULES = {
  requestsFailing: {
    alert: 'BearerSidecarRequestsFailing',
    severity: 'critical',
    forMs: 5 * MINUTE_MS,
    limits: { windowMs: 5 * MINUTE_MS, share: 0.1, perSecond: 0.009 },
  },
  tokenMissing: {
    alert: 'BearerSidecarTokenMissing',
    severity: 'critical',
    forMs: 2 * MINUTE_MS,
    limits: {},
  },
  clientRejected: {
    alert: 'BearerSidecarClientRejected',
    severity: 'critical',
    forMs: 3 * MINUTE_MS,
    limits: { windowMs: 3 * MINUTE_MS, rejections: 0 },
  },
  tokenExpiring: {
    alert: 'BearerSidecarTokenExpiring',
    severity: 'critical',
    forMs: MINUTE_MS,
    limits: { failures: 0, failingBelowSeconds: 300, unchangedBelowSeconds: 120, unchangedMs: 12 * MINUTE_MS },
  },
  upstreamUnreachable: {
    alert: 'BearerSidecarUpstreamUnreachable',
    severity: 'critical',
    forMs: 3 * MINUTE_MS,
    limits: { windowMs: 5 * MINUTE_MS, share: 0.5, attempts: 5 },
  },
  upstreamErrors: {
    alert: 'BearerSidecarUpstreamErrors',
    severity: 'warning',
    forMs: 10 * MINUTE_MS,
    limits: { windowMs: 5 * MINUTE_MS, share: 0.1, perSecond: 0.009 },
  },
  tokenNotAccepted: {
    alert: 'BearerSidecarTokenNotAccepted',
    severity: 'warning',
    forMs: 10 * MINUTE_MS,
    limits: { windowMs: 5 * MINUTE_MS, share: 0.05 },
  },
  requestsShed: {
    alert: 'BearerSidecarRequestsShed',
    severity: 'warning',
    forMs: 5 * MINUTE_MS,
    limits: { windowMs: 5 * MINUTE_MS, share: 0.01 },
  },
  queueSaturated: {
    alert: 'BearerSidecarQueueSaturated',
    severity: 'warning',
    forMs: 2 * MINUTE_MS,
    limits: { share: 0.8 },
  },
  queueSlow: {
    alert: 'BearerSidecarQueueSlow',
    severity: 'warning',
    forMs: 10 * MINUTE_MS,
    limits: { windowMs: 5 * MINUTE_MS, seconds: 10 },
  },
  paused: {
    alert: 'BearerSidecarPaused',
    severity: 'warning',
    forMs: 5 * MINUTE_MS,
    limits: { windowMs: 10 * MINUTE_MS, share: 0.9 },
  },
  rateLimited: {
    alert: 'BearerSidecarRateLimited',
    severity: 'warning',
    forMs: 10 * MINUTE_MS,
    limits: { windowMs: 5 * MINUTE_MS, share: 0.1, countWindowMs: 10 * MINUTE_MS, count: 5 },
  },
  responsesCut: {
    alert: 'BearerSidecarResponsesCut',
    severity: 'warning',
    forMs: 5 * MINUTE_MS,
    limits: { windowMs: 10 * MINUTE_MS, count: 5, share: 0.01 },
  },
  retryBudgetExhausted: {
    alert: 'BearerSidecarRetryBudgetExhausted',
    severity: 'warning',
    forMs: 10 * MINUTE_MS,
    limits: { windowMs: 5 * MINUTE_MS, count: 0 },
  },
  scopeMissing: {
    alert: 'BearerSidecarScopeMissing',
    severity: 'warning',
    forMs: 15 * MINUTE_MS,
    limits: { missing: 0, windowMs: 10 * MINUTE_MS, refusals: 0 },
  },
  tokenEndpointFailing: {
    alert: 'BearerSidecarTokenEndpointFailing',
    severity: 'warning',
    forMs: 5 * MINUTE_MS,
    limits: { failures: 0 },
  },
  rotationFailing: {
    alert: 'BearerSidecarRotationFailing',
    severity: 'warning',
    forMs: 0,
    limits: { windowMs: 15 * MINUTE_MS, failures: 0 },
  },
  reloadFailed: {
    alert: 'BearerSidecarReloadFailed',
    severity: 'warning',
    forMs: 0,
    limits: { windowMs: 15 * MINUTE_MS, failures: 0 },
  },
  fleetDisconnected: {
    alert: 'BearerSidecarFleetDisconnected',
    severity: 'warning',
    forMs: 5 * MINUTE_MS,
    limits: {},
  },
  fleetDegraded: {
    alert: 'BearerSidecarFleetDegraded',
    severity: 'warning',
    forMs: 5 * MINUTE_MS,
    limits: {},
  },
} as const satisfies Readonly<Record<string, AlertRule>>;

export type AlertId = keyof typeof ALERT_RULES;

/** As in Prometheus. */
export type AlertName = (typeof ALERT_RULES)[AlertId]['alert'];

/** Alerts whose condition the page cannot see: the process is away or stalls, or /status reports it in `degraded`. */
export const ALERTS_OUTSIDE_PAGE = [
  'BearerSidecarDown',
  'BearerSidecarRestarting',
  'BearerSidecarEventLoopStalled',
  'BearerSidecarFileDescriptorsLow',
  'BearerSidecarLogLinesDropped',
] as const;
