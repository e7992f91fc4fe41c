/**
 * The throttle: a request that does not have to wait takes a permit at once; the others wait in a queue. RequestQueue keeps
 * the order and PermitGate decides when a permit may go; this file joins them with the clock, promises, events and the fleet.
 */
import type { Clock } from '../../platform/clock.ts';
import type { SidecarError } from '../../platform/errors.ts';
import { OneShotTimer } from '../pacing/one-shot-timer.ts';
import { readThrottleState } from '../throttle-state.ts';
import { checkQueue } from './queue-check.ts';
import type { FleetHost, FleetMembership } from '../fleet-membership.ts';
import { PermitGate } from '../pacing/permit-gate.ts';
import { ActivePermit, type PermitHost } from '../pacing/active-permit.ts';
import { type TicketHost, QueueTicket, type PendingWait } from './queue-ticket.ts';
import { createRejectionError, type RejectionReason } from '../signals/rejection.ts';
import { SignalLog } from '../signals/signal-log.ts';
import { RefusalObserver } from '../refusal-evidence/refusal-observer.ts';
import { StalledBodyDetector } from './stalled-body-detector.ts';
import type { LearnedState, Permit, QueueClass, RateLimitReport, Throttle } from '../throttle.ts';
import type { ThrottleState, ThrottleTerms, Ticket } from '../throttle.ts';
import type { ThrottleOptions } from '../throttle-options.ts';
import { RequestQueue } from './request-queue.ts';
import { ResponseTimes } from './response-times.ts';

/**
 * The throttle before one upstream. Sets no timer and emits no event before the first request.
 * @throws RangeError when rate or burst are out of range
 */
export function createThrottle(options: ThrottleOptions): Throttle {
  return new QueueingThrottle(options);
}

const NO_WAIT = Promise.resolve();
const DEFAULT_QUEUE_CLASS: QueueClass = { priority: 'normal', caller: '' };

class QueueingThrottle implements Throttle, TicketHost, PermitHost {
  readonly gate: PermitGate;
  readonly refusalObserver: RefusalObserver;
  readonly responseTimes = new ResponseTimes();
  readonly #options: ThrottleOptions;
  readonly clock: Clock;
  readonly #queue: RequestQueue;
  readonly #signals = new SignalLog();
  #terms: ThrottleTerms;
  readonly #permitTimer: OneShotTimer;
  readonly #expiryTimer: OneShotTimer;
  readonly #stalledBodies: StalledBodyDetector;
  readonly #fleet: FleetMembership | undefined;
  #arrivalCount = 0;
  /** No request waits, and no timer is set. */
  #isQuiet = true;
  isShutDown = false;

  constructor(options: ThrottleOptions) {
    const { clock, random, throttle, fleet, learning, restored } = options;
    this.#options = options;
    this.clock = clock;
    this.#terms = options;
    this.#fleet = fleet;
    this.refusalObserver = new RefusalObserver({
      ...{ route: options.route, clock, observe: options.observe },
      configured: () => this.#terms.throttle.refusals ?? [],
    });
    this.gate = new PermitGate({ ...throttle, random, learning, fleet });
    this.#queue = new RequestQueue(throttle.maxInFlight);
    const pump = (): void => this.pump();
    this.#permitTimer = new OneShotTimer((at, run) => clock.exactlyAt(at, run), pump);
    const setTimer = (at: number, run: () => void) => clock.after(at - clock.now(), run);
    this.#expiryTimer = new OneShotTimer(setTimer, pump);
    this.#stalledBodies = new StalledBodyDetector(this.#queue, setTimer, pump);
    if (restored) this.gate.restore(clock.now(), restored.governor, Math.max(0, clock.wallNow() - restored.wallAt));
    fleet?.start(createFleetHost(this.gate, this.#queue, clock, pump));
  }

  get hasSlotWaiters(): boolean {
    return this.#queue.counts.ready > 0 && this.gate.inFlight >= this.gate.inFlightLimit;
  }

  enter(deadlineAt: number, queueClass: QueueClass = DEFAULT_QUEUE_CLASS, awaitsBody = true, endpoint = ''): Ticket {
    const now = this.clock.now();
    const { timeoutMs } = this.#terms.queue;
    const ticket = new QueueTicket(this, this.#arrivalCount++, deadlineAt, timeoutMs, queueClass, awaitsBody);
    ticket.endpoint = endpoint;
    ticket.enteredAt = ticket.lastProgressAt = now;
    const refusal = awaitsBody ? this.#admit(ticket, now) : undefined;
    if (refusal !== undefined) throw refusal;
    return ticket;
  }

  reconfigure(terms: ThrottleTerms): void {
    this.#terms = terms;
    this.#fleet?.reconfigure(terms.throttle);
    this.gate.reconfigure(this.clock.now(), terms.throttle);
    this.#queue.setBodySlots(terms.throttle.maxInFlight);
    this.pump();
  }

  shutDown(): void {
    this.isShutDown = true;
    this.#fleet?.leave();
    const now = this.clock.now();
    for (const ticket of this.#queue.waitingTickets())
      if (ticket.wait !== undefined) this.#reject(ticket, now, 'draining');
    this.pump();
  }

  state(): ThrottleState {
    const { route } = this.#options;
    const now = this.clock.now();
    const parts = { gate: this.gate, queue: this.#queue, terms: this.#terms, fleet: this.#fleet?.state(now) };
    const described = readThrottleState(parts, now, (at) => this.clock.wallNow() - (now - at));
    const refusalProposals = this.refusalObserver.proposals();
    return { route, recentSignals: this.#signals.newestFirst, refusalProposals, ...described };
  }

  snapshot(): LearnedState | undefined {
    const governor = this.gate.snapshot(this.clock.now());
    return governor && { version: 1, wallAt: this.clock.wallNow(), governor };
  }

  waitForBodySlot(ticket: QueueTicket): Promise<void> {
    const error = this.#reasonNotToWait(ticket);
    if (error !== undefined) return Promise.reject(error);
    if (ticket.phase === 'stalled') this.#queue.add(ticket);
    if (ticket.phase !== 'queued') return NO_WAIT;
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    this.#wait(ticket, this.clock.now(), { kind: 'body-slot', resolve, reject });
    return promise;
  }

  recordBodyEnd(ticket: QueueTicket): void {
    if (ticket.phase !== 'queued') return;
    this.#queue.move(ticket, 'received');
    const wait = this.#endWait(ticket, this.clock.now());
    if (wait?.kind === 'body-slot') wait.resolve(undefined);
  }

  waitForPermit(ticket: QueueTicket): Promise<Permit> {
    const error = this.#reasonNotToWait(ticket);
    if (error !== undefined) return Promise.reject(error);
    const now = this.clock.now();
    if (ticket.deadlineAt <= now) return Promise.reject(this.#reject(ticket, now, 'timeout'));
    const permit = this.tryTakePermit(ticket);
    if (permit) return Promise.resolve(permit);
    const refusal = ticket.phase === 'complete' ? this.#admit(ticket, now) : undefined;
    if (refusal !== undefined) return Promise.reject(refusal);
    const { promise, resolve, reject } = Promise.withResolvers<Permit>();
    this.#queue.move(ticket, 'ready');
    this.#wait(ticket, now, { kind: 'permit', resolve, reject });
    return promise;
  }

  tryTakePermit(ticket: QueueTicket): Permit | undefined {
    const { phase } = ticket;
    if (phase === 'left' || ticket.wait !== undefined || this.isShutDown) return undefined;
    if (this.#queue.counts.ready > 0) return undefined;
    const now = this.clock.now();
    const grant = ticket.deadlineAt > now ? this.gate.tryGrant(now, false) : undefined;
    if (grant === undefined) return undefined;
    if ((phase === 'complete' || phase === 'granted') && this.#queue.size === 0) {
      this.#queue.grantUncontended(ticket);
    } else {
      this.#queue.move(ticket, 'granted');
      this.#fillBodySlots(now);
    }
    return new ActivePermit(this, grant, ticket.takeUnreportedWaitMs(), ticket.endpoint);
  }

  retryWaitMs(ticket: QueueTicket, delayMs: number): number {
    const now = this.clock.now();
    const waitMs = Math.max(delayMs, this.gate.retryWaitMs(now, this.#queue.countAheadOfRetry(ticket)));
    // A delay takes no place in the queue, and counts against the deadline alone.
    return waitMs > 0 && waitMs - delayMs >= ticket.waitBudgetMs(now, delayMs) ? Infinity : waitMs;
  }

  leave(ticket: QueueTicket, reason: unknown): void {
    const rejection = ticket.rejectionReason(reason);
    const wait = this.#remove(ticket, ticket.wait === undefined ? 0 : this.clock.now());
    if (rejection !== undefined)
      this.#options.observe({ kind: 'queue-rejected', route: this.#options.route, reason: rejection });
    wait?.reject(reason ?? new DOMException('The request has left the queue', 'AbortError'));
    this.pump();
  }

  recordSpentPermit(waitedMs: number): void {
    this.#options.recordPermit?.(waitedMs);
  }

  recordPause({ signal, fields = {} }: RateLimitReport, pauseMs: number, stated: boolean): void {
    const { status, statedWaitMs } = signal;
    const { observe, route } = this.#options;
    this.#signals.add({ wallAt: this.clock.wallNow(), status, pauseMs, stated, fields });
    observe({ kind: 'rate-limited', route, status, pauseMs, stated, fields });
    this.#rejectTooLateForPause(this.clock.now());
    this.#fleet?.reportRefusal(statedWaitMs);
  }

  /** Brings everything up to the present: time-outs first, so that no permit is spent on a call whose response would come too late. */
  pump(): void {
    const { counts } = this.#queue;
    if (counts.ready === 0 && counts.queued === 0) {
      if (!this.#isQuiet) this.#clearTimers();
      this.#fleet?.setWaiting(0);
      return;
    }
    this.#isQuiet = false;
    const now = this.clock.now();
    this.#expire(now, now, 'timeout');
    for (let next = this.#queue.nextReady; next !== undefined; next = this.#queue.nextReady) {
      if (next.isTooLateToSend(now)) {
        this.#reject(next, now, 'timeout');
        continue;
      }
      const grant = this.gate.tryGrant(now, true);
      if (grant === undefined) break;
      const wait = this.#endWait(next, now);
      this.#queue.move(next, 'granted');
      const permit = new ActivePermit(this, grant, next.takeUnreportedWaitMs(), next.endpoint);
      if (wait?.kind === 'permit') wait.resolve(permit);
    }
    this.#fillBodySlots(now);
    const hasReady = counts.ready > 0;
    this.#permitTimer.set(hasReady ? this.gate.nextTryAt(now) : Infinity);
    this.#expiryTimer.setNoLaterThan(this.#queue.nextExpiryAt);
    this.#fleet?.setWaiting(hasReady ? this.gate.usablePermits(now, this.#queue.size) : 0);
  }

  /** Admits a new ticket to the queue, in another's place if need be. @returns SidecarError QUEUE_FULL, QUEUE_TIMEOUT, DRAINING: it may not wait */
  #admit(ticket: QueueTicket, now: number): SidecarError | undefined {
    if (this.isShutDown) return this.#reject(ticket, now, 'draining');
    this.#expire(now, now, 'timeout');
    const decision = checkQueue(this.gate, this.#queue, this.#terms.queue.max, ticket, now);
    if (decision.kind === 'reject') return this.#reject(ticket, now, decision.reason);
    if (decision.kind === 'evict') this.#reject(decision.ticket, now, 'full');
    if (ticket.awaitsBody) this.#queue.add(ticket);
    // The evicted request may have held a body slot.
    if (decision.kind === 'evict') this.#fillBodySlots(now);
    return undefined;
  }

  #clearTimers(): void {
    this.#isQuiet = true;
    this.#permitTimer.set(Infinity);
    this.#expiryTimer.set(Infinity);
    this.#stalledBodies.reclaimBodySlots(0);
  }

  #reasonNotToWait(ticket: QueueTicket): Error | undefined {
    return ticket.misuseError ?? (this.isShutDown ? this.#reject(ticket, this.clock.now(), 'draining') : undefined);
  }

  #wait(ticket: QueueTicket, now: number, wait: PendingWait): void {
    ticket.beginWait(now, wait);
    this.#queue.trackExpiry(ticket);
    this.#rejectTooLateForPause(now);
    this.pump();
  }

  #endWait(ticket: QueueTicket, now: number): PendingWait | undefined {
    this.#queue.untrackExpiry(ticket);
    return ticket.endWait(now);
  }

  #fillBodySlots(now: number): void {
    if (this.#isQuiet && this.#queue.counts.queued === 0) return;
    this.#isQuiet = false;
    this.#stalledBodies.reclaimBodySlots(now);
    for (let ticket = this.#queue.admitNext(); ticket !== undefined; ticket = this.#queue.admitNext()) {
      ticket.lastProgressAt = now;
      const wait = this.#endWait(ticket, now);
      if (wait?.kind === 'body-slot') wait.resolve(undefined);
    }
  }

  #expire(now: number, by: number, reason: RejectionReason): void {
    for (let ticket = this.#queue.expiringBy(by); ticket !== undefined; ticket = this.#queue.expiringBy(by))
      this.#reject(ticket, now, reason);
  }

  /** Requests that cannot outlast a stated pause are rejected now and not when their time is up. */
  #rejectTooLateForPause(now: number): void {
    this.#expire(now, now, 'timeout');
    this.#expire(now, this.gate.statedPauseUntil(now), 'expected_wait');
  }

  #reject(ticket: QueueTicket, now: number, reason: RejectionReason): SidecarError {
    const wait = this.#remove(ticket, now);
    this.#options.observe({ kind: 'queue-rejected', route: this.#options.route, reason });
    // Past the longest pause a probe goes out, so a client need not stay away for longer.
    const { maxPauseMs } = this.#terms.throttle;
    const waitMs = this.gate.estimateWaitMs(now, this.#queue.countAhead(ticket.queueClass), maxPauseMs);
    const error = createRejectionError(reason, waitMs, ticket.reserveMs(now));
    wait?.reject(error);
    return error;
  }

  #remove(ticket: QueueTicket, now: number): PendingWait | undefined {
    this.#queue.move(ticket, 'left');
    return this.#endWait(ticket, now);
  }
}

function createFleetHost(gate: PermitGate, queue: RequestQueue, clock: Clock, pump: () => void): FleetHost {
  return {
    get isPaused() {
      return gate.isPaused;
    },
    get isIdle() {
      return queue.counts.ready === 0 && gate.inFlight === 0;
    },
    pump() {
      gate.applyRate(clock.now());
      pump();
    },
    pause(statedWaitMs) {
      gate.joinPause(clock.now(), statedWaitMs);
    },
  };
}
