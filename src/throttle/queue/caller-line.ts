/**
 * One caller's requests of one priority, in order of arrival: those that wait for their turn to read a body, how many read
 * theirs, and those that wait for a permit. Whose turn it is among the callers is caller-turns.ts's.
 */
import type { Phase, QueueTicket } from './queue-ticket.ts';
import { WaitQueue } from './wait-queue.ts';

/** A line is kept while somebody stands in it. */
export class CallerLine {
  readonly caller: string;
  readonly outside = new WaitQueue<QueueTicket>();
  readonly ready = new WaitQueue<QueueTicket>();
  /** The lower, the longer ago it had a permit, or came. */
  turn = 0;
  /** Where it stands in the heaps of its class; they write these. */
  grantSlot = -1;
  placeSlot = -1;
  lengthSlot = -1;
  #preparing = 0;
  #held = 0;

  constructor(caller: string) {
    this.caller = caller;
  }

  /** How many places for bodies it takes. */
  get held(): number {
    return this.#held;
  }

  /** How many wait for somebody else than their own client. */
  get queued(): number {
    return this.outside.size + this.ready.size;
  }

  get size(): number {
    return this.outside.size + this.#preparing + this.ready.size;
  }

  get youngestQueued(): QueueTicket | undefined {
    return this.outside.youngest ?? this.ready.youngest;
  }

  /** Phases in which a ticket stands in no line change nothing. */
  move(ticket: QueueTicket, from: Phase, to: Phase): void {
    if (from === 'outside') this.outside.remove(ticket);
    else if (from === 'preparing' || from === 'received') this.#preparing--;
    else if (from === 'ready') this.ready.remove(ticket);
    if (to === 'outside') this.outside.insert(ticket);
    else if (to === 'preparing' || to === 'received') this.#preparing++;
    else if (to === 'ready') this.ready.insert(ticket);
    this.#countPlace(ticket, to);
  }

  /** A place is kept until the permit is there; one that came to `ready` without a place takes none. */
  #countPlace(ticket: QueueTicket, to: Phase): void {
    const holds = to === 'preparing' || (to === 'ready' && ticket.holdsPlace);
    this.#held += Number(holds) - Number(ticket.holdsPlace);
    ticket.holdsPlace = holds;
  }
}
