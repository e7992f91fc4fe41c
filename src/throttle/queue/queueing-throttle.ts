/**
 * The throttle: a request that does not have to wait takes a permit at once; the others wait in a queue. RequestQueue keeps the order,
 * Governor decides when a permit may go, and RequestTicket is a request's part of it; this file joins them with clock, events and fleet.
 */
import type { Clock, Random } from '../../platform/clock.ts';
import type { SidecarError } from '../../platform/errors.ts';
import type { EventObserver, QueueRejectionReason, SuspectStatus } from '../../telemetry/events.ts';
import type { RecordPermit } from '../../telemetry/request-record.ts';
import type { ReceivedCall } from '../declared/call-match.ts';
import type { DeclaredLimits } from '../declared/declared-limits.ts';
import type { FleetMembership } from '../fleet-membership.ts';
import { ActivePermit } from '../pacing/active-permit.ts';
import { MAX_ASSUMED_WAIT_MS } from '../pacing/assumed-refusals.ts';
import { ANY_CALL } from '../pacing/gate.ts';
import { Governor } from '../pacing/governor.ts';
import type { Lane, LaneGrant } from '../lanes/lane.ts';
import { LaneSet } from '../lanes/lane-set.ts';
import { OneShotTimer } from '../pacing/one-shot-timer.ts';
import { createFleetHost } from './fleet-host.ts';
import { RefusalReports } from './refusal-reports.ts';
import { createRejectionError, type RejectionReason } from './rejection.ts';
import type { LearnedState, QueueClass, RateLimitReport, RateSettings, Throttle } from '../throttle.ts';
import type { ThrottleState, ThrottleTerms, Ticket } from '../throttle.ts';
import type { QueueLane } from './queue-lane.ts';
import type { PendingWait, QueueTicket } from './queue-ticket.ts';
import { RequestQueue } from './request-queue.ts';
import { RequestTicket, type TicketHost } from './request-ticket.ts';
import { ResponseTimes } from './response-times.ts';
import { Shadow } from './shadow.ts';
import { StalledResponses } from './stalled-responses.ts';

export interface ThrottleOptions extends ThrottleTerms {
  /** The route's configured name, for events and state. */
  readonly route: string;
  /** What an earlier process had learned. */
  readonly restored?: LearnedState | undefined;
  readonly fleet?: FleetMembership | undefined;
  /** Asks the store of the declared limits, if it is not a fleet's, for permits. Default: there is none. */
  readonly requestPermits?: (() => void) | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: EventObserver;
  readonly recordPermit?: RecordPermit;
}

/**
 * The throttle before one upstream. Sets no timer and emits no event before the first request.
 * @throws RangeError when rate or burst are out of range
 */
export function createThrottle(options: ThrottleOptions): Throttle {
  return new QueueingThrottle(options);
}

/** A body without a byte for this long has stalled. */
const BODY_STALLED_AFTER_MS = 1000;
/** Limits the checks when bodies come in drips. */
const MIN_BODY_CHECK_INTERVAL_MS = 50;
const DEFAULT_QUEUE_CLASS: QueueClass = { priority: 'normal', caller: '' };

class QueueingThrottle implements Throttle, TicketHost {
  readonly governor: Governor;
  readonly queue: RequestQueue;
  readonly responseTimes: ResponseTimes;
  readonly lanes: LaneSet;
  readonly stalledResponses: StalledResponses;
  readonly #options: ThrottleOptions;
  readonly clock: Clock;
  readonly recordPermit: RecordPermit | undefined;
  readonly #refusals: RefusalReports;
  #terms: ThrottleTerms;
  readonly #permitTimer: OneShotTimer;
  readonly #expiryTimer: OneShotTimer;
  readonly #stalledBodyTimer: OneShotTimer;
  #stalledBodyCheckAt = -Infinity;
  readonly #fleet: FleetMembership | undefined;
  /** When a waiting call may first have to be sent in spite of an assumed limit. */
  #overdueAt = Infinity;
  #arrivalCount = 0;
  isQuiet: boolean;
  isObserving: boolean;
  /** Undefined unless it observes. */
  #shadow: Shadow | undefined;
  #hasTimers = false;
  isShutDown = false;

  constructor(options: ThrottleOptions) {
    const { clock, random, throttle, fleet, restored } = options;
    this.#options = options;
    this.clock = clock;
    this.recordPermit = options.recordPermit;
    this.#terms = options;
    this.#fleet = fleet;
    this.isQuiet = fleet === undefined;
    this.isObserving = throttle.mode === 'observe';
    const toEpoch = (now: number): number => clock.wallNow() - clock.now() + now;
    const requestPermits = fleet === undefined ? options.requestPermits : () => fleet.requestPermits();
    this.governor = new Governor({ ...this.#governorSettings, random, fleet, toEpoch, requestPermits });
    this.queue = new RequestQueue(this.#bodySlots);
    this.responseTimes = new ResponseTimes();
    this.lanes = new LaneSet({
      route: this.governor,
      times: this.responseTimes,
      settings: () => this.#terms.throttle,
      random,
      queue: this.queue,
    });
    const pump = (): void => this.pump();
    this.#permitTimer = new OneShotTimer((at, run) => clock.exactlyAt(at, run), pump);
    const setTimer = (at: number, run: () => void) => clock.after(at - clock.now(), run);
    this.#expiryTimer = new OneShotTimer(setTimer, pump);
    this.#stalledBodyTimer = new OneShotTimer(setTimer, pump);
    this.stalledResponses = new StalledResponses(this.governor, () => this.#terms.throttle, setTimer, pump);
    this.#refusals = new RefusalReports(options, this.governor, () => this.#terms.throttle.refusals ?? []);
    if (this.isObserving) this.#shadow = this.#createShadow();
    if (restored) this.#restore(restored);
    fleet?.start(createFleetHost(this.governor, this.queue, clock, pump));
  }

  get declaredLimits(): DeclaredLimits | undefined {
    return this.governor.declared;
  }

  get hasSlotWaiters(): boolean {
    return this.queue.counts.ready > 0 && this.governor.inFlight >= this.governor.inFlightLimit;
  }

  enter(
    deadlineAt: number,
    queueClass: QueueClass = DEFAULT_QUEUE_CLASS,
    awaitsBody = true,
    endpoint = '',
    arrivedAt = this.clock.now(),
    call?: ReceivedCall,
  ): Ticket {
    const shadow = this.#shadow;
    // No body slot limits what is only observed.
    if (shadow !== undefined && awaitsBody) return this.enter(deadlineAt, queueClass, false, endpoint, arrivedAt, call);
    const arrivalNumber = this.#arrivalCount++;
    const { limits = [] } = this.#terms.throttle;
    const operationLimits = call && limits.length > 0 ? this.governor.declared?.select(call, arrivedAt) : undefined;
    const arrival = { arrivalNumber, arrivedAt, deadlineAt, queueClass, awaitsBody, endpoint, operationLimits };
    const ticket = new RequestTicket(this, arrival, this.#terms.queue.timeoutMs);
    ticket.enterShadow = shadow?.enter(arrivedAt, deadlineAt, queueClass, endpoint, call);
    if (this.lanes.isLearning || operationLimits !== undefined) ticket.gate = this.lanes.gateOf(ticket);
    const rejection = awaitsBody ? this.enqueue(ticket, arrivedAt) : undefined;
    if (rejection !== undefined) throw rejection;
    return ticket;
  }

  reconfigure(terms: ThrottleTerms): void {
    this.#terms = terms;
    this.isObserving = terms.throttle.mode === 'observe';
    this.#fleet?.reconfigure(terms.throttle);
    if (this.#shadow !== undefined && !this.isObserving) {
      this.#shadow.end();
      this.#shadow = undefined;
      // As many calls as were in flight may be so from now on.
      this.governor.ratePolicy.learner?.adopt([], terms.throttle.maxInFlight);
    }
    this.governor.reconfigure(this.clock.now(), this.#governorSettings);
    this.lanes.reconfigure(this.clock.now());
    this.queue.setBodySlots(this.#bodySlots);
    if (this.#shadow !== undefined) this.#shadow.reconfigure(terms);
    else if (this.isObserving) this.#shadow = this.#createShadow();
    this.pump();
  }

  /** Connections and memory bound the calls that are observed, and no setting of the throttle does. */
  get #governorSettings(): RateSettings {
    const { throttle } = this.#terms;
    return this.isObserving ? { ...throttle, maxStreams: Infinity } : throttle;
  }

  get #bodySlots(): number {
    return this.isObserving ? Infinity : this.#terms.throttle.maxInFlight;
  }

  #createShadow(): Shadow {
    return new Shadow(this.#options, this.governor, (own) => {
      const { throttle, queue } = this.#terms;
      const terms: ThrottleTerms = { throttle: { ...throttle, mode: 'enforce' }, queue };
      const alone = { restored: undefined, requestPermits: undefined };
      return new QueueingThrottle({ ...this.#options, ...terms, ...alone, ...own });
    });
  }

  shutDown(): void {
    this.isShutDown = true;
    this.#shadow?.end();
    this.#fleet?.leave();
    const now = this.clock.now();
    for (const ticket of this.queue.waitingTickets())
      if (ticket.wait !== undefined) this.reject(ticket, now, 'draining');
    this.pump();
  }

  state(): ThrottleState {
    const now = this.clock.now();
    const { governor, queue } = this;
    const { throttle, queue: queueTerms } = this.#terms;
    const stalled = this.stalledResponses.count(now);
    return {
      route: this.#options.route,
      mode: throttle.rate === 'auto' ? 'auto' : 'static',
      rate: this.isObserving ? Infinity : governor.permits.rate,
      maxRate: throttle.maxRate,
      pausedMs: governor.pausedMs(now),
      heldBy: queue.size > 0 || governor.certainAt(now) > now ? governor.heldBy(now) : undefined,
      disbelievedFields: governor.disbelievedFields(now),
      queued: queue.size,
      queueMax: queueTerms.max,
      queuedByPriority: queue.sizesByPriority(),
      readingBodies: queue.counts.buffering,
      stalledBodies: queue.counts.stalled,
      stalledResponses: stalled.all,
      stalledInFlight: stalled.inFlight,
      inFlight: governor.inFlight,
      streams: governor.streams,
      inFlightLimit: this.isObserving ? Infinity : governor.inFlightLimit,
      recentSignals: this.#refusals.recentSignals,
      learned: governor.ratePolicy.learner?.learned((at) => this.clock.wallNow() - (now - at)),
      assumed: this.#refusals.listAssumed(now),
      usage: governor.usage(now),
      fleet: this.#fleet?.state(now),
      limits: governor.declared?.state(now),
      lanes: this.lanes.list(now, (at) => this.clock.wallNow() - (now - at)),
      refusedOperation: this.lanes.refusedOperation,
      observed: this.#shadow?.state(),
    };
  }

  #restore({ wallAt, governor, lanes = [] }: LearnedState): void {
    const now = this.clock.now();
    const ageMs = Math.max(0, this.clock.wallNow() - wallAt);
    this.governor.restore(now, governor, ageMs);
    this.lanes.restore(now, lanes, ageMs);
  }

  snapshot(): LearnedState | undefined {
    // The next process would take it for certain.
    if (this.governor.isAssumed) return undefined;
    const now = this.clock.now();
    const governor = this.governor.ratePolicy.learner?.snapshot(now);
    const lanes = this.lanes.snapshot(now);
    const wallAt = this.clock.wallNow();
    if (lanes.length > 0) return { version: 1, wallAt, governor, lanes };
    return governor && { version: 1, wallAt, governor };
  }

  recordPause(report: RateLimitReport, pauseMs: number, stated: boolean, lane?: Lane): void {
    this.#refusals.recordRefused(report, pauseMs, stated, lane === undefined ? 'route' : 'operation');
    if (this.#shadow !== undefined) {
      this.#shadow.recordRefusal();
    } else if (lane !== undefined) {
      this.#rejectTooLateInLane(lane, this.clock.now());
    } else {
      this.#rejectTooLateForPause(this.clock.now());
      this.#fleet?.reportRefusal(report.signal.statedWaitMs);
    }
  }

  /** The stated pause of a lane rejects its own requests at once, and no others. */
  #rejectTooLateInLane({ governor }: Lane, now: number): void {
    const certainAt = governor.certainAt(now);
    if (certainAt <= now) return;
    const tooLate = this.queue.waitingTickets().filter(({ wait, expiresAt }) => wait && expiresAt <= certainAt);
    for (const ticket of tooLate) if (ticket.gate?.governor === governor) this.reject(ticket, now, 'expected_wait');
  }

  recordSuspect(status: SuspectStatus, isAssumed: boolean): void {
    if (isAssumed) this.#shadow?.recordRefusal();
    this.#refusals.recordSuspect(status, isAssumed && !this.isObserving);
  }

  /** Brings everything up to the present: time-outs first, so that no permit is spent on a call whose response would come too late. */
  pump(): void {
    const { counts } = this.queue;
    if (counts.ready === 0 && counts.queued === 0 && counts.held === 0) {
      if (this.#hasTimers) this.#clearTimers();
      this.#fleet?.setWaiting(0);
      return;
    }
    this.isQuiet = false;
    this.#hasTimers = true;
    const now = this.clock.now();
    this.#expire(now, now, 'timeout');
    for (const lane of this.queue.lanes) this.#releaseHeld(lane, now);
    let next = this.#nextReady(now);
    for (; next !== undefined; next = this.#nextReady(now)) {
      if (!this.isObserving && next.isTooLateToSend(now, counts.ready > 1)) {
        this.reject(next, now, 'timeout');
        continue;
      }
      const grant = this.lanes.tryTake(now, true, next);
      if (grant === undefined && next.gate !== undefined && next.gate.nextAt(now, next.isHigh) > now) {
        this.queue.move(next, 'held');
        continue;
      }
      if (grant === undefined) {
        if (this.stalledResponses.isEmpty || !this.stalledResponses.freePlace(now)) break;
        continue;
      }
      this.#grant(next, grant, now);
    }
    this.fillBodySlots(now);
    this.#setTimers(now);
  }

  /** One request of a lane at a time is among those that may go: the gate is asked again when it has its permit. */
  #releaseHeld(lane: QueueLane | undefined, now: number): void {
    const ticket = lane === undefined || lane.readyCount > 0 || lane.heldCount === 0 ? undefined : lane.openTicket(now);
    if (ticket !== undefined) this.queue.release(ticket);
  }

  #setTimers(now: number): void {
    const { counts } = this.queue;
    const hasReady = counts.ready > 0;
    const first = hasReady ? this.#firstToOpen(now) : undefined;
    let nextAt = first === undefined ? Infinity : this.governor.nextAt(now, first);
    nextAt = Math.max(nextAt, this.lanes.heldUpUntil(undefined));
    for (const lane of this.queue.lanes) {
      if (lane.readyCount > 0 || lane.heldCount === 0) continue;
      lane.gate.recordHeld(now);
      nextAt = Math.min(nextAt, lane.opensAt(now));
    }
    this.#permitTimer.set(nextAt);
    this.#expiryTimer.setNoLaterThan(this.queue.nextExpiryAt);
    if (this.governor.isAssumed && this.#overdueAt > now) this.#expiryTimer.setNoLaterThan(this.#overdueAt);
    this.#fleet?.setWaiting(first === undefined ? 0 : this.governor.wanted(now, this.queue.size, first));
  }

  #grant(ticket: QueueTicket, grant: LaneGrant, now: number): void {
    const wait = this.queue.endWait(ticket, now);
    this.queue.move(ticket, 'granted');
    const permit = new ActivePermit(this, grant, ticket.takeUnreportedWaitMs(), ticket);
    if (wait?.kind === 'permit') wait.resolve(permit);
    if (ticket.gate !== undefined) this.#releaseHeld(this.queue.laneOf(ticket.gate), now);
  }

  /** Calls that an assumed limit has delayed for long, or until they would be rejected, are sent. */
  #sendOverdue(now: number): void {
    if (!this.governor.isAssumed || now < this.#overdueAt) return;
    this.#overdueAt = Infinity;
    for (const ticket of this.queue.waitingTickets()) {
      if (ticket.wait?.kind !== 'permit' || ticket.phase === 'held') continue;
      const dueAt = Math.min(ticket.expiresAt, now - ticket.waitedMsAt(now) + MAX_ASSUMED_WAIT_MS);
      const grant = dueAt <= now ? this.governor.tryTakeOverdue(now, ticket) : undefined;
      if (grant === undefined) this.#overdueAt = Math.min(this.#overdueAt, dueAt);
      else this.#grant(ticket, grant, now);
    }
  }

  /** A queue that an assumed limit has filled rejects no call: the next one is sent. */
  #makeRoom(now: number): void {
    const next = this.queue.size < this.#terms.queue.max ? undefined : this.#nextReady(now);
    const grant = next && this.governor.tryTakeOverdue(now, next);
    if (next !== undefined && grant !== undefined) this.#grant(next, grant, now);
  }

  /** While declared limits leave only their reserve, requests of high priority pass the others. */
  #nextReady(now: number): QueueTicket | undefined {
    const other = this.governor.pause.wantsAnotherProbe ? this.queue.nextInTurn : undefined;
    const next = other ?? this.queue.nextReady;
    const limits = this.governor.declared?.forAll;
    if (limits === undefined || next === undefined || next.isHigh) return next;
    const isReserved = limits.nthAt(now, 0) > now && limits.nthAt(now, 0, true) <= now;
    return isReserved ? (this.queue.nextReadyHigh ?? next) : next;
  }

  /** As `#nextReady`, at the instant when the first of the waiting requests may go. */
  #firstToOpen(now: number): QueueTicket | undefined {
    const next = this.#nextReady(now);
    const limits = this.governor.declared?.forAll;
    if (limits === undefined || next === undefined || next.isHigh || limits.nthAt(now, 0) <= now) return next;
    return this.queue.nextReadyHigh ?? next;
  }

  enqueue(ticket: QueueTicket, now: number): SidecarError | undefined {
    if (this.isShutDown) return this.reject(ticket, now, 'draining');
    this.#expire(now, now, 'timeout');
    if (this.governor.isAssumed) this.#makeRoom(now);
    const place = this.#findPlace(ticket, now);
    if (typeof place === 'string') return this.reject(ticket, now, place);
    if (place !== undefined) this.reject(place, now, 'full');
    if (ticket.awaitsBody) this.queue.add(ticket);
    // The evicted request may have held a body slot.
    if (place !== undefined) this.fillBodySlots(now);
    return undefined;
  }

  /**
   * Whether a new request may wait: not when the queue is full, or when it certainly cannot be served in time. Changes nothing.
   * @returns why it may not; or the ticket that is to be rejected in its favour, undefined when the queue has room
   */
  #findPlace(ticket: QueueTicket, now: number): RejectionReason | QueueTicket | undefined {
    const { governor, queue } = this;
    const { max } = this.#terms.queue;
    const queued = queue.size;
    if (governor.pause.rejectsNew(now, queued > 0)) return 'expected_wait';
    const { gate } = ticket;
    const inLane = gate?.governor?.available(now, ANY_CALL) ?? Infinity;
    const grantable = Math.min(governor.available(now, ticket), inLane);
    if (queued === 0 && grantable >= 1 && ticket.deadlineAt > now) return undefined;
    const ahead = queue.countAhead(ticket.queueClass, ticket.gate);
    const declaredWaitMs = governor.declaredAt(now, ahead, ticket) - now;
    if (declaredWaitMs > 0 && declaredWaitMs >= ticket.waitBudgetMs(now)) return 'quota';
    // A request that could be granted at once takes no place in the queue.
    const isFull = queued >= max + grantable;
    const evicted = isFull ? queue.evictionCandidate(ticket.queueClass, max, gate) : undefined;
    if (isFull && evicted === undefined) return 'full';
    const aheadInLane = queue.countAheadInLane(ticket.queueClass, gate);
    const inLaneAt = gate?.governor?.earliestAt(now, aheadInLane, ANY_CALL) ?? now;
    const leastWaitMs = Math.max(governor.earliestAt(now, ahead, ticket), inLaneAt) - now;
    const isTooLong = leastWaitMs > 0 && leastWaitMs >= ticket.waitBudgetMs(now);
    return isTooLong || ticket.deadlineAt <= now ? 'expected_wait' : evicted;
  }

  startWait(ticket: QueueTicket, now: number, wait: PendingWait): void {
    this.queue.beginWait(ticket, now, wait);
    this.#overdueAt = Math.min(this.#overdueAt, ticket.expiresAt, now + MAX_ASSUMED_WAIT_MS - ticket.pastWaitsMs);
    this.#rejectTooLateForPause(now);
    this.pump();
  }

  fillBodySlots(now: number): void {
    if (!this.#hasTimers && this.queue.counts.queued === 0) return;
    this.isQuiet = false;
    this.#hasTimers = true;
    this.#reclaimBodySlots(now);
    for (let ticket = this.queue.admitNext(); ticket !== undefined; ticket = this.queue.admitNext()) {
      ticket.lastProgressAt = now;
      const wait = this.queue.endWait(ticket, now);
      if (wait?.kind === 'body-slot') wait.resolve(undefined);
    }
  }

  /** Takes body slots from requests whose bodies stop coming while others wait for a slot, so that these are not held up. */
  #reclaimBodySlots(now: number): void {
    if (this.queue.counts.queued > 0 && now >= this.#stalledBodyCheckAt) {
      const earliest = this.queue.markStalledReaders(now - BODY_STALLED_AFTER_MS);
      const nextStallAt = Math.min(earliest, now) + BODY_STALLED_AFTER_MS;
      this.#stalledBodyCheckAt = Math.max(now + MIN_BODY_CHECK_INTERVAL_MS, nextStallAt);
    }
    this.#stalledBodyTimer.set(this.queue.counts.queued > 0 ? this.#stalledBodyCheckAt : Infinity);
  }

  recordRejection(reason: QueueRejectionReason): void {
    this.#options.observe({ kind: 'queue-rejected', route: this.#options.route, reason });
  }

  reject(ticket: QueueTicket, now: number, reason: RejectionReason): SidecarError {
    const wait = this.queue.remove(ticket, now);
    this.recordRejection(reason);
    // Past the longest pause a probe goes out, so a client need not stay away for longer.
    const { maxPauseMs } = this.#terms.throttle;
    const ahead = this.queue.countAhead(ticket.queueClass, ticket.gate);
    const isQuota = reason === 'quota';
    const aheadInLane = this.queue.countAheadInLane(ticket.queueClass, ticket.gate);
    const inLaneAt = ticket.gate?.governor?.nthAt(now, aheadInLane, ANY_CALL, maxPauseMs) ?? now;
    const expectedAt = isQuota
      ? this.governor.declaredAt(now, ahead, ticket)
      : Math.max(inLaneAt, this.governor.nthAt(now, ahead, ticket, maxPauseMs));
    const limit = isQuota ? this.governor.declared?.limitsOf(ticket).lastToOpen(now, ahead, ticket.isHigh) : undefined;
    const error = createRejectionError(reason, expectedAt - now, ticket.reserveMs(now), limit);
    wait?.reject(error);
    return error;
  }

  #clearTimers(): void {
    this.#hasTimers = false;
    this.isQuiet = this.#fleet === undefined;
    this.#permitTimer.set(Infinity);
    this.#expiryTimer.set(Infinity);
    this.#stalledBodyTimer.set(Infinity);
    if (!this.stalledResponses.isEmpty) this.stalledResponses.stop();
  }

  #expire(now: number, by: number, reason: RejectionReason): void {
    this.#sendOverdue(now);
    for (let ticket = this.queue.expiringBy(by); ticket !== undefined; ticket = this.queue.expiringBy(by)) {
      const declaredAt = this.governor.declaredAt(now, 0, ticket);
      this.reject(ticket, now, declaredAt > Math.max(now, ticket.expiresAt) ? 'quota' : reason);
    }
  }

  /** Requests that cannot outlast a stated pause, or the wait for a declared limit, are rejected now and not when their time is up. */
  #rejectTooLateForPause(now: number): void {
    this.#expire(now, now, 'timeout');
    this.#expire(
      now,
      Math.max(this.governor.certainAt(now), this.governor.declared?.forAll.nthAt(now, 0, true) ?? now),
      'expected_wait',
    );
  }
}
