/** What the parts of the sidecar state about themselves. No state holds a secret. */
import type { FleetConnectionState } from '../../fleet/redis/connection-health.ts';
import type { FaultCause, ForeignCause, LogDeliveryProblem, ReloadOutcome } from '../../telemetry/events.ts';
import type { RequestRecord } from '../../telemetry/request-record.ts';
import type { ThrottleState } from '../../throttle/throttle.ts';
import type { TokenState } from '../../token/token.ts';
import type { RouteTraffic } from '../samples/traffic.ts';

/** The states at one instant. */
export interface SidecarStates {
  readonly version: string;
  readonly pid?: number;
  readonly uptimeMs: number;
  readonly draining: boolean;
  readonly tokens: readonly TokenState[];
  readonly throttles: readonly ThrottleState[];
  readonly listener?: ListenerState | undefined;
  readonly fleet?: FleetConnectionState | undefined;
  /** Routes whose upstream asked for a scope that the token does not have. Default: none. */
  readonly insufficientScopes?: readonly InsufficientScopes[];
  /** Default: none. */
  readonly refusals?: readonly CountedRefusals[] | undefined;
  /** By more than 30 s. Default: none. */
  readonly clockSkews?: readonly ClockSkew[] | undefined;
  readonly configuration?: ConfigurationState | undefined;
  /** Why log lines do not reach their destination. Default: no problem. */
  readonly logTrouble?: LogDeliveryProblem | undefined;
  /** Why calls cannot be recorded: the system's error code. Default: they can be. */
  readonly unknownCallsFault?: string | undefined;
  /** Default: none. */
  readonly routes?: readonly RouteTraffic[] | undefined;
  /** The newest of each route. Default: not known. */
  readonly lastFailures?: readonly RecentCall[] | undefined;
  /** Newest first; undefined when they are not kept. */
  readonly recentCalls?: readonly RecentCall[] | undefined;
}

/** Connections and requests of the proxy port, with their limits: the configured ones, or lower ones set by the machine. */
export interface ListenerState {
  readonly connections: number;
  readonly connectionsLimit: number;
  /** In progress, queued ones included. */
  readonly requests: number;
  readonly requestsLimit: number;
}

/** A call of a client that has ended: method, path without query, result. No header field and no body. */
export interface RecentCall {
  readonly wallAt: number;
  readonly record: RequestRecord;
}

/** Requests that an upstream refused because the token lacks a scope (RFC 6750 §3.1). */
export interface InsufficientScopes {
  readonly route: string;
  readonly count: number;
  readonly wallAt: number;
  /** The scope that the last one named; undefined when it named none. */
  readonly needed: string | undefined;
}

/** Rate-limit refusals of one status since the start. */
export interface CountedRefusals {
  /** The name of the throttle. */
  readonly route: string;
  readonly status: number;
  readonly count: number;
  readonly firstWallAt: number;
  readonly lastWallAt: number;
}

/** A clock that differs from ours. */
export interface ClockSkew {
  readonly from: string;
  /** How far it is ahead of ours; negative: behind. */
  readonly skewMs: number;
}

export interface LastFault {
  readonly route: string;
  readonly cause: FaultCause | ForeignCause | 'unauthorized';
  readonly detail: string;
  /** What helps. Default: the cause says it. */
  readonly advice?: string | undefined;
  readonly wallAt: number;
}

/** The active configuration and the last reload. */
export interface ConfigurationState {
  readonly loadedWallAt: number;
  readonly isReloadable: boolean;
  readonly lastReload:
    | {
        readonly wallAt: number;
        readonly outcome: ReloadOutcome;
        /** What has changed, which keys need a restart, or what is invalid; without secrets. */
        readonly lines: readonly string[];
      }
    | undefined;
}

/** One active setting; secrets are masked. */
export interface StatusPageSetting {
  /** As in a configuration file; in a list with its index: `routes[1].throttle.rate`. */
  readonly key: string;
  readonly value: string;
  /** `default`, `file PATH`, `environment VARIABLE`. */
  readonly origin: string;
}
