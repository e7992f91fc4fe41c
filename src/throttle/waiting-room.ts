/**
 * Who waits, where and until when. In order of arrival the first `places` tickets without a permit may read their bodies; of
 * those that have, the oldest is next. It keeps count and order; it settles no promise and asks no clock.
 */
import { ExpiryHeap } from './expiry-heap.ts';
import type { Phase, QueueTicket } from './queue-ticket.ts';
import { WaitQueue } from './wait-queue.ts';

/** Both queues, the places for bodies, and the waits that may expire. */
export class WaitingRoom {
  readonly #places: number;
  readonly #outside = new WaitQueue<QueueTicket>();
  readonly #ready = new WaitQueue<QueueTicket>();
  readonly #expiries = new ExpiryHeap<QueueTicket>();
  #preparing = 0;

  constructor(places: number) {
    this.#places = places;
  }

  /** Tickets that wait: for their turn, for their body, or for a permit. */
  get size(): number {
    return this.#outside.size + this.#preparing + this.#ready.size;
  }

  /** The one whose turn for a permit is next. */
  get nextReady(): QueueTicket | undefined {
    return this.#ready.oldest;
  }

  /** When the first of the present waits expires; Infinity when none may. */
  get nextExpiryAt(): number {
    return this.#expiries.earliest?.expiresAt ?? Infinity;
  }

  /** A new ticket, younger than all: straight to a place if there is one. */
  add(ticket: QueueTicket): void {
    this.#enter(ticket, this.#hasPlace() && this.#outside.size === 0 ? 'preparing' : 'outside');
  }

  /** Gives the next free place to the oldest outside and returns it; undefined when there is neither. */
  admitNext(): QueueTicket | undefined {
    const ticket = this.#hasPlace() ? this.#outside.oldest : undefined;
    if (ticket !== undefined) this.move(ticket, 'preparing');
    return ticket;
  }

  move(ticket: QueueTicket, phase: Phase): void {
    if (ticket.phase === 'preparing') this.#preparing--;
    else if (ticket.phase === 'outside') this.#outside.remove(ticket);
    else if (ticket.phase === 'ready') this.#ready.remove(ticket);
    this.#enter(ticket, phase);
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

  /** All that are in a queue, those outside first. Those that read their bodies are in none. */
  queued(): readonly QueueTicket[] {
    return [...this.#outside, ...this.#ready];
  }

  countReadyOlder(age: number): number {
    return this.#ready.countOlder(age);
  }

  // A retry that waits keeps its body, so it takes a place from one that would read another.
  #hasPlace(): boolean {
    return this.#preparing + this.#ready.size < this.#places;
  }

  #enter(ticket: QueueTicket, phase: Phase): void {
    ticket.phase = phase;
    if (phase === 'preparing') this.#preparing++;
    else if (phase === 'outside') this.#outside.insert(ticket);
    else if (phase === 'ready') this.#ready.insert(ticket);
  }
}
