/**
 * Who waits, where and until when. `places` tickets without a permit may have their bodies; of those that have read them one is
 * next, retries before all others. It keeps count and time-outs; the order is fair-order.ts's. It settles no promise and asks
 * no clock.
 */
import { ExpiryHeap } from './expiry-heap.ts';
import { FairOrder } from './fair-order.ts';
import type { TicketPhase, QueueTicket } from './queue-ticket.ts';
import type { Priority, QueueClass } from '../throttle.ts';
import { LinkedQueue } from './linked-queue.ts';

/** Those that wait for their first permit, those that retry, the places for bodies, and the waits that may expire. */
export class RequestQueue {
  #bodySlots: number;
  readonly #order: FairOrder;
  readonly #retries = new LinkedQueue<QueueTicket>();
  readonly #readers = new LinkedQueue<QueueTicket>();
  readonly #expiries = new ExpiryHeap<QueueTicket>();
  #retriesWithBody = 0;
  #stalledCount = 0;

  constructor(places: number) {
    this.#bodySlots = places;
    this.#order = new FairOrder(places);
  }

  /** How many may have their bodies. Who has one keeps it. */
  setBodySlots(places: number): void {
    this.#bodySlots = places;
    this.#order.setBodySlots(places);
  }

  /** Tickets that wait: for their turn, for their body, or for a permit. */
  get size(): number {
    return this.#order.size + this.#retries.size;
  }

  /** Callers of whom a record is kept, counted once for each priority. */
  get callerCount(): number {
    return this.#order.callerCount;
  }

  /** The one whose turn for a permit is next. */
  get nextReady(): QueueTicket | undefined {
    const retry = this.#retries.oldest;
    if (retry === undefined) return this.#order.nextReady;
    // Its caller's requests stay in order: an older one whose body took longer goes before it.
    const ownOldest = this.#order.oldestReadyOf(retry.queueClass);
    return ownOldest !== undefined && ownOldest.arrivalNumber < retry.arrivalNumber ? ownOldest : retry;
  }

  /** When the first of the present waits expires; Infinity when none may. */
  get nextExpiryAt(): number {
    return this.#expiries.earliest?.expiresAt ?? Infinity;
  }

  /** Tickets that wait, by class. O(1), but for the retries among them. */
  sizesByPriority(): Record<Priority, number> {
    const sizes = this.#order.sizesByPriority();
    for (const { queueClass } of this.#retries) sizes[queueClass.priority]++;
    return sizes;
  }

  /** Tickets whose bodies are being read. */
  get readingCount(): number {
    return this.#readers.size;
  }

  /** Tickets whose bodies stopped coming, without a place. */
  get stalledCount(): number {
    return this.#stalledCount;
  }

  /** Tickets that wait for a place. */
  get queuedCount(): number {
    return this.#order.queuedCount;
  }

  /** A new ticket, or a stalled one whose body comes again: straight to a place if it needs one and there is one. */
  add(ticket: QueueTicket): void {
    if (!ticket.hasBody) {
      this.move(ticket, 'unplaced');
      return;
    }
    const isNext = this.#hasFreeBodySlot() && this.#order.canBufferNow(ticket.queueClass);
    this.move(ticket, isNext ? 'preparing' : 'outside');
  }

  /**
   * Takes the places of those whose bodies have not come any further since `at` or before.
   * @returns when the next of them may have been silent for as long: the earliest instant of the others' last bytes; Infinity without others
   */
  markStalledReaders(at: number): number {
    let earliest = Infinity;
    for (const ticket of [...this.#readers]) {
      if (ticket.lastProgressAt <= at) this.move(ticket, 'stalled');
      else earliest = Math.min(earliest, ticket.lastProgressAt);
    }
    return earliest;
  }

  /**
   * Gives the next free place to the one outside whose turn for a permit will come first, and returns it; undefined when there
   * is neither.
   */
  admitNext(): QueueTicket | undefined {
    const ticket = this.#hasFreeBodySlot() ? this.#order.nextQueued : undefined;
    if (ticket !== undefined) this.move(ticket, 'preparing');
    return ticket;
  }

  move(ticket: QueueTicket, to: TicketPhase): void {
    const from = ticket.phase;
    // Refused at the door: it stands nowhere.
    if (from === 'left' && to === 'left') return;
    ticket.phase = to;
    if (from === 'preparing') this.#readers.remove(ticket);
    this.#stalledCount += Number(to === 'stalled') - Number(from === 'stalled');
    const isRetry = from === 'granted' || this.#removeRetry(ticket);
    if (!isRetry) this.#order.move(ticket, from, to);
    else if (to === 'ready') this.#insertRetry(ticket);
    else if (to === 'granted') this.#order.chargeTurn(ticket.queueClass);
    if (to === 'preparing') this.#readers.insert(ticket);
  }

  /** Watches over the wait that the ticket has begun. */
  trackExpiry(ticket: QueueTicket): void {
    if (ticket.expiresAt < Infinity) this.#expiries.add(ticket);
  }

  untrackExpiry(ticket: QueueTicket): void {
    this.#expiries.remove(ticket);
  }

  /** Somebody whose wait ends at `at` or before; undefined when there is nobody. */
  expiringBy(at: number): QueueTicket | undefined {
    const ticket = this.#expiries.earliest;
    return ticket !== undefined && ticket.expiresAt <= at ? ticket : undefined;
  }

  /** All that are in a queue. Those that read their bodies are in none. */
  waitingTickets(): readonly QueueTicket[] {
    return [...this.#order.waitingTickets(), ...this.#retries];
  }

  /** How many at least will have a permit before a new ticket of this standing has one, if all of them stay. */
  countAhead(standing: QueueClass): number {
    return this.#retries.size + this.#order.countAhead(standing);
  }

  /** How many at least will have a permit before a retry of the ticket's has one, if all of them stay. O(result). */
  countAheadOfRetry({ queueClass, arrivalNumber }: QueueTicket): number {
    return this.#retries.countOlder(arrivalNumber) + this.#order.countReadyOlder(queueClass, arrivalNumber);
  }

  /** Who may be sent away, so that a new ticket of this standing finds a place in a queue of `max`. Never a retry. */
  evictionCandidate(standing: QueueClass, max: number): QueueTicket | undefined {
    const ticket = this.#order.evictionCandidate(standing, max);
    // One that has not begun to wait could not be told.
    return ticket?.wait === undefined ? undefined : ticket;
  }

  // A retry that waits keeps its body, so it takes a place from one that would read another.
  #hasFreeBodySlot(): boolean {
    return this.#order.bodySlotsUsed + this.#retriesWithBody < this.#bodySlots;
  }

  #insertRetry(ticket: QueueTicket): void {
    this.#retries.insert(ticket);
    if (ticket.hasBody) this.#retriesWithBody++;
  }

  #removeRetry(ticket: QueueTicket): boolean {
    const isRetry = this.#retries.remove(ticket);
    if (isRetry && ticket.hasBody) this.#retriesWithBody--;
    return isRetry;
  }
}
