/**
 * One request's ticket: its arrival number, its wait now, and how much longer it may wait: the upstream's own time is reserved. RequestQueue
 * keeps its place, the throttle settles its promises.
 */
import type { Clock } from '../../platform/clock.ts';
import { SidecarError } from '../../platform/errors.ts';
import type { ExpiryEntry } from './expiry-heap.ts';
import type { Permit, QueueClass, Ticket } from '../throttle.ts';
import type { QueueLinks } from './linked-queue.ts';
import type { ResponseTimes } from './response-times.ts';

/** The throttle, as a ticket calls it. */
export interface TicketHost {
  readonly clock: Clock;
  waitForBodySlot(ticket: QueueTicket): Promise<void>;
  waitForPermit(ticket: QueueTicket): Promise<Permit>;
  tryTakePermit(ticket: QueueTicket): Permit | undefined;
  readonly isShutDown: boolean;
  retryWaitMs(ticket: QueueTicket, delayMs: number): number;
  readonly responseTimes: Pick<ResponseTimes, 'longestMs' | 'shortestMs'>;
  /** Of a ticket that is not granted. */
  leave(ticket: QueueTicket, reason: unknown): void;
  recordBodyEnd(ticket: QueueTicket): void;
}

/**
 * `complete`: its body has come, or it has none: it needs no body slot, and does not wait yet · `queued`: waits for a body slot · `buffering`: has one
 * and reads its body · `received`: the whole body came while it was queued · `stalled`: its body stopped coming, and it lost the slot ·
 * `ready`: waits for a permit · `granted`: has or had a permit and waits for none · `left`: not in the throttle.
 */
export type TicketPhase = 'complete' | 'queued' | 'received' | 'buffering' | 'stalled' | 'ready' | 'granted' | 'left';

/** The promise that a ticket waits on. */
export type PendingWait =
  | {
      readonly kind: 'body-slot';
      readonly resolve: (nothing: undefined) => void;
      readonly reject: (reason: unknown) => void;
    }
  | { readonly kind: 'permit'; readonly resolve: (permit: Permit) => void; readonly reject: (reason: unknown) => void };

/** The public fields are state that the throttle keeps on the ticket; only the throttle and its queue write them. */
export class QueueTicket implements Ticket, QueueLinks<QueueTicket>, ExpiryEntry {
  readonly arrivalNumber: number;
  readonly deadlineAt: number;
  readonly queueClass: QueueClass;
  /** Its body has to be read, which takes a slot. */
  readonly awaitsBody: boolean;
  endpoint = '';
  /** Monotonic instant. */
  enteredAt = 0;
  phase: TicketPhase;
  /** Written by the caller's queue. */
  holdsBodySlot = false;
  /** Monotonic instant of the last body bytes, or of the grant of the slot. */
  lastProgressAt = 0;
  /** Undefined while it does not wait. */
  wait: PendingWait | undefined;
  /** When the present wait ends unserved. */
  expiresAt = Infinity;
  older: QueueTicket | undefined;
  younger: QueueTicket | undefined;
  queue: object | undefined;
  expiryHeapIndex = -1;
  readonly #host: TicketHost;
  readonly #timeoutMs: number;
  #reservedMs: number | undefined;
  #pastWaitsMs = 0;
  #waitStartedAt = 0;
  #reportedWaitMs = 0;

  /** @param timeoutMs how long all waits together may take */
  constructor(
    host: TicketHost,
    arrivalNumber: number,
    deadlineAt: number,
    timeoutMs: number,
    queueClass: QueueClass,
    awaitsBody = true,
  ) {
    this.#host = host;
    this.arrivalNumber = arrivalNumber;
    this.deadlineAt = deadlineAt;
    this.queueClass = queueClass;
    this.#timeoutMs = timeoutMs;
    this.awaitsBody = awaitsBody;
    this.phase = awaitsBody ? 'left' : 'complete';
  }

  /** Why it cannot begin to wait; undefined when it can. */
  get misuseError(): Error | undefined {
    if (this.phase === 'left') return new DOMException('The request has left the queue', 'AbortError');
    return this.wait === undefined ? undefined : new Error('The ticket waits already.');
  }

  get waitedMs(): number {
    return this.wait === undefined ? this.#pastWaitsMs : this.#waitedMsAt(this.#host.clock.now());
  }

  get hasBodySlot(): boolean {
    return this.phase !== 'queued' && this.phase !== 'left' && this.wait === undefined && !this.#host.isShutDown;
  }

  recordBodyBytes(now: number): boolean {
    this.lastProgressAt = now;
    return this.phase !== 'stalled';
  }

  recordBodyEnd(): void {
    this.#host.recordBodyEnd(this);
  }

  waitForBodySlot(): Promise<void> {
    return this.#host.waitForBodySlot(this);
  }

  waitForPermit(): Promise<Permit> {
    return this.#host.waitForPermit(this);
  }

  tryTakePermit(): Permit | undefined {
    return this.#host.tryTakePermit(this);
  }

  retryWaitMs(delayMs = 0): number {
    return this.#host.retryWaitMs(this, delayMs);
  }

  leave(reason?: unknown): void {
    if (this.phase === 'granted') this.phase = 'left';
    else if (this.phase !== 'left') this.#host.leave(this, reason);
  }

  /** What leaving for `reason` counts as; undefined when it leaves no queue, or failed on its own. */
  rejectionReason(reason: unknown): 'draining' | 'client_left' | undefined {
    // A request that reads its body waits on no promise, but is in the queue.
    const isQueued = this.wait !== undefined || (reason !== undefined && this.#isReading());
    if (!isQueued) return undefined;
    if (this.#host.isShutDown) return 'draining';
    return reason instanceof SidecarError ? undefined : 'client_left';
  }

  /**
   * How much longer it may wait; 0 or less when it may not.
   * @param delayMs until the wait begins. Default 0
   */
  waitBudgetMs(now: number, delayMs = 0): number {
    const leftMs = this.deadlineAt - this.reserveMs(now) - now - delayMs;
    return Math.min(this.#timeoutMs - this.#waitedMsAt(now), leftMs);
  }

  /**
   * How much of the deadline is left to the upstream: at most half of it, since an endpoint may have quick calls beside slow ones. Fixed when the
   * request first has to wait, so that a request that was admitted is not refused for what is learned later.
   */
  reserveMs(now: number): number {
    this.#reservedMs ??= Math.min(this.#host.responseTimes.longestMs(now, this.endpoint), this.#maxReserveMs);
    return this.#reservedMs;
  }

  /** The response would come too late: almost no call of the endpoint responds within half of the deadline, and less is left than they need. */
  isTooLateToSend(now: number): boolean {
    const { responseTimes } = this.#host;
    if (this.deadlineAt - now >= responseTimes.longestMs(now, this.endpoint)) return false;
    const shortestMs = responseTimes.shortestMs(now, this.endpoint);
    return shortestMs > this.#maxReserveMs && shortestMs < Infinity;
  }

  beginWait(now: number, wait: PendingWait): void {
    this.expiresAt = now + this.waitBudgetMs(now);
    this.#waitStartedAt = now;
    this.wait = wait;
  }

  /** Ends the present wait and returns it, so that the caller settles it. */
  endWait(now: number): PendingWait | undefined {
    const wait = this.wait;
    this.#pastWaitsMs = this.#waitedMsAt(now);
    this.wait = undefined;
    return wait;
  }

  /** Time waited since the last call of this: each permit reports its own part. */
  takeUnreportedWaitMs(): number {
    const unreportedMs = this.#pastWaitsMs - this.#reportedWaitMs;
    this.#reportedWaitMs = this.#pastWaitsMs;
    return unreportedMs;
  }

  get #maxReserveMs(): number {
    return (this.deadlineAt - this.enteredAt) / 2;
  }

  #isReading(): boolean {
    const { phase } = this;
    return phase === 'buffering' || phase === 'received' || phase === 'stalled' || phase === 'complete';
  }

  #waitedMsAt(now: number): number {
    return this.#pastWaitsMs + (this.wait === undefined ? 0 : now - this.#waitStartedAt);
  }
}
