/**
 * The tickets of one throttle: how many wait, in which phase, and until when. At most `bodySlots` requests without a permit
 * read their bodies; of those that have read them one is next, retries first. FairOrder decides the order. This file settles
 * no promise and reads no clock.
 */
import { ArrivalQueue } from './arrival-queue.ts';
import { FairOrder } from './fair-order.ts';
import { Heap } from './heap.ts';
import type { PendingWait, TicketPhase, QueueTicket } from './queue-ticket.ts';
import type { Priority, QueueClass } from '../throttle.ts';

export class RequestQueue {
  #bodySlots: number;
  readonly #order: FairOrder;
  readonly #retries = new ArrivalQueue<QueueTicket>();
  readonly #readers = new ArrivalQueue<QueueTicket>();
  readonly #expiries = new Heap<QueueTicket>((one, other) => one.expiresAt < other.expiresAt);
  readonly #counts = { complete: 0, queued: 0, received: 0, buffering: 0, stalled: 0, ready: 0, granted: 0, left: 0 };
  /** Tickets by phase. Those of `complete`, `granted` and `left` have no place here, and their counts mean nothing. */
  readonly counts: Readonly<Record<TicketPhase, number>> = this.#counts;
  #retriesWithSlot = 0;
  #hasGrantedUncontended = false;

  /** @param bodySlots how many requests may read their bodies or keep them while they wait */
  constructor(bodySlots: number) {
    this.#bodySlots = bodySlots;
    this.#order = new FairOrder(bodySlots);
  }

  /** A request that has a body slot keeps it, even when there are fewer now. */
  setBodySlots(bodySlots: number): void {
    this.#bodySlots = bodySlots;
    this.#order.setBodySlots(bodySlots);
  }

  /** Tickets that wait for a body slot, for their body or for a permit. Stalled ones are not counted. */
  get size(): number {
    const { queued, received, buffering, ready } = this.#counts;
    return queued + received + buffering + ready;
  }

  /** Callers that have a record, counted once for each priority. */
  get callerCount(): number {
    return this.#order.callerCount;
  }

  get nextReady(): QueueTicket | undefined {
    const retry = this.#retries.oldest;
    if (retry === undefined) return this.#order.nextReady;
    // A caller's requests stay in order: its older request, whose body took longer, goes before the retry.
    const ownOldest = this.#order.callersOf(retry.queueClass.priority).oldestReadyOf(retry.queueClass.caller);
    return ownOldest !== undefined && ownOldest.arrivalNumber < retry.arrivalNumber ? ownOldest : retry;
  }

  /** The next of high priority. */
  get nextReadyHigh(): QueueTicket | undefined {
    for (const retry of this.#retries) if (retry.isHigh) return retry;
    return this.#order.nextReadyHigh;
  }

  /** When the first of the present waits expires; Infinity without one. */
  get nextExpiryAt(): number {
    return this.#expiries.first?.expiresAt ?? Infinity;
  }

  /** Waiting tickets by priority. O(1) plus the number of retries. */
  sizesByPriority(): Record<Priority, number> {
    const sizes = this.#order.sizesByPriority();
    for (const { queueClass } of this.#retries) sizes[queueClass.priority]++;
    return sizes;
  }

  /** Takes in a new ticket whose body has to be read, or a stalled one whose body continues. It gets a body slot if one is free. */
  add(ticket: QueueTicket): void {
    const isNext = this.#hasFreeBodySlot() && this.#order.canBufferNow(ticket.queueClass);
    this.move(ticket, isNext ? 'buffering' : 'queued');
  }

  /** Grants to a ticket that needed no place here, while no other waits. @returns false when it has to move in here first */
  tryGrantUncontended(ticket: QueueTicket): boolean {
    const { queued, received, buffering, ready } = this.#counts;
    const hasPlace = ticket.phase !== 'complete' && ticket.phase !== 'granted';
    if (hasPlace || queued + received + buffering + ready > 0) return false;
    ticket.phase = 'granted';
    this.#hasGrantedUncontended = true;
    return true;
  }

  /**
   * Takes the slots of readers whose last byte came at `at` or before.
   * @returns the earliest last byte of the other readers; Infinity without others
   */
  markStalledReaders(at: number): number {
    let earliest = Infinity;
    for (const ticket of [...this.#readers]) {
      if (ticket.lastProgressAt <= at) this.move(ticket, 'stalled');
      else earliest = Math.min(earliest, ticket.lastProgressAt);
    }
    return earliest;
  }

  /** Gives a free body slot to the queued ticket whose turn for a permit comes first, and returns it. */
  admitNext(): QueueTicket | undefined {
    const ticket = this.#hasFreeBodySlot() ? this.#order.nextQueued : undefined;
    if (ticket !== undefined) this.move(ticket, 'buffering');
    return ticket;
  }

  move(ticket: QueueTicket, to: TicketPhase): void {
    const from = ticket.phase;
    ticket.phase = to;
    // Tickets of these phases have no place here.
    if (to === 'left' && (from === 'left' || from === 'complete' || from === 'granted')) return;
    if (this.#hasGrantedUncontended) this.#forgetTurns();
    this.#counts[from]--;
    this.#counts[to]++;
    if (from === 'buffering') this.#readers.remove(ticket);
    const isRetry = from === 'granted' || (from === 'ready' && this.#removeRetry(ticket));
    if (!isRetry) this.#order.move(ticket, from, to);
    else if (to === 'ready') this.#insertRetry(ticket);
    else if (to === 'granted') this.#order.chargeTurn(ticket.queueClass);
    if (to === 'buffering') this.#readers.insert(ticket);
  }

  beginWait(ticket: QueueTicket, now: number, wait: PendingWait): void {
    ticket.beginWait(now, wait);
    this.#expiries.update(ticket, ticket.expiresAt < Infinity);
  }

  /** Ends the present wait and returns it, so that the caller settles it. */
  endWait(ticket: QueueTicket, now: number): PendingWait | undefined {
    this.#expiries.remove(ticket);
    return ticket.endWait(now);
  }

  /** @returns the wait that it has ended */
  remove(ticket: QueueTicket, now: number): PendingWait | undefined {
    this.move(ticket, 'left');
    return this.endWait(ticket, now);
  }

  expiringBy(at: number): QueueTicket | undefined {
    const ticket = this.#expiries.first;
    return ticket !== undefined && ticket.expiresAt <= at ? ticket : undefined;
  }

  /** Tickets that wait for a body slot or a permit. Those that read their bodies are not among them. */
  waitingTickets(): readonly QueueTicket[] {
    return [...this.#order.waitingTickets(), ...this.#retries];
  }

  /**
   * Minimum number of permits that other tickets get before a new ticket of this class, if no ticket leaves. With one body slot, the result can exceed
   * that number by up to 2: the ticket in the slot gets its permit first, regardless of its priority.
   */
  countAhead(queueClass: QueueClass): number {
    return this.#retries.size + this.#order.countAhead(queueClass);
  }

  /** Lower bound of the permits that go out before a retry of this ticket gets one, if no ticket leaves. */
  countAheadOfRetry({ queueClass, arrivalNumber }: QueueTicket): number {
    const callers = this.#order.callersOf(queueClass.priority);
    return this.#retries.countOlder(arrivalNumber) + callers.countReadyOlder(queueClass.caller, arrivalNumber);
  }

  /** The ticket to reject so that a new one of this class finds a place in a queue of `max`. Never a retry. */
  evictionCandidate(queueClass: QueueClass, max: number): QueueTicket | undefined {
    const ticket = this.#order.evictionCandidate(queueClass, max);
    // Without a pending wait there is no promise to reject.
    return ticket?.wait === undefined ? undefined : ticket;
  }

  // A waiting retry keeps the body that it has read, so it takes a slot.
  #hasFreeBodySlot(): boolean {
    return this.#order.bodySlotsUsed + this.#retriesWithSlot < this.#bodySlots;
  }

  // When a permit went out while no ticket waited, there was enough for all: turns taken before that no longer count.
  #forgetTurns(): void {
    this.#hasGrantedUncontended = false;
    this.#order.forgetTurns();
  }

  #insertRetry(ticket: QueueTicket): void {
    this.#retries.insert(ticket);
    if (ticket.awaitsBody) this.#retriesWithSlot++;
  }

  #removeRetry(ticket: QueueTicket): boolean {
    const isRetry = this.#retries.remove(ticket);
    if (isRetry && ticket.awaitsBody) this.#retriesWithSlot--;
    return isRetry;
  }
}
