/** One caller's requests of one priority in order of arrival (pure): those waiting for a body slot, reading, and waiting for a permit. */
import type { TicketPhase, QueueTicket } from './queue-ticket.ts';
import { LinkedQueue } from './linked-queue.ts';

export class CallerQueue {
  readonly caller: string;
  readonly bodyQueue = new LinkedQueue<QueueTicket>();
  readonly permitQueue = new LinkedQueue<QueueTicket>();
  /** Rank of its last permit, or of its arrival: the lowest is next. */
  lastTurn = 0;
  /** Positions in the heaps of its priority, which write them; -1 outside. */
  grantHeapIndex = -1;
  bodyHeapIndex = -1;
  lengthHeapIndex = -1;
  #bufferingCount = 0;
  #bodySlotsUsed = 0;

  constructor(caller: string) {
    this.caller = caller;
  }

  get bodySlotsUsed(): number {
    return this.#bodySlotsUsed;
  }

  /** Tickets that do not wait for their own client. */
  get waitingCount(): number {
    return this.bodyQueue.size + this.permitQueue.size;
  }

  get size(): number {
    return this.bodyQueue.size + this.#bufferingCount + this.permitQueue.size;
  }

  get youngestWaiting(): QueueTicket | undefined {
    return this.bodyQueue.youngest ?? this.permitQueue.youngest;
  }

  /** Phases without a place in the queue change nothing. */
  move(ticket: QueueTicket, from: TicketPhase, to: TicketPhase): void {
    if (from === 'queued') this.bodyQueue.remove(ticket);
    else if (from === 'buffering' || from === 'received') this.#bufferingCount--;
    else if (from === 'ready') this.permitQueue.remove(ticket);
    if (to === 'queued') this.bodyQueue.insert(ticket);
    else if (to === 'buffering' || to === 'received') this.#bufferingCount++;
    else if (to === 'ready') this.permitQueue.insert(ticket);
    this.#countBodySlot(ticket, to);
  }

  /** A body slot is kept until the permit comes. A ticket that became `ready` without a slot takes none. */
  #countBodySlot(ticket: QueueTicket, to: TicketPhase): void {
    const holds = to === 'buffering' || (to === 'ready' && ticket.holdsBodySlot);
    this.#bodySlotsUsed += Number(holds) - Number(ticket.holdsBodySlot);
    ticket.holdsBodySlot = holds;
  }
}
