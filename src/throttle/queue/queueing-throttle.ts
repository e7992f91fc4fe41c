/**
 * Admission: who gets in, whose body is read, who gets the next permit, and who is refused. The waiting room keeps the order and
 * the gate says when; here they are joined with the clock, the promises and the events. An uncontended request sets no timer.
 */
import type { Clock } from '../../platform/clock.ts';
import type { SidecarError } from '../../platform/errors.ts';
import { OneShotTimer } from '../pacing/one-shot-timer.ts';
import { readThrottleState } from '../throttle-state.ts';
import { admissionCheck } from './admission-check.ts';
import type { FleetHost, FleetMembership } from '../fleet-membership.ts';
import { PermitGate } from '../pacing/permit-gate.ts';
import type { LimitDecision } from '../pacing/governor-contract.ts';
import type { PermitGrant } from '../pacing/permit-grant.ts';
import { ActivePermit, type PermitHost } from '../pacing/active-permit.ts';
import { type TicketHost, QueueTicket, type PendingWait } from './queue-ticket.ts';
import { createRejectionError, type RejectionReason } from '../signals/rejection.ts';
import { SignalLog } from '../signals/signal-log.ts';
import { StalledBodyDetector } from './stalled-body-detector.ts';
import type { PermitReport, LearnedState, Permit, QueueClass, Throttle } from '../throttle.ts';
import type { ThrottleState, ThrottleTerms, Ticket } from '../throttle.ts';
import type { ThrottleOptions } from '../throttle-options.ts';
import { RequestQueue } from './request-queue.ts';

/**
 * The throttle before one upstream. Sets no timer and observes nothing until somebody enters.
 * @throws RangeError when rate or burst are out of range
 */
export function createThrottle(options: ThrottleOptions): Throttle {
  return new QueueingThrottle(options);
}

const ALREADY_ADMITTED = Promise.resolve();
const DEFAULT_QUEUE_CLASS: QueueClass = { priority: 'normal', caller: '' };

class QueueingThrottle implements Throttle, TicketHost, PermitHost {
  readonly gate: PermitGate;
  readonly #options: ThrottleOptions;
  readonly #queue: RequestQueue;
  readonly #signals = new SignalLog();
  #terms: ThrottleTerms;
  readonly #permitTimer: OneShotTimer;
  readonly #expiryTimer: OneShotTimer;
  readonly #stalledBodies: StalledBodyDetector;
  readonly #fleet: FleetMembership | undefined;
  #arrivalCount = 0;
  isShutDown = false;

  constructor(options: ThrottleOptions) {
    const { clock, random, throttle } = options;
    this.#options = options;
    this.#terms = options;
    this.#fleet = options.fleet;
    this.gate = new PermitGate({ ...throttle, random, learning: options.learning, fleet: this.#fleet });
    this.#queue = new RequestQueue(throttle.maxInFlight);
    const ring = (): void => this.pump();
    this.#permitTimer = new OneShotTimer((at, run) => clock.exactlyAt(at, run), ring);
    const setTimer = (at: number, run: () => void) => clock.after(at - clock.now(), run);
    this.#expiryTimer = new OneShotTimer(setTimer, ring);
    this.#stalledBodies = new StalledBodyDetector(this.#queue, setTimer, ring);
    const { restored } = options;
    if (restored) this.gate.restore(clock.now(), restored.governor, Math.max(0, clock.wallNow() - restored.wallAt));
    this.#fleet?.start(createFleetHost(this.gate, this.#queue, clock, ring));
  }

  now(): number {
    return this.#options.clock.now();
  }

  get hasSlotWaiters(): boolean {
    return this.#queue.nextReady !== undefined && this.gate.inFlight >= this.gate.inFlightLimit;
  }

  enter(deadlineAt: number, standing: QueueClass = DEFAULT_QUEUE_CLASS, hasBody = true): Ticket {
    const now = this.now();
    const { max, timeoutMs } = this.#terms.queue;
    this.#expire(now, now, 'timeout');
    const ticket = new QueueTicket(this, this.#arrivalCount++, deadlineAt, timeoutMs, standing, hasBody);
    if (this.isShutDown) throw this.#reject(ticket, now, 'draining');
    const entry = admissionCheck(this.gate, this.#queue, max, ticket, now);
    if (entry.kind === 'refused') throw this.#reject(ticket, now, entry.reason);
    if (entry.kind === 'in-place-of') this.#reject(entry.loser, now, 'full');
    this.#queue.add(ticket);
    ticket.lastProgressAt = now;
    // The loser may have had its body read: its place goes to whom it is due.
    if (entry.kind === 'in-place-of') this.#fillBodySlots(now);
    return ticket;
  }

  reconfigure(terms: ThrottleTerms): void {
    this.#terms = terms;
    this.#fleet?.reconfigure(terms.throttle);
    this.gate.reconfigure(this.now(), terms.throttle);
    this.#queue.setBodySlots(terms.throttle.maxInFlight);
    this.pump();
  }

  shutDown(): void {
    this.isShutDown = true;
    this.#fleet?.leave();
    const now = this.now();
    for (const ticket of this.#queue.waitingTickets())
      if (ticket.wait !== undefined) this.#reject(ticket, now, 'draining');
    this.pump();
  }

  state(): ThrottleState {
    const { route, clock } = this.#options;
    const now = this.now();
    const fleet = this.#fleet?.state(now);
    const parts = { gate: this.gate, room: this.#queue, terms: this.#terms, fleet };
    const described = readThrottleState(parts, now, (at) => clock.wallNow() - (now - at));
    return { route, recentSignals: this.#signals.newestFirst, ...described };
  }

  snapshot(): LearnedState | undefined {
    const governor = this.gate.snapshot(this.now());
    return governor && { version: 1, wallAt: this.#options.clock.wallNow(), governor };
  }

  waitForBodySlot(ticket: QueueTicket): Promise<void> {
    const fault = this.#reasonNotToWait(ticket);
    if (fault !== undefined) return Promise.reject(fault);
    if (ticket.phase === 'stalled') this.#queue.add(ticket);
    if (ticket.phase !== 'outside') return ALREADY_ADMITTED;
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    this.#wait(ticket, this.now(), { kind: 'place', resolve, reject });
    return promise;
  }

  recordBodyEnd(ticket: QueueTicket): void {
    if (ticket.phase !== 'outside') return;
    this.#queue.move(ticket, 'received');
    const wait = this.#endWait(ticket, this.now());
    if (wait?.kind === 'place') wait.resolve(undefined);
  }

  waitForPermit(ticket: QueueTicket): Promise<Permit> {
    const fault = this.#reasonNotToWait(ticket);
    if (fault !== undefined) return Promise.reject(fault);
    const now = this.now();
    if (ticket.deadlineAt <= now) return Promise.reject(this.#reject(ticket, now, 'timeout'));
    const permit = this.tryTakePermit(ticket);
    if (permit) return Promise.resolve(permit);
    const { promise, resolve, reject } = Promise.withResolvers<Permit>();
    this.#queue.move(ticket, 'ready');
    this.#wait(ticket, now, { kind: 'permit', resolve, reject });
    return promise;
  }

  tryTakePermit(ticket: QueueTicket): Permit | undefined {
    if (this.isShutDown || ticket.misuseError !== undefined || this.#queue.nextReady !== undefined) return undefined;
    const now = this.now();
    const grant = ticket.deadlineAt > now ? this.gate.tryGrant(now, false) : undefined;
    if (grant === undefined) return undefined;
    const permit = this.#handOverPermit(ticket, grant);
    this.#fillBodySlots(now);
    return permit;
  }

  retryWaitMs(ticket: QueueTicket): number {
    const now = this.now();
    const waitMs = this.gate.retryWaitMs(now, this.#queue.countAheadOfRetry(ticket));
    return waitMs > 0 && waitMs >= ticket.waitBudgetMs(now) ? Infinity : waitMs;
  }

  leave(ticket: QueueTicket, reason: unknown): void {
    if (ticket.phase === 'left') return;
    const why = ticket.rejectionReason(reason);
    const wait = this.#remove(ticket, ticket.wait === undefined ? 0 : this.now());
    if (why !== undefined) this.#options.observe({ kind: 'queue-rejected', route: this.#options.route, reason: why });
    wait?.reject(reason ?? new DOMException('The request has left the queue', 'AbortError'));
    this.pump();
  }

  recordSpentPermit(waitedMs: number): void {
    this.#options.observe({ kind: 'permit-granted', route: this.#options.route, waitedMs });
  }

  recordDecision(result: PermitReport, verdict: LimitDecision): void {
    if (verdict.kind !== 'limited' || result.kind !== 'rate-limited') return;
    const { pauseMs, stated } = verdict;
    const { status, fields } = result.signal;
    const { clock, observe, route } = this.#options;
    this.#signals.add({ wallAt: clock.wallNow(), status, pauseMs, stated, fields });
    observe({ kind: 'rate-limited', route, status, pauseMs, stated, fields });
    this.#rejectTooLateForPause(this.now());
    this.#fleet?.reportRefusal(result.signal.statedWaitMs);
  }

  /** Brings everything up to the present: time-outs first, so that no permit is spent on the expired. */
  pump(): void {
    if (this.#queue.size === 0) {
      this.#permitTimer.set(Infinity);
      this.#expiryTimer.set(Infinity);
      this.#stalledBodies.reclaimBodySlots(0);
      this.#fleet?.setWaiting(0);
      return;
    }
    const now = this.now();
    this.#expire(now, now, 'timeout');
    for (let next = this.#queue.nextReady; next !== undefined; next = this.#queue.nextReady) {
      const grant = this.gate.tryGrant(now, true);
      if (grant === undefined) break;
      const wait = this.#endWait(next, now);
      const permit = this.#handOverPermit(next, grant);
      if (wait?.kind === 'permit') wait.resolve(permit);
    }
    this.#fillBodySlots(now);
    this.#permitTimer.set(this.#queue.nextReady === undefined ? Infinity : this.gate.nextTryAt(now));
    this.#expiryTimer.setNoLaterThan(this.#queue.nextExpiryAt);
    this.#fleet?.setWaiting(this.#queue.nextReady === undefined ? 0 : this.gate.usablePermits(now, this.#queue.size));
  }

  #reasonNotToWait(ticket: QueueTicket): Error | undefined {
    return ticket.misuseError ?? (this.isShutDown ? this.#reject(ticket, this.now(), 'draining') : undefined);
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

  #handOverPermit(ticket: QueueTicket, grant: PermitGrant): Permit {
    this.#queue.move(ticket, 'granted');
    return new ActivePermit(this, grant, ticket.takeUnreportedWaitMs());
  }

  #fillBodySlots(now: number): void {
    this.#stalledBodies.reclaimBodySlots(now);
    for (let ticket = this.#queue.admitNext(); ticket !== undefined; ticket = this.#queue.admitNext()) {
      ticket.lastProgressAt = now;
      const wait = this.#endWait(ticket, now);
      if (wait?.kind === 'place') wait.resolve(undefined);
    }
  }

  #expire(now: number, by: number, reason: RejectionReason): void {
    for (let ticket = this.#queue.expiringBy(by); ticket !== undefined; ticket = this.#queue.expiringBy(by))
      this.#reject(ticket, now, reason);
  }

  /** Whoever cannot outlast a stated pause learns it now and not when its time is up. */
  #rejectTooLateForPause(now: number): void {
    this.#expire(now, now, 'timeout');
    this.#expire(now, this.gate.statedPauseUntil(now), 'expected_wait');
  }

  #reject(ticket: QueueTicket, now: number, reason: RejectionReason): SidecarError {
    const wait = this.#remove(ticket, now);
    this.#options.observe({ kind: 'queue-rejected', route: this.#options.route, reason });
    // Past the longest pause a probe goes out, so that nobody need stay away for longer.
    const waitMs = this.gate.estimateWaitMs(now, this.#queue.countAhead(ticket.queueClass));
    const error = createRejectionError(reason, Math.min(waitMs, this.#terms.throttle.maxPauseMs));
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
      return queue.nextReady === undefined && gate.inFlight === 0;
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
