/**
 * The words that the throttle folder and its users share. One throttle stands before one upstream: it queues requests
 * fairly, those of one caller in order of arrival, grants in-flight slots and permits, pauses on rate-limit signals, and
 * refuses what cannot be served in time.
 */
import type { RateLimitSignal } from './signals/rate-limit-signal.ts';

/** How an attempt that spent a permit ended, as the throttle needs to know it. */
export type PermitReport =
  /** The upstream answered and did not complain of the rate; it may have said how much is left. */
  | { readonly kind: 'accepted'; readonly hint?: RateLimitSignal }
  /** The upstream refused for its rate limit (429, some 403), or says it may (503 with Retry-After: the governor judges). */
  | { readonly kind: 'rate-limited'; readonly signal: RateLimitSignal }
  /** Nothing learned: reset, time-out, unreachable, client left. */
  | { readonly kind: 'unknown' };

/** One permit spent, one in-flight slot held, from the grant until `release`. */
export interface Permit {
  /** Monotonic instant of the grant. */
  readonly grantedAt: number;
  /** The attempt's request goes onto the wire now; what is granted next keeps its distance from this instant. */
  markSent(): void;
  /**
   * The attempt has its response head: tell the governor what it showed (an accepted answer may carry hints as well).
   * Called at most once, before `release`.
   */
  report(result: PermitReport): void;
  /** Frees the in-flight slot. Further calls do nothing. */
  release(): void;
  /** Gives the permit back unspent and frees the slot, as if it had never been granted. */
  cancel(): void;
  /**
   * Moves this permit's slot from `maxInFlight` to `maxStreams` (event streams, upgraded connections, stalled uploads);
   * false when `maxStreams` are open: the slot then stays where it is.
   */
  becomeStream(): boolean;
  /**
   * The client has stalled within the request body that this attempt sends on. While another waits for a slot, this
   * one moves to `maxStreams`.
   * @returns false when it cannot, since `maxStreams` are open: the attempt should end, so that the other is served
   */
  reportStalledUpload(): boolean;
}

/** How urgent a request is. The classes share permits by weight: a lower one is slowed and never starved. */
export type Priority = 'high' | 'normal' | 'low';

/** What decides whose turn is next: within a priority the callers take turns. */
export interface QueueClass {
  readonly priority: Priority;
  /** Empty: one that did not say. */
  readonly caller: string;
}

/** One request's place in the queue, from arrival to its end. */
export interface Ticket {
  /** The body may be read now: `admitted` has nothing to wait for. */
  readonly isAdmitted: boolean;
  /**
   * Resolves when this request's body may be read, or read on after a stall: it is among the first `maxInFlight` waiting, in the
   * order of their turns.
   * @throws SidecarError QUEUE_TIMEOUT, DRAINING
   */
  waitForAdmission(): Promise<void>;
  /**
   * Bytes of the body were received.
   * @param now monotonic
   * @returns false when the place for reading went to another request during a silence: `admitted` waits for the next free one
   */
  recordBodyBytes(now: number): boolean;
  /** The whole body has been received: it needs no place for reading. Resolves a pending `admitted`. */
  recordBodyEnd(): void;
  /**
   * Resolves with a permit and a slot when it is this request's turn among all that wait for one; called again for a retry,
   * the ticket stands at the head. Never grants after `leave()`, after the deadline or past the queue time-out.
   * @throws SidecarError QUEUE_TIMEOUT, DRAINING
   */
  waitForPermit(): Promise<Permit>;
  /** A permit, if it is to be had without waiting, as `permit` would give it; undefined also where that would throw. */
  tryTakePermit(): Permit | undefined;
  /** Milliseconds that a retry would wait as far as is known now (pause, pace); Infinity when it may not wait that long. */
  retryWaitMs(): number;
  /** Time spent waiting so far, all waits together. */
  readonly waitedMs: number;
  /**
   * Ends the ticket: answered, failed or client gone. Pending promises reject with `reason` if given; a SidecarError says that the
   * request has failed by itself, and is not counted as one that left the queue. O(1), further calls do nothing.
   */
  leave(reason?: unknown): void;
}

/** What `auto` believes of the upstream's limit. */
export interface LearnedLimit {
  /** Permits per second that it holds to; Infinity while it knows of no limit. */
  readonly rate: number;
  /** Calls per window, or in flight at once, as `kind` has it; absent while nothing is inferred. */
  readonly limit?: number | undefined;
  /** Milliseconds; absent while nothing is inferred, and for a limit that knows no window. */
  readonly windowMs?: number | undefined;
  /** What the limiter looks like, in a word or two for people. */
  readonly kind: string;
  readonly confidence: 'none' | 'low' | 'high';
  /** Epoch milliseconds since which this is believed. */
  readonly since: number;
}

/** What survives a restart of what `auto` has learned. */
export interface LearnedState {
  readonly version: 1;
  /** Epoch milliseconds of the snapshot. */
  readonly wallAt: number;
  /** A JSON value that only the governor reads. */
  readonly governor: unknown;
}

/** What a throttle shares with those of other replicas. */
export interface FleetQuotaState {
  /** `unknown`: as if there were no fleet. `apart`: with a part of the last known rate. */
  readonly state: 'unknown' | 'joined' | 'apart';
  /** This replica learns for all. */
  readonly isLeader: boolean;
  /** Replicas that were there last, this one included. */
  readonly replicas: number;
  /** Permits per second of all together; Infinity while no limit is known. */
  readonly rate: number;
  /** Permits that were given ahead and not used yet. */
  readonly leased: number;
}

/** What the admin port and the metrics show of a throttle. */
export interface ThrottleState {
  readonly route: string;
  readonly mode: 'static' | 'auto';
  /** Permits per second now; Infinity while unpaced. */
  readonly rate: number;
  /** Milliseconds left of the pause; 0 when not paused. */
  readonly pausedMs: number;
  /** Requests that wait: for their turn, for their body, or for a permit. Stalled bodies are not counted. */
  readonly queued: number;
  /** How many may wait: `queue.max`. */
  readonly queueMax: number;
  readonly queuedByPriority: Readonly<Record<Priority, number>>;
  /** Request bodies that are being read. */
  readonly readingBodies: number;
  /** Request bodies that stopped coming, and whose places went to other requests. */
  readonly stalledBodies: number;
  readonly inFlight: number;
  readonly streams: number;
  /** How many may be in flight now (grows from 4 under `auto`). */
  readonly inFlightLimit: number;
  /** The last rate-limit signals, newest first, at most 20. */
  readonly recentSignals: readonly RecentSignal[];
  /** Absent with a configured rate. */
  readonly learned?: LearnedLimit | undefined;
  /** Absent without a fleet. */
  readonly fleet?: FleetQuotaState | undefined;
}

/** One rate-limit signal as the operator sees it. */
export interface RecentSignal {
  readonly wallAt: number;
  readonly status: number;
  readonly pauseMs: number;
  readonly stated: boolean;
  readonly fields: Readonly<Record<string, string>>;
}

/** How fast, how many at once and how long a pause: `throttle` of the configuration. */
export interface RateSettings {
  /** Permits per second, or `auto`: learn it. */
  readonly rate: number | 'auto';
  /** Permits; unused with `auto`. */
  readonly burst: number;
  /** Permits per second that `auto` never exceeds; absent: none. */
  readonly maxRate?: number | undefined;
  readonly maxInFlight: number;
  readonly maxStreams: number;
  /** A longer pause is probed once in each such interval. */
  readonly maxPauseMs: number;
}

/** What is configured of a throttle and may change while it runs. */
export interface ThrottleTerms {
  readonly throttle: RateSettings;
  readonly queue: { readonly max: number; readonly timeoutMs: number };
}

/** The queue, the pace and the slots before one upstream. */
export interface Throttle {
  /**
   * Takes a place in the queue.
   * @param deadlineAt monotonic instant by which the response head must be there
   * @param standing default: of normal priority, by one that did not say who asks
   * @param hasBody false: no body is to be read, so that no place for that is needed. Default true
   * @throws SidecarError QUEUE_FULL; QUEUE_TIMEOUT when the expected wait is known to be too long; DRAINING
   */
  enter(deadlineAt: number, standing?: QueueClass, hasBody?: boolean): Ticket;
  /**
   * From now on these hold. The pace changes at once, and nothing that is saved up is made more by it. Whoever waits goes on waiting, by
   * the time-out that held when it came, and even where there are fewer places now.
   */
  reconfigure(terms: ThrottleTerms): void;
  /** Everything that waits, and whoever comes later, is refused with DRAINING. */
  shutDown(): void;
  state(): ThrottleState;
  /** What is worth keeping over a restart; undefined when nothing has been learned. */
  snapshot(): LearnedState | undefined;
}
