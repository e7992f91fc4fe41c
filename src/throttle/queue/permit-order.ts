/** Tickets in the order of their permits: retries in order of arrival, then the others as FairOrder says. Reads no clock. */
import { ArrivalQueue } from './arrival-queue.ts';
import { FairOrder } from './fair-order.ts';
import type { TicketPhase, QueueTicket } from './queue-ticket.ts';
import type { Priority, QueueClass } from '../throttle.ts';

export class PermitOrder {
  readonly fair: FairOrder;
  readonly #retries = new ArrivalQueue<QueueTicket>();
  #retriesWithSlot = 0;

  /** @param bodySlots as FairOrder's */
  constructor(bodySlots: number) {
    this.fair = new FairOrder(bodySlots);
  }

  get bodySlotsUsed(): number {
    return this.fair.bodySlotsUsed + this.#retriesWithSlot;
  }

  get nextReady(): QueueTicket | undefined {
    const retry = this.#retries.oldest;
    if (retry === undefined) return this.fair.nextReady;
    // A caller's requests stay in order: its older request, whose body took longer, goes before the retry.
    const ownOldest = this.fair.callersOf(retry.queueClass.priority).oldestReadyOf(retry.queueClass.caller);
    return ownOldest !== undefined && ownOldest.arrivalNumber < retry.arrivalNumber ? ownOldest : retry;
  }

  /** The next of high priority. */
  get nextReadyHigh(): QueueTicket | undefined {
    for (const retry of this.#retries) if (retry.isHigh) return retry;
    return this.fair.nextReadyHigh;
  }

  /** Adds waiting tickets by priority to `sizes`. O(1) plus the number of retries. */
  addSizesTo(sizes: Record<Priority, number>): void {
    this.fair.addSizesTo(sizes);
    for (const { queueClass } of this.#retries) sizes[queueClass.priority]++;
  }

  /** Moves a ticket in, on or out; `granted` costs its priority and its caller the turn. */
  move(ticket: QueueTicket, from: TicketPhase, to: TicketPhase): void {
    if (!ticket.wasGranted) {
      this.fair.move(ticket, from, to);
      return;
    }
    // A waiting retry keeps the body that it has read, so it takes a slot.
    if (from === 'ready' && this.#retries.remove(ticket) && ticket.holdsBodySlot) this.#retriesWithSlot--;
    ticket.holdsBodySlot = to === 'ready' && ticket.awaitsBody;
    if (to === 'granted') this.fair.chargeTurn(ticket.queueClass);
    if (to !== 'ready') return;
    this.#retries.insert(ticket);
    if (ticket.holdsBodySlot) this.#retriesWithSlot++;
  }

  /** As RequestQueue's. */
  countAhead(queueClass: QueueClass): number {
    return this.#retries.size + this.fair.countAhead(queueClass);
  }

  /** As RequestQueue's. */
  countAheadOfRetry({ queueClass, arrivalNumber }: QueueTicket): number {
    const callers = this.fair.callersOf(queueClass.priority);
    return this.#retries.countOlder(arrivalNumber) + callers.countReadyOlder(queueClass.caller, arrivalNumber);
  }

  waitingTickets(): readonly QueueTicket[] {
    return [...this.fair.waitingTickets(), ...this.#retries];
  }
}
