/** One request on its way through the sidecar, and the parts that it passes. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock, Random } from '../platform/clock.ts';
import type { EventObserver } from '../telemetry/events.ts';
import type { QueueClass, Throttle } from '../throttle/throttle.ts';
import type { TokenSource } from '../token/token.ts';
import type { RetryBudget } from '../retry/budget.ts';
import type { RetryRules } from '../retry/policy.ts';
import type { ResponseCut } from '../upstream/attempt-contract.ts';
import type { Upstream } from '../upstream/client.ts';
import type { ResponseClassifier } from './response-classifier.ts';
import type { RequestLifetime } from './request-lifetime.ts';
import type { ReplayMemory } from './request-body/replay-body.ts';
import type { RequestTracer } from './request-tracer.ts';

/** What every request of a route shares. */
export interface ExchangeParts {
  /** Configured name, used as a label. */
  readonly route: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: EventObserver;
  readonly tokens: TokenSource;
  readonly throttle: Throttle;
  readonly responseClassifier: ResponseClassifier;
  readonly upstream: Upstream;
  /** The path under the sidecar that leads to a path below the upstream's base; undefined when none does. */
  readonly clientPath: (path: string) => string | undefined;
  readonly retryBudget: RetryBudget;
  readonly memory: ReplayMemory;
  readonly retry: RetryRules & { readonly replayBufferBytes: number };
  /** Last request byte sent to response head, milliseconds, each attempt. */
  readonly requestTimeoutMs: number;
  /** Longest silence within a body, milliseconds; 0 = no limit. */
  readonly bodyIdleTimeoutMs: number;
  /** Lower-case name of the field that admits clients; it is not forwarded. */
  readonly requiredHeader: string | undefined;
}

/** One request that passed the guard. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Path and query as asked of the upstream. */
  readonly path: string;
  /** The page origin that asked, when it is allowed. */
  readonly corsOrigin: string | undefined;
  /** Whose turn in the queue it takes. */
  readonly queueClass: QueueClass;
  readonly lifetime: RequestLifetime;
  readonly stats: RequestStats;
  /** Follows it on its way. Default: nobody does. */
  readonly tracer?: RequestTracer | undefined;
}

/** What is counted along the way, for the one event that tells of the request. */
export interface RequestStats {
  attempts: number;
  queuedMs: number;
  requestBytes: number;
  responseBytes: number;
}

/** An answer of the upstream went to the client. */
export interface RelayedResponse {
  readonly status: number;
  /** Why it broke off, if it did. */
  readonly fault: ResponseCut | undefined;
}

/** Hears once what became of a request. Must not throw. */
export interface OutcomeListener {
  relayed(relayed: RelayedResponse): void;
  /** @param reason SidecarError; LifelineEnded (client-left) when nobody is there any more to be answered */
  failed(reason: unknown): void;
}
