/** What /status is made from and what it says, as types alone. Instants are ISO 8601, durations seconds, what is unknown or unlimited null. */
import type { FleetConnectionState } from '../../fleet/redis/connection-health.ts';
import type { LogDeliveryProblem } from '../../telemetry/events.ts';
import type { FleetQuotaState, LearnedLimit, ThrottleState } from '../../throttle/throttle.ts';
import type { TokenState } from '../../token/token.ts';
import type { ConfigurationState, ConfigurationStatus } from './configuration.ts';

/** Everything that the admin port tells about. */
export interface StatusInputs {
  readonly version: string;
  readonly uptimeMs: number;
  readonly draining: boolean;
  /** At least one; in the order of the configuration. */
  readonly tokens: readonly TokenState[];
  /** At least one; in the order of the configuration. */
  readonly throttles: readonly ThrottleState[];
  /** Undefined: not available. */
  readonly listener?: ListenerState | undefined;
  /** Undefined without one. */
  readonly fleet?: FleetConnectionState | undefined;
  /** Routes whose upstream asked for a scope that the token does not have. Default: none. */
  readonly scopeRefusals?: readonly ScopeRefusals[];
  /** Undefined: nobody knows when it was loaded. */
  readonly configuration?: ConfigurationState | undefined;
  /** What keeps log lines from their destination. Default: nothing. */
  readonly logTrouble?: LogDeliveryProblem | undefined;
}

/** What the proxy port holds now, and at most: what the configuration allows, or less where the machine gives less. */
export interface ListenerState {
  /** Of clients. */
  readonly connections: number;
  readonly connectionsLimit: number;
  /** Under way, those that wait included. */
  readonly requests: number;
  readonly requestsLimit: number;
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
    /** Request bodies that are being read. */
    readonly readingBodies: number;
    /** Request bodies that stopped coming, and whose places for reading went to other requests. */
    readonly stalledBodies: number;
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
  /** What the proxy port holds, and may hold. */
  readonly listener: {
    readonly connections: number;
    readonly connectionsLimit: number;
    readonly requests: number;
    /** Null where the configuration alone limits them. */
    readonly requestsLimit: number | null;
  } | null;
  readonly insufficientScope: readonly {
    readonly route: string;
    readonly count: number;
    readonly lastAt: string;
    readonly needed: string | null;
  }[];
  /** What replicas share over Redis; null without one. */
  readonly fleet: { readonly connected: boolean; readonly fault: string | null; readonly since: string } | null;
  /** When the one in force was loaded, and what came of the last attempt to load it again. */
  readonly configuration: ConfigurationStatus | null;
}
