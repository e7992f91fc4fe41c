/**
 * A Throttle controls how fast and how many at once requests are sent to one upstream.
 *
 * Each request takes a Ticket with `enter`. Before each attempt it takes a Permit: `tryTakePermit` returns one if the request
 * does not have to wait, `waitForPermit` resolves when it is its turn. A permit is spent when the attempt is sent, and holds an
 * in-flight slot until `release`. Waiting requests are served by priority and caller; the queue is bounded by number and time.
 *
 * The rate is configured, or learned from refusals (`auto`). A refusal pauses all requests; then one probe goes first.
 */
import type { ObservedCalls, StatedFields, SuspectStatus } from '../telemetry/events.ts';
import type { ReceivedCall } from './declared/call-match.ts';
import type { DeclaredLimit, DeclaredLimitState } from './declared/declared-limit.ts';
import type { DeclaredLimits } from './declared/declared-limits.ts';
import type { AssumedRefusal } from './pacing/assumed-refusals.ts';
import type { RefusalRule } from './refusal-rule.ts';
import type { RateLimitSignal } from './signals/rate-limit-signal.ts';

/** What the response to an attempt said about the rate limit. */
export type PermitReport =
  /** Not refused for its rate. The response may state what remains. */
  | { readonly kind: 'accepted'; readonly hint?: RateLimitSignal }
  /**
   * Refused for its rate (429, some 403), or perhaps so (503 with Retry-After). `isConfigured`: certainly so, since the configuration
   * says it. `isAssumed`: only the sidecar says it. Default false. `fields`: what the header fields state, for the operator. Default: nothing.
   */
  | {
      readonly kind: 'rate-limited';
      readonly signal: RateLimitSignal;
      readonly isConfigured?: boolean;
      readonly isAssumed?: boolean;
      readonly fields?: StatedFields;
    }
  /** A bare status that may be a refusal and that no setting names. */
  | { readonly kind: 'suspect'; readonly status: SuspectStatus }
  /** No response: reset, time-out, unreachable, client gone. */
  | { readonly kind: 'unknown' };

export type RateLimitReport = Extract<PermitReport, { kind: 'rate-limited' }>;
export type SuspectReport = Extract<PermitReport, { kind: 'suspect' }>;

/** The client of a response that is relayed. */
export interface ResponseClient {
  /** Bytes that its connection has taken so far, of this response or of others. */
  readonly takenBytes: number;
  /** Breaks the response off and ends its attempt. */
  breakOff(stalledMs: number): void;
}

/** `time-out`: no response came in time · `other`: the client left, or the drain cut the call. */
export type CutReason = 'time-out' | 'other';

/** A Permit allows one attempt. It holds an in-flight slot from the grant until `release` or `cancel`. */
export interface Permit {
  /** Monotonic instant of the grant. */
  readonly grantedAt: number;
  /** When the upstream's own time began, monotonic: with the grant, or when the attempt no longer waited for its client. */
  readonly startedAt: number;
  /** The attempt's request is sent now. The next permits keep their distance from this instant. */
  markSent(): void;
  /**
   * Reports the response head. At most once, before `release`.
   * @param at when the head came, monotonic, if it alone decided. Default: now
   * @returns how long this call alone should wait before its next attempt, milliseconds; 0 where the next permit decides that
   */
  report(result: PermitReport, at?: number): number;
  /**
   * Frees the slot. Further calls do nothing.
   * @param cut why the sidecar ended the attempt before its response. Default: it did not
   */
  release(cut?: CutReason): void;
  /** Gives the permit back unspent and frees the slot, as if it had never been granted. */
  cancel(): void;
  /**
   * Moves the slot from `maxInFlight` to `maxStreams` (event streams, upgraded connections, stalled uploads and responses).
   * @returns false when `maxStreams` are open: the slot stays where it is
   */
  becomeStream(): boolean;
  /**
   * The client stopped sending the request body that this attempt forwards. If another request waits for a slot, this slot
   * moves to `maxStreams`.
   * @returns false when `maxStreams` are open: the attempt should end
   */
  reportStalledUpload(): boolean;
  /** Until then the attempt has waited for its client to send. To be called before `report` and `release`. */
  recordClientWait(until: number): void;
  /** The client takes no more of the response: until `recordStallEnd`, a request that waits may get the slot. */
  recordStall(client: ResponseClient): void;
  /** The client has taken what there was. */
  recordStallEnd(): void;
}

/** Priorities share permits by weight: a lower one is slowed and never starved. */
export type Priority = 'high' | 'normal' | 'low';

/** What decides the order of waiting requests. The callers of one priority take turns. */
export interface QueueClass {
  readonly priority: Priority;
  /** Empty when the request names no caller. */
  readonly caller: string;
}

/** A Ticket is one request's place in the throttle, from its arrival to its end. */
export interface Ticket {
  /** True when `waitForBodySlot` has nothing to wait for. */
  readonly hasBodySlot: boolean;
  /**
   * Resolves when the body may be read, or read on after a stall: at most `maxInFlight` waiting requests hold their bodies.
   * @throws SidecarError QUEUE_TIMEOUT, DRAINING
   */
  waitForBodySlot(): Promise<void>;
  /**
   * Records that bytes of the body came.
   * @param now monotonic
   * @returns false when the body stalled and its slot went to another request: `waitForBodySlot` waits for the next
   */
  recordBodyBytes(now: number): boolean;
  /** Records that the whole body came: it needs no slot for reading. Resolves a pending `waitForBodySlot`. */
  recordBodyEnd(): void;
  /**
   * Resolves with a permit when it is this request's turn. Called again for a retry, the request stands at the head. Never
   * resolves after `leave`, after the queue time-out, or when less of the deadline is left than the upstream is likely to need.
   * @throws SidecarError QUEUE_TIMEOUT, DRAINING; for a request that begins to wait only here as `enter`
   */
  waitForPermit(): Promise<Permit>;
  /**
   * Returns a permit if the request does not have to wait for it; undefined also where `waitForPermit` would reject.
   * @param now what the clock has just given. Default: it is read
   */
  tryTakePermit(now?: number): Permit | undefined;
  /**
   * Expected wait of a retry in milliseconds; Infinity when it may not wait that long, or its response would come too late.
   * @param delayMs of which it does not wait for its permit. Default 0
   */
  retryWaitMs(delayMs?: number): number;
  /** Milliseconds waited so far, all waits together. */
  readonly waitedMs: number;
  /**
   * Ends the ticket: its response was sent, it failed, or its client left. Pending promises reject with `reason` if given.
   * A SidecarError as reason means that the request failed on its own: it is not counted as one that left the queue. O(1);
   * further calls do nothing.
   */
  leave(reason?: unknown): void;
}

/** The limit that `auto` has learned. */
export interface LearnedLimit {
  /** Permits per second; Infinity while no limit is known. */
  readonly rate: number;
  /** Calls per window, or in flight at once, depending on `kind`; absent while no limit is chosen. */
  readonly limit?: number | undefined;
  /** Milliseconds; absent while no limit is chosen, and for a limit without a window. */
  readonly windowMs?: number | undefined;
  /** What the upstream counts, for people: `window`, `bucket` or `concurrency`; `unknown` while no limit is chosen. */
  readonly kind: string;
  readonly confidence: 'none' | 'low' | 'high';
  /** Part of the calls that is refused at any rate, and repeated alone; absent while there is none. */
  readonly refusedShare?: number | undefined;
  /** Epoch milliseconds of the decision for this limit, or of the first refusal that no limit explains. */
  readonly since: number;
}

export interface LimitUsage {
  /** Calls that the limit counts now: within its window, not leaked away from its bucket, or in flight. */
  readonly used: number;
  /** Calls per window, burst of the bucket, or calls in flight. */
  readonly limit: number;
  /** Milliseconds; undefined for a limit without a window. */
  readonly windowMs: number | undefined;
  /** Until the next permit may be granted; 0: now. Infinity when only the end of another call helps. */
  readonly opensInMs: number;
}

/** What `auto` keeps over a restart. */
export interface LearnedState {
  readonly version: 1;
  /** Epoch milliseconds of the snapshot. */
  readonly wallAt: number;
  /** A JSON value that only the governor reads; undefined while it has learned nothing. */
  readonly governor: unknown;
  /** Default: none. */
  readonly lanes?: readonly LearnedLane[] | undefined;
}

/** The learned limit of one operation. */
export interface LearnedLane {
  /** As `describeEndpoint` names it. */
  readonly operation: string;
  /** As LearnedState's. */
  readonly governor: unknown;
}

/** A limit that `auto` has learned for one operation, beside that of the route. */
export interface LaneState {
  /** As `describeEndpoint` names it. */
  readonly operation: string;
  readonly learned: LearnedLimit | undefined;
  readonly usage: LimitUsage | undefined;
  /** Milliseconds left of its pause; 0 without one. */
  readonly pausedMs: number;
  /** Requests that wait for it. */
  readonly queued: number;
  /** Calls that the limit has refused. */
  readonly refused: number;
  /** Calls of other operations have shown that the limit is not the route's; otherwise that is being tested. */
  readonly isConfirmed: boolean;
}

/** What a throttle shares with those of other replicas. */
export interface FleetQuotaState {
  /** `unknown`: as if there were no fleet. `apart`: with a part of the last known rate. */
  readonly state: 'unknown' | 'joined' | 'apart';
  /** This replica learns for all. */
  readonly isLeader: boolean;
  /** Replicas at the last exchange, this one included. */
  readonly replicas: number;
  /** Permits per second of all replicas together; Infinity while no limit is known. */
  readonly rate: number;
  /** Permits leased ahead and not used yet. */
  readonly leased: number;
}

/** What the admin port and the metrics show of a throttle. */
export interface ThrottleState {
  readonly route: string;
  readonly mode: 'static' | 'auto';
  /** Permits per second now; Infinity while unlimited. */
  readonly rate: number;
  /** `throttle.maxRate`. Default: none. */
  readonly maxRate?: number | undefined;
  /** Milliseconds left of the pause; 0 without one. */
  readonly pausedMs: number;
  /** Lower-case name of the partner's header field that holds requests back; undefined without one. */
  readonly heldBy?: string | undefined;
  /** Lower-case names of the partner's fields that are not obeyed, since calls are accepted beyond them. Default: none. */
  readonly disbelievedFields?: readonly string[] | undefined;
  /** Requests that wait for a body slot, for their body or for a permit. Stalled bodies are not counted. */
  readonly queued: number;
  readonly queueMax: number;
  readonly queuedByPriority: Readonly<Record<Priority, number>>;
  readonly readingBodies: number;
  /** Request bodies that stopped coming and lost their slots. */
  readonly stalledBodies: number;
  /** Responses whose clients have taken nothing for a second, and how many of them are in flight; the others are streams. */
  readonly stalledResponses: number;
  readonly stalledInFlight: number;
  readonly inFlight: number;
  readonly streams: number;
  /** How many may be in flight now; grows from 4 with `auto`. */
  readonly inFlightLimit: number;
  /** The last rate-limit signals, newest first, at most 20. */
  readonly recentSignals: readonly RecentSignal[];
  /** Absent with a configured rate. */
  readonly learned?: LearnedLimit | undefined;
  /** Absent while no limit is known, and while the quota is shared by a fleet. */
  readonly usage?: LimitUsage | undefined;
  /** Absent without a fleet. */
  readonly fleet?: FleetQuotaState | undefined;
  /** `throttle.limits`; empty without one. */
  readonly limits?: readonly DeclaredLimitState[] | undefined;
  /** `throttle.lanes`. Default: none. */
  readonly lanes?: readonly LaneState[] | undefined;
  /** The only operation that the refusals fall on, as far as is certain. Default: none. */
  readonly refusedOperation?: string | undefined;
  /** Statuses that are taken for a rate limit and that `throttle.refusals` does not name. Default: none. */
  readonly assumed?: readonly AssumedRefusal[] | undefined;
  /** Absent while limits are enforced. */
  readonly observed?: ObservedCalls | undefined;
}

export interface RecentSignal {
  readonly wallAt: number;
  readonly status: number;
  readonly pauseMs: number;
  readonly stated: boolean;
  readonly fields: StatedFields;
}

/** How fast, how many at once and how long a pause: `throttle` of the configuration. */
export interface RateSettings {
  /** `observe`: no call is delayed or rejected for a limit; a shadow counts what would have been. Default: `enforce`. */
  readonly mode?: 'enforce' | 'observe' | undefined;
  /** Permits per second, or `auto`: learn it. */
  readonly rate: number | 'auto';
  /** Permits; unused with `auto`. */
  readonly burst: number;
  /** Permits per second that `auto` never exceeds. Default: none. */
  readonly maxRate?: number | undefined;
  readonly maxInFlight: number;
  /** `maxInFlight` is configured: it limits the calls in flight at the upstream, stalled ones included. Default false. */
  readonly isMaxInFlightGiven?: boolean | undefined;
  readonly maxStreams: number;
  /** A longer pause is probed once in each such interval. */
  readonly maxPauseMs: number;
  /** Number of replicas without a fleet; the declared limits are divided by it. Default 1. */
  readonly share?: number | undefined;
  /** `throttle.limits`. Default: none. */
  readonly limits?: readonly DeclaredLimit[] | undefined;
  /** `throttle.refusals`, for a proposed setting that keeps its rules. Default: none. */
  readonly refusals?: readonly RefusalRule[] | undefined;
  /** `throttle.lanes`: learns limits of single operations, `auto` without a test; with a rate of `auto` only. Default false. */
  readonly lanes?: boolean | 'auto' | undefined;
  /** `throttle.assumeRefusals`; with `auto` only. Default true. */
  readonly assumeRefusals?: boolean | undefined;
}

/** What is configured of a throttle and may change while it runs. */
export interface ThrottleTerms {
  readonly throttle: RateSettings;
  readonly queue: { readonly max: number; readonly timeoutMs: number };
}

export interface Throttle {
  /** No call is delayed, rejected or repeated for the sake of a limit. */
  readonly isObserving: boolean;
  /**
   * Takes a place in the throttle.
   * @param deadlineAt monotonic instant by which the response head must be there
   * @param queueClass default: normal priority, no caller
   * @param awaitsBody false: there is no body, or node:http has received it whole, so that no slot for reading it is needed. Default true
   * @param endpoint whose response times decide what is reserved of the deadline, as `describeEndpoint` names it. Default: none
   * @param arrivedAt what the clock has just given. Default: it is read
   * @param call decides which declared limits with `match` count the request. Default: none
   * @throws SidecarError when it awaits its body and may not wait: QUEUE_FULL; QUEUE_TIMEOUT when the expected wait is certainly too long; DRAINING
   */
  enter(
    deadlineAt: number,
    queueClass?: QueueClass,
    awaitsBody?: boolean,
    endpoint?: string,
    arrivedAt?: number,
    call?: ReceivedCall,
  ): Ticket;
  /**
   * Applies other settings. The rate changes at once, and saved-up permits do not become more by it. Requests that wait go on
   * waiting under their old time-out, even when `queue.max` is smaller now.
   */
  reconfigure(terms: ThrottleTerms): void;
  /** Rejects all waiting requests and all later ones with DRAINING. */
  shutDown(): void;
  state(): ThrottleState;
  /** Undefined while no limit is declared. */
  readonly declaredLimits: DeclaredLimits | undefined;
  /** Grants what can be granted now; for a store that has new permits. */
  pump(): void;
  /** What to keep over a restart; undefined when nothing has been learned. */
  snapshot(): LearnedState | undefined;
}
