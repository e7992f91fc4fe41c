/** What the requests of a route share, what one request has of its own, and how it ends. Types alone. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock, Random } from '../platform/clock.ts';
import type { SidecarError } from '../platform/errors.ts';
import type { Redact } from '../platform/secret-redaction.ts';
import type { EventObserver } from '../telemetry/events.ts';
import type { RouteCounters } from '../telemetry/request-record.ts';
import type { QueueClass, Throttle } from '../throttle/throttle.ts';
import type { TokenSource } from '../token/token.ts';
import type { RetryBudget } from '../retry/budget.ts';
import type { RetryRules } from '../retry/policy.ts';
import type { AttemptTimeouts, ResponseCut } from '../upstream/response-receiver.ts';
import type { ClientView } from '../upstream/client-view.ts';
import type { Upstream } from '../upstream/client.ts';
import type { AddedHeaders } from '../upstream/headers.ts';
import type { ForeignResponses } from './foreign-responses.ts';
import type { EvaluateHead } from './refusals/refusal-rules.ts';
import type { ResponseClassifier } from './response-classifier.ts';
import type { RequestLifetime } from './request-lifetime.ts';
import type { ReplayMemory } from './request-body/replay-body.ts';
import type { RequestTracer } from './request-tracer.ts';

export interface RouteContext
  extends Pick<ClientView, 'baseUrl' | 'clientPath'>, Partial<Pick<ClientView, 'cookieRoot'>> {
  /** Configured name, used as a label. */
  readonly route: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: EventObserver;
  readonly counters: RouteCounters;
  readonly tokens: TokenSource;
  readonly throttle: Throttle;
  readonly responseClassifier: ResponseClassifier;
  readonly foreignResponses: ForeignResponses;
  /** Responses that refuse a call for its rate, besides 429; undefined: none. */
  readonly refusals?: EvaluateHead | undefined;
  /** Routes to one origin may share it. */
  readonly upstream: Upstream;
  readonly retryBudget: RetryBudget;
  readonly memory: ReplayMemory;
  readonly retry: RetryRules & { readonly replayBufferBytes: number };
  readonly timeouts: AttemptTimeouts;
  /** Masks the access tokens in use in a text that the upstream sent and that is kept. */
  readonly maskSecrets: Redact;
  readonly addedHeaders: AddedHeaders;
  /** Undefined: calls are not recorded. */
  readonly unknownCalls?: UnknownCalls | undefined;
}

/** Keeps the calls that may have been carried out while their clients do not know the outcome. */
export interface UnknownCalls {
  /**
   * To be called before each attempt is sent: records the call once, and sets `callId`. Idempotent methods are not recorded.
   * @returns false: it is not recorded, and must not be sent
   */
  begin(route: string, exchange: Exchange, idempotencyKey: string | undefined): boolean;
  /**
   * The request has ended.
   * @param code why the client does not know the outcome; undefined: it does
   * @param status of a response that the client did not get as a whole
   */
  conclude(callId: string, code: string | undefined, status: number | undefined): void;
}

/** One request that passed the guard. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Path and query on the upstream, base path included. */
  readonly path: string;
  /** Path and query of a client that calls the sidecar itself. */
  readonly target: string;
  /** Overrides the route's, for a request in absolute-form that names the upstream. */
  readonly clientPath?: RouteContext['clientPath'] | undefined;
  readonly corsOrigin: string | undefined;
  readonly queueClass: QueueClass;
  readonly lifetime: RequestLifetime;
  readonly stats: RequestStats;
  readonly tracer?: RequestTracer | undefined;
}

export interface RequestStats {
  attempts: number;
  queuedMs: number;
  requestBytes: number;
  responseBytes: number;
  /** The client's, if it sent one valid field, else the trace's, else the one that a local reply has stated; undefined: none so far. */
  requestId: string | undefined;
  readonly traceId: string | undefined;
  /** As the client names itself. */
  readonly caller: string | undefined;
  /** The upstream's own, of its newest response; as received. */
  upstreamRequestId: string | undefined;
  /** The newest attempt that was sent brought no response that the client can get. A call that is not idempotent has an unknown outcome then. */
  lacksResponse: boolean;
  pending: PendingAttempt | undefined;
  /** The id of the record, where calls are recorded, once the call has begun to be sent. */
  callId: string | undefined;
}

/** An attempt that waits for its connection or for its response head. */
export interface PendingAttempt {
  readonly route: string;
  /** When its permit was granted, monotonic milliseconds. */
  readonly startedAt: number;
  readonly wasSent: boolean;
}

export type RequestOutcome =
  /** The upstream's response went to the client. `fault`: why it broke off, if it did. */
  | { readonly kind: 'relayed'; readonly status: number; readonly fault: ResponseCut | undefined }
  | { readonly kind: 'replied'; readonly error: SidecarError }
  | { readonly kind: 'client-left' }
  | { readonly kind: 'preflight' };
