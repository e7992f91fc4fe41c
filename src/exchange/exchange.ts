/** One request on its way through the sidecar, and the parts that it passes. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock, Random } from '../platform/clock.ts';
import type { Observe } from '../telemetry/events.ts';
import type { Standing, Throttle } from '../throttle/throttle.ts';
import type { TokenSource } from '../token/token.ts';
import type { RetryBudget } from '../retry/budget.ts';
import type { RetryRules } from '../retry/policy.ts';
import type { Cut } from '../upstream/attempt-terms.ts';
import type { Upstream } from '../upstream/client.ts';
import type { AnswerSignals } from './answer-signal.ts';
import type { Lifeline } from './lifeline.ts';
import type { ReplayMemory } from './request-body/replay-body.ts';
import type { Watch } from './watch.ts';

/** What every request of a route shares. */
export interface ExchangeParts {
  /** Configured name, used as a label. */
  readonly route: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: Observe;
  readonly tokens: TokenSource;
  readonly throttle: Throttle;
  readonly answerSignals: AnswerSignals;
  readonly upstream: Upstream;
  /** The path under the sidecar that leads to a path below the upstream's base; undefined when none does. */
  readonly clientPath: (path: string) => string | undefined;
  readonly budget: RetryBudget;
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
  readonly standing: Standing;
  readonly lifeline: Lifeline;
  readonly tally: Tally;
  /** Follows it on its way. Default: nobody does. */
  readonly watch?: Watch | undefined;
}

/** What is counted along the way, for the one event that tells of the request. */
export interface Tally {
  attempts: number;
  queuedMs: number;
  requestBytes: number;
  responseBytes: number;
}

/** An answer of the upstream went to the client. */
export interface Relayed {
  readonly status: number;
  /** Why it broke off, if it did. */
  readonly fault: Cut | undefined;
}

/** Hears once what became of a request. Must not throw. */
export interface Outcome {
  relayed(relayed: Relayed): void;
  /** @param reason SidecarError; LifelineEnded (client-left) when nobody is there any more to be answered */
  failed(reason: unknown): void;
}
