/** The gauges: states of tokens, throttles and the fleet, read at a scrape and by the ring of samples. */
import type { Registry } from 'prom-client';
import type { DeclaredLimitState } from '../../throttle/declared/declared-limit.ts';
import type { LaneState, LearnedLimit, ThrottleState } from '../../throttle/throttle.ts';
import type { TokenState } from '../../token/token.ts';
import type { ReloadOutcome } from '../events.ts';
import { expose, type Labels } from './series.ts';

export type TokenSnapshot = Pick<
  TokenState,
  'credential' | 'file' | 'expiresWallAt' | 'consecutiveFailures' | 'refreshTokenFault' | 'missingScopes'
>;

export interface ThrottleSnapshot extends Pick<
  ThrottleState,
  'route' | 'rate' | 'pausedMs' | 'queued' | 'queueMax' | 'inFlight' | 'inFlightLimit'
> {
  readonly learned?: Pick<LearnedLimit, 'limit' | 'windowMs' | 'confidence'> | undefined;
  readonly lanes?: readonly Pick<LaneState, 'pausedMs'>[] | undefined;
  readonly limits?: readonly Pick<DeclaredLimitState, 'name' | 'calls' | 'used' | 'usedUpAt'>[] | undefined;
}

export interface FleetSnapshot {
  readonly connected: boolean;
  readonly degraded: boolean;
  /** Replicas that share a quota, this one included, by throttle. */
  readonly quotas: readonly { readonly route: string; readonly replicas: number }[];
}

export interface GaugeStates {
  readonly version: string;
  /** Undefined before the first reload. */
  readonly lastReload?: ReloadOutcome | undefined;
  readonly tokens: readonly TokenSnapshot[];
  readonly throttles: readonly ThrottleSnapshot[];
  readonly fleet: FleetSnapshot | undefined;
}

export interface GaugeReading {
  /** Without the prefix. */
  readonly metric: string;
  readonly labels: Labels;
  readonly value: number;
}

interface GaugeDefinition {
  readonly name: string;
  readonly help: string;
  /** A series without a value is absent. */
  readonly read: (states: GaugeStates) => readonly (readonly [labels: Labels, value: number | undefined])[];
}

/** Defines one series for each part that is listed with its labels. */
function per<T>(list: (states: GaugeStates) => readonly (readonly [labels: Labels, part: T])[]) {
  return (name: string, help: string, read: (part: T) => number | undefined): GaugeDefinition => {
    const readAll = (states: GaugeStates) => list(states).map(([labels, part]) => [labels, read(part)] as const);
    return { name, help, read: readAll };
  };
}

const perThrottle = per(({ throttles }) => throttles.map((throttle) => [{ route: throttle.route }, throttle]));
const perLimit = per(({ throttles }) =>
  throttles.flatMap(({ route, limits = [] }) => limits.map((limit) => [{ route, limit: limit.name }, limit] as const)),
);
const perToken = per(({ tokens }) => tokens.map((token) => [{ credential: token.credential }, token]));

const CONFIDENCE_VALUES = { none: 0, low: 0.5, high: 1 } as const;

const GAUGES: readonly GaugeDefinition[] = [
  { name: 'build_info', help: 'The running version.', read: ({ version }) => [[{ version }, 1]] },
  {
    name: 'config_reload_failed',
    help: '1 while the changed configuration is not in use: the last reload was refused or invalid.',
    read: ({ lastReload = 'ok' }) => [[{}, lastReload === 'ok' ? 0 : 1]],
  },
  perThrottle('permit_rate', 'Permits per second; +Inf while no limit is applied.', ({ rate }) => rate),
  perThrottle('paused', '1 while paused: no new attempt may start.', ({ pausedMs }) => (pausedMs > 0 ? 1 : 0)),
  perThrottle('queue_depth', 'Requests waiting in the queue.', ({ queued }) => queued),
  perThrottle('queue_limit', 'Most requests that may wait in the queue.', ({ queueMax }) => queueMax),
  perThrottle('in_flight', 'Attempts in flight.', ({ inFlight }) => inFlight),
  perThrottle('in_flight_limit', 'Most attempts that may be in flight now.', ({ inFlightLimit }) => inFlightLimit),
  perThrottle('inferred_limit', 'Learned limit of the upstream: calls per window.', ({ learned }) => learned?.limit),
  perThrottle('inferred_window_seconds', 'Length of the window of the learned limit.', ({ learned }) =>
    toSeconds(learned?.windowMs),
  ),
  perThrottle(
    'limit_confidence',
    'Confidence in the learned limit: 0 none, 0.5 low, 1 high.',
    ({ learned }) => CONFIDENCE_VALUES[learned?.confidence ?? 'none'],
  ),
  perThrottle('lanes', 'Operations with a learned limit of their own.', ({ lanes = [] }) => lanes.length),
  perThrottle(
    'lanes_paused',
    'Operations with a limit of their own that are paused.',
    ({ lanes = [] }) => lanes.filter(({ pausedMs }) => pausedMs > 0).length,
  ),
  perLimit('declared_limit_calls', 'Calls that a limit of throttle.limits allows in its window.', ({ calls }) => calls),
  perLimit(
    'declared_limit_used',
    'Calls that count for a limit of throttle.limits now, of all replicas that share it.',
    ({ used }) => used,
  ),
  perLimit(
    'declared_limit_exhausted_timestamp_seconds',
    'When a limit of an hour or longer is used up at the pace of the last hour, Unix time; absent while it is not, at this pace.',
    ({ usedUpAt }) => (Number.isFinite(usedUpAt) ? toSeconds(usedUpAt) : undefined),
  ),
  perToken('token_expiry_timestamp_seconds', 'Expiry of the held token, Unix time.', ({ expiresWallAt }) =>
    toSeconds(expiresWallAt),
  ),
  perToken(
    'token_endpoint_failures',
    'Consecutive failures of the token endpoint.',
    // The alert on a missing token would take 0 without an expiry for one.
    ({ file, consecutiveFailures }) =>
      file === undefined || consecutiveFailures > 0 ? consecutiveFailures : undefined,
  ),
  perToken(
    'refresh_token_unkept',
    '1 while the next process cannot request a token, since no file keeps the newest refresh token.',
    ({ refreshTokenFault }) => (refreshTokenFault === undefined ? 0 : 1),
  ),
  perToken(
    'token_scopes_missing',
    'Scopes requested and not granted to the held token.',
    ({ missingScopes }) => missingScopes.length,
  ),
];

const FLEET_GAUGES: readonly GaugeDefinition[] = [
  {
    name: 'fleet_connected',
    help: '1 while the Redis of the fleet is connected and replies in time.',
    read: ({ fleet }) => [[{}, fleet?.connected === true ? 1 : 0]],
  },
  {
    name: 'fleet_degraded',
    help: '1 while the Redis of the fleet replies too late to be used.',
    read: ({ fleet }) => [[{}, fleet?.degraded === true ? 1 : 0]],
  },
  {
    name: 'fleet_replicas',
    help: 'Replicas that share the quota, this one included.',
    read: ({ fleet }) => (fleet?.quotas ?? []).map(({ route, replicas }) => [{ route }, replicas] as const),
  },
];

export function readGauges(states: GaugeStates): GaugeReading[] {
  return listGauges(states.fleet !== undefined).flatMap((gauge) => readGauge(gauge, states));
}

/** Registers the gauges. @param getStates what the values of a scrape are read from */
export function registerGauges(registry: Registry, hasFleet: boolean, getStates: () => GaugeStates): void {
  for (const gauge of listGauges(hasFleet)) expose(registry, 'gauge', gauge, () => readGauge(gauge, getStates()));
}

function listGauges(hasFleet: boolean): readonly GaugeDefinition[] {
  return hasFleet ? [...GAUGES, ...FLEET_GAUGES] : GAUGES;
}

function readGauge({ name, read }: GaugeDefinition, states: GaugeStates): GaugeReading[] {
  return read(states).flatMap(([labels, value]) => (value === undefined ? [] : [{ metric: name, labels, value }]));
}

function toSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}
