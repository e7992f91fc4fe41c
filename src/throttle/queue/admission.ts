/**
 * Admission: who gets in, whose body is read, who gets the next permit, and who is refused. The waiting room keeps the order and
 * the gate says when; here they are joined with the clock, the promises and the events. An uncontended request sets no timer.
 */
import type { SidecarError } from '../../platform/errors.ts';
import { Alarm } from '../pacing/alarm.ts';
import { describeThrottle } from '../description.ts';
import { judgeEntry } from './door.ts';
import { createFleetHost, joinFleet } from '../fleet/fleet-host.ts';
import type { FleetMember } from '../fleet/fleet-member.ts';
import { Gate } from '../pacing/gate.ts';
import type { Verdict } from '../pacing/governor-contract.ts';
import type { Grant } from '../pacing/grant.ts';
import { GrantedPermit, type PermitOwner } from '../pacing/granted-permit.ts';
import { type Desk, QueueTicket, type Wait } from './queue-ticket.ts';
import { createRefusal, type RefusalReason } from '../signals/refusal.ts';
import { SignalLog } from '../signals/signal-log.ts';
import { SilentReaders } from './silent-readers.ts';
import type { AttemptResult, LearnedState, Permit, Standing, Throttle } from '../throttle.ts';
import type { ThrottleState, ThrottleTerms, Ticket } from '../throttle.ts';
import type { ThrottleOptions } from '../throttle-options.ts';
import { WaitingRoom } from './waiting-room.ts';

/**
 * The throttle before one upstream. Sets no timer and observes nothing until somebody enters.
 * @throws RangeError when rate or burst are out of range
 */
export function createThrottle(options: ThrottleOptions): Throttle {
  return new Admission(options);
}

const ADMITTED = Promise.resolve();
const NAMELESS: Standing = { priority: 'normal', caller: '' };

class Admission implements Throttle, Desk, PermitOwner {
  readonly gate: Gate;
  readonly #options: ThrottleOptions;
  readonly #room: WaitingRoom;
  readonly #signals = new SignalLog();
  #terms: ThrottleTerms;
  readonly #nextPermit: Alarm;
  readonly #nextExpiry: Alarm;
  readonly #silentReaders: SilentReaders;
  readonly #fleet: FleetMember | undefined;
  #arrivals = 0;
  isCut = false;

  constructor(options: ThrottleOptions) {
    const { clock, random, throttle } = options;
    this.#options = options;
    this.#terms = options;
    this.#fleet = joinFleet(options);
    this.gate = new Gate({ ...throttle, random, learning: options.learning, fleet: this.#fleet });
    this.#room = new WaitingRoom(throttle.maxInFlight);
    const ring = (): void => this.pump();
    this.#nextPermit = new Alarm((at, run) => clock.exactlyAt(at, run), ring);
    const setTimer = (at: number, run: () => void) => clock.after(at - clock.now(), run);
    this.#nextExpiry = new Alarm(setTimer, ring);
    this.#silentReaders = new SilentReaders(this.#room, setTimer, ring);
    const { restored } = options;
    if (restored) this.gate.restore(clock.now(), restored.governor, Math.max(0, clock.wallNow() - restored.wallAt));
    this.#fleet?.start(createFleetHost({ gate: this.gate, room: this.#room, now: () => clock.now(), pump: ring }));
  }

  now(): number {
    return this.#options.clock.now();
  }

  get waitsForSlot(): boolean {
    return this.#room.nextReady !== undefined && this.gate.inFlight >= this.gate.inFlightLimit;
  }

  enter(deadlineAt: number, standing: Standing = NAMELESS, hasBody = true): Ticket {
    const now = this.now();
    const { max, timeoutMs } = this.#terms.queue;
    this.#expire(now, now, 'timeout');
    const ticket = new QueueTicket(this, this.#arrivals++, deadlineAt, timeoutMs, standing, hasBody);
    if (this.isCut) throw this.#refuse(ticket, now, 'draining');
    const entry = judgeEntry(this.gate, this.#room, max, ticket, now);
    if (entry.kind === 'refused') throw this.#refuse(ticket, now, entry.reason);
    if (entry.kind === 'in-place-of') this.#refuse(entry.loser, now, 'full');
    this.#room.add(ticket);
    ticket.receivedAt = now;
    // The loser may have had its body read: its place goes to whom it is due.
    if (entry.kind === 'in-place-of') this.#fillPlaces(now);
    return ticket;
  }

  reconfigure(terms: ThrottleTerms): void {
    this.#terms = terms;
    this.#fleet?.reconfigure(terms.throttle);
    this.gate.reconfigure(this.now(), terms.throttle);
    this.#room.setPlaces(terms.throttle.maxInFlight);
    this.pump();
  }

  cut(): void {
    this.isCut = true;
    this.#fleet?.leave();
    const now = this.now();
    for (const ticket of this.#room.queued()) if (ticket.wait !== undefined) this.#refuse(ticket, now, 'draining');
    this.pump();
  }

  state(): ThrottleState {
    const { route, clock } = this.#options;
    const now = this.now();
    const fleet = this.#fleet?.share.describe(now);
    const parts = { gate: this.gate, room: this.#room, terms: this.#terms, fleet };
    const described = describeThrottle(parts, now, (at) => clock.wallNow() - (now - at));
    return { route, recentSignals: this.#signals.newestFirst, ...described };
  }

  snapshot(): LearnedState | undefined {
    const governor = this.gate.snapshot(this.now());
    return governor && { version: 1, wallAt: this.#options.clock.wallNow(), governor };
  }

  admit(ticket: QueueTicket): Promise<void> {
    const fault = this.#whyNotWait(ticket);
    if (fault !== undefined) return Promise.reject(fault);
    if (ticket.phase === 'stalled') this.#room.add(ticket);
    if (ticket.phase !== 'outside') return ADMITTED;
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    this.#wait(ticket, this.now(), { kind: 'place', resolve, reject });
    return promise;
  }

  bodyReceived(ticket: QueueTicket): void {
    if (ticket.phase !== 'outside') return;
    this.#room.move(ticket, 'received');
    const wait = this.#endWait(ticket, this.now());
    if (wait?.kind === 'place') wait.resolve(undefined);
  }

  queueForPermit(ticket: QueueTicket): Promise<Permit> {
    const fault = this.#whyNotWait(ticket);
    if (fault !== undefined) return Promise.reject(fault);
    const now = this.now();
    if (ticket.deadlineAt <= now) return Promise.reject(this.#refuse(ticket, now, 'timeout'));
    const permit = this.tryPermit(ticket);
    if (permit) return Promise.resolve(permit);
    const { promise, resolve, reject } = Promise.withResolvers<Permit>();
    this.#room.move(ticket, 'ready');
    this.#wait(ticket, now, { kind: 'permit', resolve, reject });
    return promise;
  }

  tryPermit(ticket: QueueTicket): Permit | undefined {
    if (this.isCut || ticket.misuse !== undefined || this.#room.nextReady !== undefined) return undefined;
    const now = this.now();
    const grant = ticket.deadlineAt > now ? this.gate.tryGrant(now, false) : undefined;
    if (grant === undefined) return undefined;
    const permit = this.#hand(ticket, grant);
    this.#fillPlaces(now);
    return permit;
  }

  retryWaitMs(ticket: QueueTicket): number {
    const now = this.now();
    const waitMs = this.gate.retryWaitMs(now, this.#room.countAheadOfRetry(ticket));
    return waitMs > 0 && waitMs >= ticket.patienceMs(now) ? Infinity : waitMs;
  }

  leave(ticket: QueueTicket, reason: unknown): void {
    if (ticket.phase === 'left') return;
    const why = ticket.countsAs(reason);
    const wait = this.#remove(ticket, ticket.wait === undefined ? 0 : this.now());
    if (why !== undefined) this.#options.observe({ kind: 'queue-rejected', route: this.#options.route, reason: why });
    wait?.reject(reason ?? new DOMException('The request has left the queue', 'AbortError'));
    this.pump();
  }

  spent(waitedMs: number): void {
    this.#options.observe({ kind: 'permit-granted', route: this.#options.route, waitedMs });
  }

  judged(result: AttemptResult, verdict: Verdict): void {
    if (verdict.kind !== 'limited' || result.kind !== 'rate-limited') return;
    const { pauseMs, stated } = verdict;
    const { status, fields } = result.signal;
    const { clock, observe, route } = this.#options;
    this.#signals.add({ wallAt: clock.wallNow(), status, pauseMs, stated, fields });
    observe({ kind: 'rate-limited', route, status, pauseMs, stated, fields });
    this.#expireHopeless(this.now());
    this.#fleet?.refused(result.signal.statedWaitMs);
  }

  /** Brings everything up to the present: time-outs first, so that no permit is spent on the expired. */
  pump(): void {
    if (this.#room.size === 0) {
      this.#nextPermit.set(Infinity);
      this.#nextExpiry.set(Infinity);
      this.#silentReaders.takePlaces(0);
      this.#fleet?.need(0);
      return;
    }
    const now = this.now();
    this.#expire(now, now, 'timeout');
    for (let next = this.#room.nextReady; next !== undefined; next = this.#room.nextReady) {
      const grant = this.gate.tryGrant(now, true);
      if (grant === undefined) break;
      const wait = this.#endWait(next, now);
      const permit = this.#hand(next, grant);
      if (wait?.kind === 'permit') wait.resolve(permit);
    }
    this.#fillPlaces(now);
    this.#nextPermit.set(this.#room.nextReady === undefined ? Infinity : this.gate.nextTryAt(now));
    this.#nextExpiry.setBy(this.#room.nextExpiryAt);
    this.#fleet?.need(this.#room.nextReady === undefined ? 0 : this.gate.usable(now, this.#room.size));
  }

  #whyNotWait(ticket: QueueTicket): Error | undefined {
    return ticket.misuse ?? (this.isCut ? this.#refuse(ticket, this.now(), 'draining') : undefined);
  }

  #wait(ticket: QueueTicket, now: number, wait: Wait): void {
    ticket.beginWait(now, wait);
    this.#room.watch(ticket);
    this.#expireHopeless(now);
    this.pump();
  }

  #endWait(ticket: QueueTicket, now: number): Wait | undefined {
    this.#room.unwatch(ticket);
    return ticket.endWait(now);
  }

  #hand(ticket: QueueTicket, grant: Grant): Permit {
    this.#room.move(ticket, 'granted');
    return new GrantedPermit(this, grant, ticket.takeUntoldMs());
  }

  #fillPlaces(now: number): void {
    this.#silentReaders.takePlaces(now);
    for (let ticket = this.#room.admitNext(); ticket !== undefined; ticket = this.#room.admitNext()) {
      ticket.receivedAt = now;
      const wait = this.#endWait(ticket, now);
      if (wait?.kind === 'place') wait.resolve(undefined);
    }
  }

  #expire(now: number, by: number, reason: RefusalReason): void {
    for (let ticket = this.#room.expiringBy(by); ticket !== undefined; ticket = this.#room.expiringBy(by))
      this.#refuse(ticket, now, reason);
  }

  /** Whoever cannot outlast a stated pause learns it now and not when its time is up. */
  #expireHopeless(now: number): void {
    this.#expire(now, now, 'timeout');
    this.#expire(now, this.gate.statedHoldUntil(now), 'expected_wait');
  }

  #refuse(ticket: QueueTicket, now: number, reason: RefusalReason): SidecarError {
    const wait = this.#remove(ticket, now);
    this.#options.observe({ kind: 'queue-rejected', route: this.#options.route, reason });
    // Past the longest pause a probe goes out, so that nobody need stay away for longer.
    const waitMs = this.gate.estimateMs(now, this.#room.countAhead(ticket.standing));
    const error = createRefusal(reason, Math.min(waitMs, this.#terms.throttle.maxPauseMs));
    wait?.reject(error);
    return error;
  }

  #remove(ticket: QueueTicket, now: number): Wait | undefined {
    this.#room.move(ticket, 'left');
    return this.#endWait(ticket, now);
  }
}
