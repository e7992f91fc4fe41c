/**
 * One caller's requests of one priority, in order of arrival: those that wait for their turn to read a body, how many read
 * theirs, and those that wait for a permit. Whose turn it is among the callers is caller-turns.ts's.
 */
import type { TicketPhase, QueueTicket } from './queue-ticket.ts';
import { LinkedQueue } from './linked-queue.ts';

/** A line is kept while somebody stands in it. */
export class CallerQueue {
  readonly caller: string;
  readonly bodyQueue = new LinkedQueue<QueueTicket>();
  readonly permitQueue = new LinkedQueue<QueueTicket>();
  /** The lower, the longer ago it had a permit, or came. */
  lastTurn = 0;
  /** Where it stands in the heaps of its class; they write these. */
  grantHeapIndex = -1;
  bodyHeapIndex = -1;
  lengthHeapIndex = -1;
  #bufferingCount = 0;
  #bodySlotsUsed = 0;

  constructor(caller: string) {
    this.caller = caller;
  }

  /** How many places for bodies it takes. */
  get bodySlotsUsed(): number {
    return this.#bodySlotsUsed;
  }

  /** How many wait for somebody else than their own client. */
  get waitingCount(): number {
    return this.bodyQueue.size + this.permitQueue.size;
  }

  get size(): number {
    return this.bodyQueue.size + this.#bufferingCount + this.permitQueue.size;
  }

  get youngestWaiting(): QueueTicket | undefined {
    return this.bodyQueue.youngest ?? this.permitQueue.youngest;
  }

  /** Phases in which a ticket stands in no line change nothing. */
  move(ticket: QueueTicket, from: TicketPhase, to: TicketPhase): void {
    if (from === 'queued') this.bodyQueue.remove(ticket);
    else if (from === 'buffering' || from === 'received') this.#bufferingCount--;
    else if (from === 'ready') this.permitQueue.remove(ticket);
    if (to === 'queued') this.bodyQueue.insert(ticket);
    else if (to === 'buffering' || to === 'received') this.#bufferingCount++;
    else if (to === 'ready') this.permitQueue.insert(ticket);
    this.#countBodySlot(ticket, to);
  }

  /** A place is kept until the permit is there; one that came to `ready` without a place takes none. */
  #countBodySlot(ticket: QueueTicket, to: TicketPhase): void {
    const holds = to === 'buffering' || (to === 'ready' && ticket.holdsBodySlot);
    this.#bodySlotsUsed += Number(holds) - Number(ticket.holdsBodySlot);
    ticket.holdsBodySlot = holds;
  }
}
