/**
 * The gauges of the contract's table: states of tokens and throttles, read at the moment of a scrape and never kept up
 * to date in between. Counters and histograms are in catalogue.ts.
 */
import { Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import { PREFIX } from './catalogue.ts';

/** What the gauges show of a token source. */
export interface TokenReading {
  readonly credential: string;
  /** Epoch milliseconds; undefined without a token. */
  readonly expiresWallAt: number | undefined;
  readonly consecutiveFailures: number;
}

/** What the gauges show of a throttle. */
export interface ThrottleReading {
  readonly route: string;
  /** Permits per second; Infinity while unpaced. */
  readonly rate: number;
  /** Milliseconds left of the pause; 0 when not paused. */
  readonly pausedMs: number;
  readonly queued: number;
  readonly inFlight: number;
}

/** Sets every gauge from these states. */
export type ShowStates = (tokens: readonly TokenReading[], throttles: readonly ThrottleReading[]) => void;

/** Registers the gauges; `build_info` is set for good. */
export function createGauges(registry: Registry, version: string): ShowStates {
  const gauge = (name: string, help: string, label: string) =>
    new Gauge({ name: `${PREFIX}${name}`, help, labelNames: [label], registers: [registry] });
  gauge('build_info', 'The version that runs.', 'version').set({ version }, 1);
  const rate = gauge('permit_rate', 'Permits per second; +Inf while unpaced.', 'route');
  const paused = gauge('paused', '1 while no new attempt may start.', 'route');
  const queueDepth = gauge('queue_depth', 'Requests that wait.', 'route');
  const inFlight = gauge('in_flight', 'Attempts under way.', 'route');
  const expiry = gauge('token_expiry_timestamp_seconds', 'End of the held token, Unix time.', 'credential');
  const failures = gauge('token_endpoint_failures', 'Failures of the token endpoint in a row.', 'credential');

  return (tokens, throttles) => {
    for (const { route, ...state } of throttles) {
      rate.set({ route }, state.rate);
      paused.set({ route }, state.pausedMs > 0 ? 1 : 0);
      queueDepth.set({ route }, state.queued);
      inFlight.set({ route }, state.inFlight);
    }
    // A token that is gone must not leave its expiry behind.
    expiry.reset();
    for (const { credential, expiresWallAt, consecutiveFailures } of tokens) {
      failures.set({ credential }, consecutiveFailures);
      if (expiresWallAt !== undefined) expiry.set({ credential }, expiresWallAt / 1000);
    }
  };
}
