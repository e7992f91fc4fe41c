/**
 * Who waits, where and until when. `places` tickets without a permit may have their bodies; of those that have read them one is
 * next, retries before all others. It keeps count and time-outs; the order is fair-order.ts's. It settles no promise and asks
 * no clock.
 */
import { ExpiryHeap } from './expiry-heap.ts';
import { FairOrder } from './fair-order.ts';
import type { Phase, QueueTicket } from './queue-ticket.ts';
import type { Priority, Standing } from '../throttle.ts';
import { WaitQueue } from './wait-queue.ts';

/** Those that wait for their first permit, those that retry, the places for bodies, and the waits that may expire. */
export class WaitingRoom {
  #places: number;
  readonly #order: FairOrder;
  readonly #retries = new WaitQueue<QueueTicket>();
  readonly #readers = new WaitQueue<QueueTicket>();
  readonly #expiries = new ExpiryHeap<QueueTicket>();
  #retriesWithBody = 0;
  #stalled = 0;

  constructor(places: number) {
    this.#places = places;
    this.#order = new FairOrder(places);
  }

  /** How many may have their bodies. Who has one keeps it. */
  setPlaces(places: number): void {
    this.#places = places;
    this.#order.setPlaces(places);
  }

  /** Tickets that wait: for their turn, for their body, or for a permit. */
  get size(): number {
    return this.#order.size + this.#retries.size;
  }

  /** Callers of whom a record is kept, counted once for each priority. */
  get callers(): number {
    return this.#order.callers;
  }

  /** The one whose turn for a permit is next. */
  get nextReady(): QueueTicket | undefined {
    const retry = this.#retries.oldest;
    if (retry === undefined) return this.#order.nextReady;
    // Its caller's requests stay in order: an older one whose body took longer goes before it.
    const ownOldest = this.#order.oldestReadyOf(retry.standing);
    return ownOldest !== undefined && ownOldest.age < retry.age ? ownOldest : retry;
  }

  /** When the first of the present waits expires; Infinity when none may. */
  get nextExpiryAt(): number {
    return this.#expiries.earliest?.expiresAt ?? Infinity;
  }

  /** Tickets that wait, by class. O(1), but for the retries among them. */
  sizes(): Record<Priority, number> {
    const sizes = this.#order.sizes();
    for (const { standing } of this.#retries) sizes[standing.priority]++;
    return sizes;
  }

  /** Tickets whose bodies are being read. */
  get reading(): number {
    return this.#readers.size;
  }

  /** Tickets whose bodies stopped coming, without a place. */
  get stalled(): number {
    return this.#stalled;
  }

  /** Tickets that wait for a place. */
  get outside(): number {
    return this.#order.outside;
  }

  /** A new ticket, or a stalled one whose body comes again: straight to a place if it needs one and there is one. */
  add(ticket: QueueTicket): void {
    if (!ticket.hasBody) {
      this.move(ticket, 'unplaced');
      return;
    }
    const isNext = this.#hasPlace() && this.#order.isNextOutside(ticket.standing);
    this.move(ticket, isNext ? 'preparing' : 'outside');
  }

  /**
   * Takes the places of those whose bodies have not come any further since `at` or before.
   * @returns when the next of them may have been silent for as long: the earliest instant of the others' last bytes; Infinity without others
   */
  takePlacesOfSilent(at: number): number {
    let earliest = Infinity;
    for (const ticket of [...this.#readers]) {
      if (ticket.receivedAt <= at) this.move(ticket, 'stalled');
      else earliest = Math.min(earliest, ticket.receivedAt);
    }
    return earliest;
  }

  /**
   * Gives the next free place to the one outside whose turn for a permit will come first, and returns it; undefined when there
   * is neither.
   */
  admitNext(): QueueTicket | undefined {
    const ticket = this.#hasPlace() ? this.#order.nextOutside : undefined;
    if (ticket !== undefined) this.move(ticket, 'preparing');
    return ticket;
  }

  move(ticket: QueueTicket, to: Phase): void {
    const from = ticket.phase;
    // Refused at the door: it stands nowhere.
    if (from === 'left' && to === 'left') return;
    ticket.phase = to;
    if (from === 'preparing') this.#readers.remove(ticket);
    this.#stalled += Number(to === 'stalled') - Number(from === 'stalled');
    const isRetry = from === 'granted' || this.#removeRetry(ticket);
    if (!isRetry) this.#order.move(ticket, from, to);
    else if (to === 'ready') this.#insertRetry(ticket);
    else if (to === 'granted') this.#order.passTurn(ticket.standing);
    if (to === 'preparing') this.#readers.insert(ticket);
  }

  /** Watches over the wait that the ticket has begun. */
  watch(ticket: QueueTicket): void {
    if (ticket.expiresAt < Infinity) this.#expiries.add(ticket);
  }

  unwatch(ticket: QueueTicket): void {
    this.#expiries.remove(ticket);
  }

  /** Somebody whose wait ends at `at` or before; undefined when there is nobody. */
  expiringBy(at: number): QueueTicket | undefined {
    const ticket = this.#expiries.earliest;
    return ticket !== undefined && ticket.expiresAt <= at ? ticket : undefined;
  }

  /** All that are in a queue. Those that read their bodies are in none. */
  queued(): readonly QueueTicket[] {
    return [...this.#order.queued(), ...this.#retries];
  }

  /** How many at least will have a permit before a new ticket of this standing has one, if all of them stay. */
  countAhead(standing: Standing): number {
    return this.#retries.size + this.#order.countAhead(standing);
  }

  /** How many at least will have a permit before a retry of the ticket's has one, if all of them stay. O(result). */
  countAheadOfRetry({ standing, age }: QueueTicket): number {
    return this.#retries.countOlder(age) + this.#order.countReadyOlder(standing, age);
  }

  /** Who may be sent away, so that a new ticket of this standing finds a place in a queue of `max`. Never a retry. */
  displaceableBy(standing: Standing, max: number): QueueTicket | undefined {
    const ticket = this.#order.displaceableBy(standing, max);
    // One that has not begun to wait could not be told.
    return ticket?.wait === undefined ? undefined : ticket;
  }

  // A retry that waits keeps its body, so it takes a place from one that would read another.
  #hasPlace(): boolean {
    return this.#order.held + this.#retriesWithBody < this.#places;
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
