/** The gauges: states of tokens and throttles, read at a scrape only. Counters and histograms are in catalogue.ts. */
import { Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import type { LearnedLimit, ThrottleState } from '../../throttle/throttle.ts';
import type { RefusalProposal } from '../../throttle/refusal-evidence/refusal-proposal.ts';
import type { TokenState } from '../../token/token.ts';
import { SUSPECT_STATUSES } from '../events.ts';
import { METRIC_PREFIX } from './catalogue.ts';

/** The part of a token's state that the gauges show. */
export type TokenSnapshot = Pick<TokenState, 'credential' | 'expiresWallAt' | 'consecutiveFailures' | 'missingScopes'>;

/** The part of a throttle's state that the gauges show. */
export interface ThrottleSnapshot extends Pick<
  ThrottleState,
  'route' | 'rate' | 'pausedMs' | 'queued' | 'queueMax' | 'inFlight' | 'inFlightLimit'
> {
  readonly refusalProposals?: readonly Pick<RefusalProposal, 'status'>[] | undefined;
  readonly learned?: Pick<LearnedLimit, 'limit' | 'windowMs' | 'confidence'> | undefined;
}

const CONFIDENCE_VALUES = { none: 0, low: 0.5, high: 1 } as const;

/** Sets every gauge from these states. */
export type UpdateGauges = (tokens: readonly TokenSnapshot[], throttles: readonly ThrottleSnapshot[]) => void;

/** Registers the gauges and sets `build_info`. */
export function createGauges(registry: Registry, version: string): UpdateGauges {
  const gauge: CreateGauge = (name, help, label) =>
    new Gauge({ name: `${METRIC_PREFIX}${name}`, help, labelNames: [label], registers: [registry] });
  gauge('build_info', 'The running version.', 'version').set({ version }, 1);
  const rate = gauge('permit_rate', 'Permits per second; +Inf while no limit is applied.', 'route');
  const paused = gauge('paused', '1 while paused: no new attempt may start.', 'route');
  const queueDepth = gauge('queue_depth', 'Requests waiting in the queue.', 'route');
  const queueLimit = gauge('queue_limit', 'Most requests that may wait in the queue.', 'route');
  const inFlight = gauge('in_flight', 'Attempts in flight.', 'route');
  const inFlightLimit = gauge('in_flight_limit', 'Most attempts that may be in flight now.', 'route');
  const proposals = createProposalGauge(registry);
  const limits = createLimitGauges(gauge);
  const expiry = gauge('token_expiry_timestamp_seconds', 'Expiry of the held token, Unix time.', 'credential');
  const failures = gauge('token_endpoint_failures', 'Consecutive failures of the token endpoint.', 'credential');
  const missing = gauge('token_scopes_missing', 'Scopes requested and not granted to the held token.', 'credential');

  return (tokens, throttles) => {
    for (const { route, ...state } of throttles) {
      rate.set({ route }, state.rate);
      paused.set({ route }, state.pausedMs > 0 ? 1 : 0);
      queueDepth.set({ route }, state.queued);
      queueLimit.set({ route }, state.queueMax);
      inFlight.set({ route }, state.inFlight);
      inFlightLimit.set({ route }, state.inFlightLimit);
    }
    proposals(throttles);
    limits(throttles);
    // Removes the series of a credential that holds no token any more.
    expiry.reset();
    for (const { credential, expiresWallAt, consecutiveFailures, missingScopes } of tokens) {
      failures.set({ credential }, consecutiveFailures);
      missing.set({ credential }, missingScopes.length);
      if (expiresWallAt !== undefined) expiry.set({ credential }, expiresWallAt / 1000);
    }
  };
}

type CreateGauge = (name: string, help: string, label: string) => Gauge;

function createProposalGauge(registry: Registry): (throttles: readonly ThrottleSnapshot[]) => void {
  const proposal = new Gauge({
    name: `${METRIC_PREFIX}refusal_proposal`,
    help: '1 while the evidence says that bare responses with this status are a rate limit; /status has the setting.',
    labelNames: ['route', 'status'],
    registers: [registry],
  });
  return (throttles) => {
    for (const { route, refusalProposals = [] } of throttles)
      for (const status of SUSPECT_STATUSES)
        proposal.set({ route, status }, refusalProposals.some((proposed) => proposed.status === status) ? 1 : 0);
  };
}

function createLimitGauges(gauge: CreateGauge): (throttles: readonly ThrottleSnapshot[]) => void {
  const limit = gauge('inferred_limit', 'Learned limit of the upstream: calls per window.', 'route');
  const window = gauge('inferred_window_seconds', 'Length of the window of the learned limit.', 'route');
  const confidence = gauge('limit_confidence', 'Confidence in the learned limit: 0 none, 0.5 low, 1 high.', 'route');
  return (throttles) => {
    // Removes the series of a limit that is no longer inferred.
    limit.reset();
    window.reset();
    for (const { route, learned } of throttles) {
      confidence.set({ route }, CONFIDENCE_VALUES[learned?.confidence ?? 'none']);
      if (learned?.limit !== undefined) limit.set({ route }, learned.limit);
      if (learned?.windowMs !== undefined) window.set({ route }, learned.windowMs / 1000);
    }
  };
}
