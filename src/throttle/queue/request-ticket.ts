/**
 * A ticket as its request holds it: waits for a body slot and for permits, and leaves. A request that need not wait takes its permit here,
 * and no list of the queue is touched. What changes the waits of other requests is the throttle's.
 */
import { SidecarError } from '../../platform/errors.ts';
import type { QueueRejectionReason } from '../../telemetry/events.ts';
import { ActivePermit, type PermitHost } from '../pacing/active-permit.ts';
import type { ShadowCall } from './shadow.ts';
import type { RejectionReason } from './rejection.ts';
import type { Permit, Ticket } from '../throttle.ts';
import { type Arrival, type PendingWait, QueueTicket } from './queue-ticket.ts';
import type { RequestQueue } from './request-queue.ts';

/** The throttle, as its tickets call it. */
export interface TicketHost extends PermitHost {
  readonly queue: RequestQueue;
  readonly isShutDown: boolean;
  readonly isObserving: boolean;
  /** Lets a new ticket wait, in another's place if need be. @returns why it may not: QUEUE_FULL, QUEUE_TIMEOUT, DRAINING */
  enqueue(ticket: QueueTicket, now: number): SidecarError | undefined;
  startWait(ticket: QueueTicket, now: number, wait: PendingWait): void;
  reject(ticket: QueueTicket, now: number, reason: RejectionReason): SidecarError;
  recordRejection(reason: QueueRejectionReason): void;
  /** Gives free body slots to the next tickets. */
  fillBodySlots(now: number): void;
}

const NO_WAIT = Promise.resolve();

export class RequestTicket extends QueueTicket implements Ticket {
  readonly #throttle: TicketHost;
  /** Undefined unless the request came while the throttle observed. To be called with each attempt. */
  enterShadow: ((now: number) => ShadowCall) | undefined;

  constructor(throttle: TicketHost, arrival: Arrival, timeoutMs: number) {
    super(throttle.responseTimes, arrival, timeoutMs);
    this.#throttle = throttle;
  }

  get waitedMs(): number {
    return this.wait === undefined ? this.pastWaitsMs : this.waitedMsAt(this.#throttle.clock.now());
  }

  get hasBodySlot(): boolean {
    return this.phase !== 'queued' && this.phase !== 'left' && this.wait === undefined && !this.#throttle.isShutDown;
  }

  waitForBodySlot(): Promise<void> {
    const error = this.#reasonNotToWait();
    if (error !== undefined) return Promise.reject(error);
    if (this.phase === 'stalled') this.#throttle.queue.add(this);
    if (this.phase !== 'queued') return NO_WAIT;
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    this.#throttle.startWait(this, this.#throttle.clock.now(), { kind: 'body-slot', resolve, reject });
    return promise;
  }

  recordBodyBytes(now: number): boolean {
    this.lastProgressAt = now;
    return this.phase !== 'stalled';
  }

  recordBodyEnd(): void {
    if (this.phase !== 'queued') return;
    const { queue, clock } = this.#throttle;
    queue.move(this, 'received');
    const wait = queue.endWait(this, clock.now());
    if (wait?.kind === 'body-slot') wait.resolve(undefined);
  }

  waitForPermit(): Promise<Permit> {
    const error = this.#reasonNotToWait();
    if (error !== undefined) return Promise.reject(error);
    const { queue, clock, stalledResponses } = this.#throttle;
    const mayFreePlace = !stalledResponses.isEmpty && queue.counts.ready === 0;
    const now = clock.now();
    if (this.deadlineAt <= now) return Promise.reject(this.#throttle.reject(this, now, 'timeout'));
    let permit = this.tryTakePermit(now);
    // Where no request may wait, a place that a stalled response holds is no reason to reject this one.
    if (permit === undefined && mayFreePlace && stalledResponses.freePlace(now)) permit = this.tryTakePermit(now);
    if (permit) return Promise.resolve(permit);
    const rejection = this.phase === 'complete' ? this.#throttle.enqueue(this, now) : undefined;
    if (rejection !== undefined) return Promise.reject(rejection);
    const { promise, resolve, reject } = Promise.withResolvers<Permit>();
    queue.move(this, this.gate === undefined ? 'ready' : 'held');
    this.#throttle.startWait(this, now, { kind: 'permit', resolve, reject });
    return promise;
  }

  tryTakePermit(now = this.#throttle.clock.now()): Permit | undefined {
    const { queue, governor, isShutDown, isObserving, lanes } = this.#throttle;
    if (this.phase === 'left' || this.wait !== undefined || isShutDown) return undefined;
    if (lanes.isLearning || this.operationLimits !== undefined) queue.changeGate(this, lanes.gateOf(this));
    const isBehind =
      queue.counts.ready > 0 || (this.gate !== undefined && (queue.laneOf(this.gate)?.heldCount ?? 0) > 0);
    if (isBehind || this.deadlineAt <= now) return undefined;
    const grant = (isObserving || lanes.isLearning ? lanes : governor).tryTake(now, false, this);
    if (grant === undefined) return undefined;
    if (!queue.tryGrantUncontended(this)) {
      queue.move(this, 'granted');
      this.#throttle.fillBodySlots(now);
    }
    const waitedMs = this.pastWaitsMs > 0 ? this.takeUnreportedWaitMs() : 0;
    const permit = new ActivePermit(this.#throttle, grant, waitedMs, this);
    if (this.enterShadow !== undefined) permit.shadow = this.enterShadow(now);
    return permit;
  }

  retryWaitMs(delayMs = 0): number {
    const { queue, clock, governor, isObserving } = this.#throttle;
    if (isObserving) return delayMs;
    const now = clock.now();
    const laneMs = (this.gate?.governor?.nthAt(now, 0) ?? now) - now;
    const retryMs = governor.retryAt(now, queue.countAheadOfRetry(this), this) - now;
    const expectedMs = Math.max(delayMs, laneMs, retryMs);
    // A delay takes no place in the queue, and counts against the deadline alone.
    return expectedMs > 0 && expectedMs - delayMs >= this.waitBudgetMs(now, delayMs) ? Infinity : expectedMs;
  }

  leave(reason?: unknown): void {
    if (this.phase === 'granted') this.phase = 'left';
    if (this.phase === 'left') return;
    const rejection = this.#rejectionReason(reason);
    const { queue, clock } = this.#throttle;
    const wait = queue.remove(this, this.wait === undefined ? 0 : clock.now());
    if (rejection !== undefined) this.#throttle.recordRejection(rejection);
    wait?.reject(reason ?? abortError());
    if (!this.#throttle.isQuiet) this.#throttle.pump();
  }

  #reasonNotToWait(): Error | undefined {
    if (this.phase === 'left') return abortError();
    if (this.wait !== undefined) return new Error('The ticket waits already.');
    const { clock, isShutDown } = this.#throttle;
    return isShutDown ? this.#throttle.reject(this, clock.now(), 'draining') : undefined;
  }

  /** What leaving for `reason` counts as; undefined when it leaves no queue, or failed on its own. */
  #rejectionReason(reason: unknown): QueueRejectionReason | undefined {
    // A request that reads its body waits on no promise, but is in the queue.
    const isReading = this.phase !== 'queued' && this.phase !== 'ready';
    if (this.wait === undefined && (reason === undefined || !isReading)) return undefined;
    if (this.#throttle.isShutDown) return 'draining';
    return reason instanceof SidecarError ? undefined : 'client_left';
  }
}

function abortError(): DOMException {
  return new DOMException('The request has left the queue', 'AbortError');
}
