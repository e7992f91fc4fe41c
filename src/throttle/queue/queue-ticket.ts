/**
 * A request's place in the queue: its arrival number, its phase, its wait now, and how much longer it may wait: the upstream's own time is
 * reserved. RequestQueue keeps the order; RequestTicket is what the request itself does with its place.
 */
import type { LimitSet } from '../declared/limit-set.ts';
import type { PacedCall } from '../pacing/gate.ts';
import type { Permit, QueueClass } from '../throttle.ts';
import type { LaneGate } from './lane-gate.ts';
import type { ResponseTimes } from './response-times.ts';

/**
 * `complete`: its body has come, or it has none: it needs no body slot, and does not wait yet · `queued`: waits for a body slot · `buffering`: has one
 * and reads its body · `received`: the whole body came while it was queued · `stalled`: its body stopped coming, and it lost the slot ·
 * `held`: waits for the gate of its lane · `ready`: waits for a permit · `granted`: has or had a permit and waits for none · `left`: not in
 * the throttle.
 */
export type TicketPhase =
  | 'complete'
  | 'queued'
  | 'received'
  | 'buffering'
  | 'stalled'
  | 'held'
  | 'ready'
  | 'granted'
  | 'left';

export type PendingWait =
  | {
      readonly kind: 'body-slot';
      readonly resolve: (nothing: undefined) => void;
      readonly reject: (reason: unknown) => void;
    }
  | { readonly kind: 'permit'; readonly resolve: (permit: Permit) => void; readonly reject: (reason: unknown) => void };

/** A call that has waited is sent if so many like it would be in time with what is left of its deadline. */
const LEAST_IN_TIME = 0.9;
/** The same among several that wait, as a part of those that would be in time without a wait. */
const LEAST_IN_TIME_CONTENDED = 0.98;

/** The public fields are state that the throttle keeps on the ticket; only the throttle and its queue write them. */
export class QueueTicket implements PacedCall {
  readonly arrivalNumber: number;
  readonly deadlineAt: number;
  readonly queueClass: QueueClass;
  readonly isHigh: boolean;
  readonly awaitsBody: boolean;
  readonly endpoint: string;
  readonly operationLimits: LimitSet | undefined;
  phase: TicketPhase;
  /** Undefined where no limit holds for its operation only. */
  gate: LaneGate | undefined;
  /** The ticket waits in the order of its lane, and not in that of all requests. */
  isInLane = false;
  /** What waits now is a retry. */
  wasGranted = false;
  /** Written by the orders of the queue. */
  holdsBodySlot = false;
  /** Monotonic instant of the last body bytes, or of the grant of the slot. */
  lastProgressAt: number;
  /** Undefined while it does not wait. */
  wait: PendingWait | undefined;
  pastWaitsMs = 0;
  /** When the present wait ends unserved. */
  expiresAt = Infinity;
  readonly #responseTimes: ResponseTimes;
  readonly #timeoutMs: number;
  /** Half of the time to the deadline. */
  readonly #maxReserveMs: number;
  #reservedMs: number | undefined;
  #waitStartedAt = 0;
  #reportedWaitMs = 0;

  /** @param timeoutMs how long all waits together may take */
  constructor(responseTimes: ResponseTimes, arrival: Arrival, timeoutMs: number) {
    const { arrivalNumber, arrivedAt, deadlineAt, queueClass, awaitsBody, endpoint, operationLimits } = arrival;
    this.#responseTimes = responseTimes;
    this.#timeoutMs = timeoutMs;
    this.#maxReserveMs = (deadlineAt - arrivedAt) / 2;
    this.arrivalNumber = arrivalNumber;
    this.deadlineAt = deadlineAt;
    this.queueClass = queueClass;
    this.isHigh = queueClass.priority === 'high';
    this.awaitsBody = awaitsBody;
    this.endpoint = endpoint;
    this.operationLimits = operationLimits;
    this.lastProgressAt = arrivedAt;
    this.phase = awaitsBody ? 'left' : 'complete';
  }

  /** When half of the time to the deadline is left. */
  get middleAt(): number {
    return this.deadlineAt - this.#maxReserveMs;
  }

  /**
   * How much longer it may wait; 0 or less when it may not.
   * @param delayMs until the wait begins. Default 0
   */
  waitBudgetMs(now: number, delayMs = 0): number {
    const leftMs = this.deadlineAt - this.reserveMs(now) - now - delayMs;
    return Math.min(this.#timeoutMs - this.waitedMsAt(now), leftMs);
  }

  /**
   * How much of the deadline is left to the upstream: at most half of it, since an endpoint may have quick calls beside slow ones. Fixed when the
   * request first has to wait, so that a request that was admitted is not rejected for what is learned later.
   */
  reserveMs(now: number): number {
    this.#reservedMs ??= Math.min(this.#responseTimes.timesOf(this.endpoint).longestMs(now), this.#maxReserveMs);
    return this.#reservedMs;
  }

  /**
   * The response would probably come too late. The shares are of those calls that respond at all: while none does, waiting longer is no better.
   * @param isContended other requests wait: one that is surer to be served in time takes the permit
   */
  isTooLateToSend(now: number, isContended: boolean): boolean {
    const times = this.#responseTimes.timesOf(this.endpoint);
    const inTime = times.shareWithin(now, this.deadlineAt - now);
    const inTimeAtOnce = times.shareWithin(now, 2 * this.#maxReserveMs);
    if (inTime < LEAST_IN_TIME * Math.max(inTimeAtOnce, times.shareWithin(now, Infinity))) return true;
    return isContended && inTime < LEAST_IN_TIME_CONTENDED * inTimeAtOnce;
  }

  beginWait(now: number, wait: PendingWait): void {
    this.expiresAt = now + this.waitBudgetMs(now);
    this.#waitStartedAt = now;
    this.wait = wait;
    this.operationLimits?.addWaiting(1);
  }

  endWait(now: number): PendingWait | undefined {
    const wait = this.wait;
    if (wait !== undefined) this.operationLimits?.addWaiting(-1);
    this.pastWaitsMs = this.waitedMsAt(now);
    this.wait = undefined;
    return wait;
  }

  /** Time waited since the last call of this: each permit reports its own part. */
  takeUnreportedWaitMs(): number {
    const unreportedMs = this.pastWaitsMs - this.#reportedWaitMs;
    this.#reportedWaitMs = this.pastWaitsMs;
    return unreportedMs;
  }

  waitedMsAt(now: number): number {
    return this.pastWaitsMs + (this.wait === undefined ? 0 : now - this.#waitStartedAt);
  }
}

/** What is known of a request when it takes its ticket. */
export type Arrival = Pick<QueueTicket, 'arrivalNumber' | 'deadlineAt' | 'queueClass' | 'awaitsBody' | 'endpoint'> & {
  /** Monotonic instant. */
  readonly arrivedAt: number;
  /** Default: none. */
  readonly operationLimits?: LimitSet | undefined;
};
