/**
 * The JSON of /status, as pure functions of the states of the parts. Instants are ISO 8601, durations
 * seconds, what is unknown or unlimited null. No state holds a secret, so nothing here can show one.
 */
import type { FleetState } from '../fleet/condition.ts';
import type { FleetQuotaState, LearnedLimit, ThrottleState } from '../throttle/throttle.ts';
import type { TokenState } from '../token/token.ts';
import { describeConfiguration, type ConfigurationState } from './configuration.ts';
import { describeDegradation } from './degradation.ts';

/** Everything that the admin port tells about. */
export interface AdminStates {
  readonly version: string;
  readonly uptimeMs: number;
  readonly draining: boolean;
  /** At least one; in the order of the configuration. */
  readonly tokens: readonly TokenState[];
  /** At least one; in the order of the configuration. */
  readonly throttles: readonly ThrottleState[];
  /** Undefined without one. */
  readonly fleet?: FleetState | undefined;
  /** Routes whose upstream asked for a scope that the token does not have. Default: none. */
  readonly scopeRefusals?: readonly ScopeRefusals[];
  /** Undefined: nobody knows when it was loaded. */
  readonly configuration?: ConfigurationState | undefined;
}

/** How often an upstream refused a request for want of a scope (RFC 6750 §3.1). */
export interface ScopeRefusals {
  readonly route: string;
  readonly count: number;
  /** Of the last one, epoch milliseconds. */
  readonly wallAt: number;
  /** What the last one said is needed; undefined when it did not. */
  readonly needed: string | undefined;
}

export interface Status {
  readonly version: string;
  readonly uptimeSeconds: number;
  readonly draining: boolean;
  /** What works and yet needs somebody to look at it, in words; empty when all is well. */
  readonly degraded: readonly string[];
  /** Of the first credential, `default` where the top-level settings are one. */
  readonly token: {
    readonly credential: string;
    readonly status: TokenState['status'];
    /** Rises with every token obtained; 0 before the first. */
    readonly serial: number;
    readonly scope: string | null;
    readonly expiresAt: string | null;
    readonly validForSeconds: number | null;
    /** Asked for and not granted. */
    readonly missingScopes: readonly string[];
    /** What is wrong with the newest credentials while older ones are in use. */
    readonly credentialFault: { readonly detail: string; readonly since: string } | null;
    /** Of the token endpoint: closed, open or half-open. */
    readonly circuit: TokenState['circuit'];
    readonly consecutiveFailures: number;
    readonly lastFailure: { readonly outcome: string; readonly detail: string; readonly at: string } | null;
    readonly nextRequestInSeconds: number | null;
  };
  /** Of the first route. */
  readonly throttle: {
    readonly route: string;
    readonly mode: ThrottleState['mode'];
    /** Permits per second; null while unpaced. */
    readonly rate: number | null;
    readonly unpaced: boolean;
    readonly pausedSeconds: number | null;
    readonly queued: number;
    readonly queuedByPriority: ThrottleState['queuedByPriority'];
    readonly inFlight: number;
    readonly inFlightLimit: number | null;
    readonly streams: number;
    /** What `auto` believes of the upstream's limit; null with a configured rate. */
    readonly learned: {
      readonly rate: number | null;
      readonly limit: number | null;
      readonly windowSeconds: number | null;
      readonly kind: string;
      readonly confidence: LearnedLimit['confidence'];
      readonly since: string;
    } | null;
    /** The quota that replicas share; null without a fleet. */
    readonly fleet: {
      /** `unknown`: as if there were no fleet. `apart`: with a part of the last known rate. */
      readonly state: FleetQuotaState['state'];
      readonly leader: boolean;
      readonly replicas: number;
      /** Of all together, permits per second; null while unpaced. */
      readonly rate: number | null;
      /** Permits given ahead. */
      readonly leased: number;
    } | null;
    /** Newest first. */
    readonly recentSignals: readonly {
      readonly at: string;
      readonly status: number;
      readonly pauseSeconds: number | null;
      /** True when the upstream stated the wait itself. */
      readonly stated: boolean;
      readonly fields: Readonly<Record<string, string>>;
    }[];
  };
  /** Of every credential. */
  readonly tokens: readonly Status['token'][];
  /** Of every throttle. */
  readonly throttles: readonly Status['throttle'][];
  readonly insufficientScope: readonly {
    readonly route: string;
    readonly count: number;
    readonly lastAt: string;
    readonly needed: string | null;
  }[];
  /** What replicas share over Redis; null without one. */
  readonly fleet: { readonly connected: boolean; readonly fault: string | null; readonly since: string } | null;
  /** When the one in force was loaded, and what came of the last attempt to load it again. */
  readonly configuration: ReturnType<typeof describeConfiguration>;
}

/** The body of /status. */
export function describeStatus(states: AdminStates): Status {
  const { version, uptimeMs, draining, fleet, scopeRefusals = [] } = states;
  const tokens = states.tokens.map(describeToken);
  const throttles = states.throttles.map(describeThrottle);
  return {
    version,
    uptimeSeconds: Math.floor(uptimeMs / 1000),
    draining,
    degraded: describeDegradation(states),
    token: first(tokens),
    throttle: first(throttles),
    tokens,
    throttles,
    insufficientScope: scopeRefusals.map(({ route, count, wallAt, needed }) => ({
      route,
      count,
      lastAt: isoTime(wallAt),
      needed: needed ?? null,
    })),
    fleet: describeFleet(fleet),
    configuration: describeConfiguration(states.configuration),
  };
}

function first<T>(parts: readonly T[]): T {
  const [part] = parts;
  if (part === undefined) throw new Error('there is no sidecar without a credential and a route');
  return part;
}

function describeToken(token: TokenState): Status['token'] {
  const { credential, status, serial, scope, consecutiveFailures, lastFailure, credentialFault } = token;
  return {
    credential,
    status,
    serial,
    scope: scope ?? null,
    expiresAt: token.expiresWallAt === undefined ? null : isoTime(token.expiresWallAt),
    validForSeconds: secondsOrNull(token.validForMs),
    missingScopes: token.missingScopes,
    credentialFault:
      credentialFault === undefined ? null : { detail: credentialFault.detail, since: isoTime(credentialFault.wallAt) },
    circuit: token.circuit,
    consecutiveFailures,
    lastFailure:
      lastFailure === undefined
        ? null
        : { outcome: lastFailure.outcome, detail: lastFailure.detail, at: isoTime(lastFailure.wallAt) },
    nextRequestInSeconds: secondsOrNull(token.nextRequestInMs),
  };
}

function describeThrottle(throttle: ThrottleState): Status['throttle'] {
  const { route, mode, rate, queued, queuedByPriority, inFlight, streams } = throttle;
  return {
    route,
    mode,
    rate: finiteOrNull(rate),
    unpaced: rate === Infinity,
    pausedSeconds: secondsOrNull(throttle.pausedMs),
    queued,
    queuedByPriority,
    inFlight,
    inFlightLimit: finiteOrNull(throttle.inFlightLimit),
    streams,
    learned: describeLearned(throttle.learned),
    fleet: describeQuota(throttle.fleet),
    recentSignals: throttle.recentSignals.map(({ wallAt, status, pauseMs, stated, fields }) => ({
      at: isoTime(wallAt),
      status,
      pauseSeconds: secondsOrNull(pauseMs),
      stated,
      fields,
    })),
  };
}

function describeLearned(learned: LearnedLimit | undefined): Status['throttle']['learned'] {
  if (learned === undefined) return null;
  return {
    rate: finiteOrNull(learned.rate),
    limit: learned.limit ?? null,
    windowSeconds: secondsOrNull(learned.windowMs),
    kind: learned.kind,
    confidence: learned.confidence,
    since: isoTime(learned.since),
  };
}

function describeQuota(fleet: FleetQuotaState | undefined): Status['throttle']['fleet'] {
  if (fleet === undefined) return null;
  const { state, isLeader, replicas, rate, leased } = fleet;
  return { state, leader: isLeader, replicas, rate: finiteOrNull(rate), leased };
}

function describeFleet(fleet: FleetState | undefined): Status['fleet'] {
  if (fleet === undefined) return null;
  return { connected: fleet.connected, fault: fleet.fault ?? null, since: isoTime(fleet.sinceWallAt) };
}

/** To the millisecond. */
function secondsOrNull(ms: number | undefined): number | null {
  return ms === undefined ? null : finiteOrNull(Math.round(ms) / 1000);
}

/** JSON has no Infinity. */
function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

function isoTime(wallAt: number): string {
  return new Date(wallAt).toISOString();
}
