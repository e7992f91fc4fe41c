/** The inputs and the JSON of /status, as types. Instants are ISO 8601, durations seconds; null is unknown or unlimited. */
import type { FleetConnectionState } from '../../fleet/redis/connection-health.ts';
import type { LogDeliveryProblem, StatedFields } from '../../telemetry/events.ts';
import type { FleetQuotaState, LearnedLimit, ThrottleState } from '../../throttle/throttle.ts';
import type { TokenState } from '../../token/token.ts';
import type { ActiveAlert } from '../alerts/active-alerts.ts';
import type { AlertName, AlertSeverity } from '../alerts/alert-table.ts';
import type { Verdict } from '../verdict/verdict.ts';
import type { RecentCall } from '../history/recent-calls.ts';
import type { ConfigurationState, ConfigurationStatus } from './configuration.ts';

/** The states that the admin port shows. */
export interface StatusInputs {
  readonly version: string;
  /** The process id. Undefined: unknown. */
  readonly pid?: number;
  readonly uptimeMs: number;
  readonly draining: boolean;
  /** At least one; in the order of the configuration. */
  readonly tokens: readonly TokenState[];
  /** At least one; in the order of the configuration. */
  readonly throttles: readonly ThrottleState[];
  /** Undefined: not available. */
  readonly listener?: ListenerState | undefined;
  /** Undefined without a fleet. */
  readonly fleet?: FleetConnectionState | undefined;
  /** Routes whose upstream asked for a scope that the token does not have. Default: none. */
  readonly scopeRefusals?: readonly ScopeRefusals[];
  /** Undefined when unknown. */
  readonly configuration?: ConfigurationState | undefined;
  /** Why log lines do not reach their destination. Default: no problem. */
  readonly logTrouble?: LogDeliveryProblem | undefined;
  /** Default: none. */
  readonly alerts?: readonly ActiveAlert[];
  readonly verdict: Verdict;
  /** Newest first; undefined when they are not kept. */
  readonly recentCalls?: readonly RecentCall[] | undefined;
}

/** Connections and requests of the proxy port, with their limits: the configured ones, or lower ones set by the machine. */
export interface ListenerState {
  /** Client connections. */
  readonly connections: number;
  readonly connectionsLimit: number;
  /** In progress, queued ones included. */
  readonly requests: number;
  readonly requestsLimit: number;
}

/** Requests that an upstream refused because the token lacks a scope (RFC 6750 §3.1). */
export interface ScopeRefusals {
  readonly route: string;
  readonly count: number;
  /** The last one, epoch milliseconds. */
  readonly wallAt: number;
  /** The scope that the last one named; undefined when it named none. */
  readonly needed: string | undefined;
}

export interface Status {
  readonly version: string;
  /** The process id, in the process namespace of the sidecar. */
  readonly pid: number | null;
  readonly uptimeSeconds: number;
  readonly draining: boolean;
  /** Warnings: conditions that need an operator although requests still succeed. */
  readonly degraded: readonly string[];
  /** The first credential; `default` is the one of the top-level settings. */
  readonly token: {
    readonly credential: string;
    /** The file of a token that another program renews; null: the token is requested. */
    readonly file: string | null;
    readonly status: TokenState['status'];
    /** Number of tokens obtained. */
    readonly serial: number;
    readonly scope: string | null;
    readonly expiresAt: string | null;
    readonly validForSeconds: number | null;
    /** Requested and not granted. */
    /** The API does not accept the newest token yet, and the previous one is used. */
    readonly usesPrevious: boolean;
    readonly missingScopes: readonly string[];
    /** Why the newest credentials are not in use. */
    readonly credentialFault: { readonly detail: string; readonly since: string } | null;
    /** Circuit breaker of the token endpoint: closed, open or half-open. */
    readonly circuit: TokenState['circuit'];
    readonly consecutiveFailures: number;
    readonly lastFailure: { readonly outcome: string; readonly detail: string; readonly at: string } | null;
    readonly nextRequestInSeconds: number | null;
  };
  /** The first throttle. */
  readonly throttle: {
    readonly route: string;
    readonly mode: ThrottleState['mode'];
    /** Permits per second; null while unpaced. */
    readonly rate: number | null;
    readonly unpaced: boolean;
    readonly pausedSeconds: number | null;
    readonly queued: number;
    /** `queue.max`. */
    readonly queueLimit: number;
    readonly queuedByPriority: ThrottleState['queuedByPriority'];
    /** Request bodies that are being read. */
    readonly readingBodies: number;
    /** Request bodies that stalled and gave up their place to other requests. */
    readonly stalledBodies: number;
    readonly inFlight: number;
    readonly inFlightLimit: number | null;
    readonly streams: number;
    /** The limit that `auto` has learned; null with a configured rate. */
    readonly learned: {
      readonly rate: number | null;
      readonly limit: number | null;
      readonly windowSeconds: number | null;
      readonly kind: string;
      readonly confidence: LearnedLimit['confidence'];
      readonly since: string;
    } | null;
    /** How much of the limit is used now; null while no limit is known or a fleet shares it. */
    readonly usage: {
      /** Calls that the limit counts now: within its window, not leaked away, or in flight. */
      readonly used: number;
      readonly limit: number;
      /** Null for a limit without a window. */
      readonly windowSeconds: number | null;
      /** Until the next request may be sent; 0 now, null when only the end of another call helps. */
      readonly opensInSeconds: number | null;
    } | null;
    /** The quota that replicas share; null without a fleet. */
    readonly fleet: {
      /** `unknown`: as if there were no fleet. `apart`: with a part of the last known rate. */
      readonly state: FleetQuotaState['state'];
      readonly leader: boolean;
      readonly replicas: number;
      /** Total of all replicas, permits per second; null while unpaced. */
      readonly rate: number | null;
      /** Permits leased in advance. */
      readonly leased: number;
    } | null;
    /** Statuses that are likely a rate limit and that `throttle.refusals` does not name. */
    readonly refusalProposals: readonly {
      readonly status: number;
      /** Bare responses with the status since `since`. */
      readonly refused: number;
      /** Accepted calls to the same endpoints. */
      readonly accepted: number;
      readonly acceptedPerWindow: number;
      /** Null: from one recovery to the next. */
      readonly windowSeconds: number | null;
      /** Windows with refusals that agree. */
      readonly windows: number;
      /** Of the windows with about as many accepted calls, the part with refusals. */
      readonly shareAtHighRate: number;
      /** Of the windows with fewer; null where there were too few. */
      readonly shareAtLowRate: number | null;
      readonly since: string;
      readonly lastAt: string;
      /** The evidence in one sentence. */
      readonly evidence: string;
      /** The line for the configuration file. */
      readonly setting: string;
      readonly variable: string;
    }[];
    /** Newest first. */
    readonly recentSignals: readonly {
      readonly at: string;
      readonly status: number;
      readonly pauseSeconds: number | null;
      /** True when the upstream stated the pause. */
      readonly stated: boolean;
      /** What the rate-limit header fields state. */
      readonly fields: StatedFields;
    }[];
  };
  readonly tokens: readonly Status['token'][];
  readonly throttles: readonly Status['throttle'][];
  /** The proxy port. */
  readonly listener: {
    readonly connections: number;
    readonly connectionsLimit: number;
    readonly requests: number;
    /** Null when only the configuration limits them. */
    readonly requestsLimit: number | null;
  } | null;
  readonly insufficientScope: readonly {
    readonly route: string;
    readonly count: number;
    readonly lastAt: string;
    readonly needed: string | null;
  }[];
  /** The connection to the fleet's Redis; null without a fleet. */
  readonly fleet: {
    /** `degraded`: connected, but the replies are too late to be used. */
    readonly state: FleetConnectionState['state'];
    /** True in the state `connected` only. */
    readonly connected: boolean;
    readonly fault: string | null;
    readonly since: string;
  } | null;
  /** When the active configuration was loaded, and the last reload. */
  readonly configuration: ConfigurationStatus | null;
  /** Whose fault it is that requests fail or are delayed. */
  readonly verdict: {
    readonly level: Verdict['level'];
    /** `none`: nothing is wrong, or it has gone, or the sidecar drains. `limit`: the demand exceeds what the partner allows. */
    readonly where: Verdict['where'];
    /** The dominant status, code of the local reply, or cause. */
    readonly code: string | null;
    readonly headline: string;
    readonly detail: string;
    /** Null: no route, or several. */
    readonly route: string | null;
    /** Of the requests that it explains, from 0 to 1. */
    readonly share: number | null;
    /** Since when; when it ended, if it has gone. */
    readonly since: string | null;
    /** The setting or the question that helps. */
    readonly advice: string | null;
    /** A second cause. */
    readonly other: string | null;
  };
  /** The alerts of deploy/prometheus whose conditions hold now, critical ones first. */
  readonly alerts: readonly {
    readonly name: AlertName;
    readonly severity: AlertSeverity;
    /** How long the condition must last before Prometheus sends the alert. */
    readonly forSeconds: number;
    /** The route or the credential; null when the alert is about the process. */
    readonly subject: string | null;
    /** A share from 0 to 1, a number of events or seconds, as the alert's expression gives it. */
    readonly value: number;
  }[];
  /** The last calls, newest first, at most 50; null when `admin.recentCalls` is off. */
  readonly recentCalls:
    | readonly {
        /** When the response ended. */
        readonly at: string;
        readonly route: string;
        readonly method: string;
        /** Without the query; the first 200 characters. */
        readonly path: string;
        /** As sent; 499 when the client left. */
        readonly status: number;
        readonly source: 'upstream' | 'sidecar';
        readonly attempts: number;
        /** Total time in the queue. */
        readonly waitSeconds: number;
        readonly durationSeconds: number;
        /** Why it failed; null for a response of the upstream that was relayed as a whole. */
        readonly reason: string | null;
        /** `unknown`: the upstream may have carried out a call that is not idempotent, and sent no response. */
        readonly outcome: 'unknown' | null;
        /** The client's own, or one of the trace or of the sidecar. */
        readonly requestId: string;
        /** As the client names itself. */
        readonly caller: string | null;
        /** The upstream's own id of the call. */
        readonly upstreamRequestId: string | null;
      }[]
    | null;
}
