/**
 * The gauges of the contract's table: states of tokens and throttles, read at the moment of a scrape and never kept up
 * to date in between. Counters and histograms are in catalogue.ts.
 */
import { Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import { METRIC_PREFIX } from './catalogue.ts';

/** What the gauges show of a token source. */
export interface TokenSnapshot {
  readonly credential: string;
  /** Epoch milliseconds; undefined without a token. */
  readonly expiresWallAt: number | undefined;
  readonly consecutiveFailures: number;
  /** Asked for and not granted. */
  readonly missingScopes: readonly string[];
}

/** What the gauges show of a throttle. */
export interface ThrottleSnapshot {
  readonly route: string;
  /** Permits per second; Infinity while unpaced. */
  readonly rate: number;
  /** Milliseconds left of the pause; 0 when not paused. */
  readonly pausedMs: number;
  readonly queued: number;
  /** How many may wait. */
  readonly queueMax: number;
  readonly inFlight: number;
  /** How many may be under way now; Infinity without a limit. */
  readonly inFlightLimit: number;
  /** What is inferred of the upstream's limit; absent with a configured rate. */
  readonly learned?: LimitSnapshot | undefined;
}

/** What the gauges show of an inferred limit. */
export interface LimitSnapshot {
  /** Absent while nothing is inferred. */
  readonly limit?: number | undefined;
  /** Milliseconds; absent while nothing is inferred, and for a limit that knows no window. */
  readonly windowMs?: number | undefined;
  readonly confidence: keyof typeof CONFIDENCE_VALUES;
}

const CONFIDENCE_VALUES = { none: 0, low: 0.5, high: 1 } as const;

/** Sets every gauge from these states. */
export type UpdateGauges = (tokens: readonly TokenSnapshot[], throttles: readonly ThrottleSnapshot[]) => void;

/** Registers the gauges; `build_info` is set for good. */
export function createGauges(registry: Registry, version: string): UpdateGauges {
  const gauge: CreateGauge = (name, help, label) =>
    new Gauge({ name: `${METRIC_PREFIX}${name}`, help, labelNames: [label], registers: [registry] });
  gauge('build_info', 'The version that runs.', 'version').set({ version }, 1);
  const rate = gauge('permit_rate', 'Permits per second; +Inf while unpaced.', 'route');
  const paused = gauge('paused', '1 while no new attempt may start.', 'route');
  const queueDepth = gauge('queue_depth', 'Requests that wait.', 'route');
  const queueLimit = gauge('queue_limit', 'Requests that may wait.', 'route');
  const inFlight = gauge('in_flight', 'Attempts under way.', 'route');
  const inFlightLimit = gauge('in_flight_limit', 'Attempts that may be under way now.', 'route');
  const limits = createLimitGauges(gauge);
  const expiry = gauge('token_expiry_timestamp_seconds', 'End of the held token, Unix time.', 'credential');
  const failures = gauge('token_endpoint_failures', 'Failures of the token endpoint in a row.', 'credential');
  const missing = gauge('token_scopes_missing', 'Scopes asked for and not granted to the held token.', 'credential');

  return (tokens, throttles) => {
    for (const { route, ...state } of throttles) {
      rate.set({ route }, state.rate);
      paused.set({ route }, state.pausedMs > 0 ? 1 : 0);
      queueDepth.set({ route }, state.queued);
      queueLimit.set({ route }, state.queueMax);
      inFlight.set({ route }, state.inFlight);
      inFlightLimit.set({ route }, state.inFlightLimit);
    }
    limits(throttles);
    // A token that is gone must not leave its expiry behind.
    expiry.reset();
    for (const { credential, expiresWallAt, consecutiveFailures, missingScopes } of tokens) {
      failures.set({ credential }, consecutiveFailures);
      missing.set({ credential }, missingScopes.length);
      if (expiresWallAt !== undefined) expiry.set({ credential }, expiresWallAt / 1000);
    }
  };
}

type CreateGauge = (name: string, help: string, label: string) => Gauge;

function createLimitGauges(gauge: CreateGauge): (throttles: readonly ThrottleSnapshot[]) => void {
  const limit = gauge('inferred_limit', 'Calls that the upstream is believed to allow in a window.', 'route');
  const window = gauge(
    'inferred_window_seconds',
    'Length of the window that the upstream is believed to count in.',
    'route',
  );
  const confidence = gauge('limit_confidence', 'How sure that is: 0 none, 0.5 low, 1 high.', 'route');
  return (throttles) => {
    // A limit that is believed no more must not be left behind.
    limit.reset();
    window.reset();
    for (const { route, learned } of throttles) {
      confidence.set({ route }, CONFIDENCE_VALUES[learned?.confidence ?? 'none']);
      if (learned?.limit !== undefined) limit.set({ route }, learned.limit);
      if (learned?.windowMs !== undefined) window.set({ route }, learned.windowMs / 1000);
    }
  };
}
