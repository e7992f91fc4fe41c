/**
 * The callers of one priority take turns: the next permit goes to the caller that has had none for longest, the next body slot to
 * the one that holds fewest. Within a caller the oldest request goes first.
 */
import { ArrivalQueue } from './arrival-queue.ts';
import { Heap } from './heap.ts';
import type { TicketPhase, QueueTicket } from './queue-ticket.ts';

/** One caller's requests of one priority in order of arrival: those waiting for a body slot, reading, and waiting for a permit. */
class CallerQueue {
  readonly caller: string;
  readonly bodyQueue = new ArrivalQueue<QueueTicket>();
  readonly permitQueue = new ArrivalQueue<QueueTicket>();
  /** Rank of its last permit, or of its arrival: the lowest is next. */
  lastTurn = 0;
  bodySlotsUsed = 0;
  #bufferingCount = 0;

  constructor(caller: string) {
    this.caller = caller;
  }

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
    this.#countBodySlot(ticket, from, to);
  }

  /** A body slot is kept until the permit comes. A ticket that became `ready` without a slot takes none. */
  #countBodySlot(ticket: QueueTicket, from: TicketPhase, to: TicketPhase): void {
    const wasCounted = ticket.holdsBodySlot && (from === 'buffering' || from === 'ready');
    ticket.holdsBodySlot = to === 'buffering' || (ticket.holdsBodySlot && (to === 'ready' || to === 'held'));
    this.bodySlotsUsed += Number(ticket.holdsBodySlot && to !== 'held') - Number(wasCounted);
  }
}

/** Waiting requests by caller. To move a ticket is O(log n) in the number of callers; no record is kept of absent callers. */
export class CallerRoundRobin {
  readonly #queues = new Map<string, CallerQueue>();
  readonly #byLastTurn = new Heap<CallerQueue>((one, other) => one.lastTurn < other.lastTurn);
  // The round in which the body's request gets its permit, then the turn in that round.
  readonly #byBodySlots = new Heap<CallerQueue>((one, other) =>
    one.bodySlotsUsed === other.bodySlotsUsed ? one.lastTurn < other.lastTurn : one.bodySlotsUsed < other.bodySlotsUsed,
  );
  readonly #byLength = new Heap<CallerQueue>((one, other) =>
    one.waitingCount === other.waitingCount ? one.lastTurn > other.lastTurn : one.waitingCount > other.waitingCount,
  );
  /** The queue that became empty last is kept: a caller without a backlog needs one for each request. */
  #emptyQueue: CallerQueue | undefined;
  #turnCount = 0;
  #size = 0;
  #bodySlotsUsed = 0;

  /** Tickets that are queued, buffering, received or ready. */
  get size(): number {
    return this.#size;
  }

  get bodySlotsUsed(): number {
    return this.#bodySlotsUsed;
  }

  get callerCount(): number {
    return this.#queues.size - (this.#emptyQueue === undefined ? 0 : 1);
  }

  get nextReady(): QueueTicket | undefined {
    return this.#byLastTurn.first?.permitQueue.oldest;
  }

  get nextQueued(): QueueTicket | undefined {
    return this.#byBodySlots.first?.bodyQueue.oldest;
  }

  get youngestOfLongestQueue(): QueueTicket | undefined {
    return this.#byLength.first?.youngestWaiting;
  }

  /** Moves a ticket in, on or out; `granted` costs its caller the turn. */
  move(ticket: QueueTicket, from: TicketPhase, to: TicketPhase): void {
    const queue = this.#getOrCreateQueue(ticket.queueClass.caller);
    const { size, bodySlotsUsed } = queue;
    queue.move(ticket, from, to);
    this.#size += queue.size - size;
    this.#bodySlotsUsed += queue.bodySlotsUsed - bodySlotsUsed;
    if (to === 'granted') queue.lastTurn = ++this.#turnCount;
    this.#updateHeaps(queue);
  }

  /** A permit went to the caller for a ticket that is kept elsewhere. */
  chargeTurn(caller: string): void {
    const queue = this.#queues.get(caller);
    if (queue === undefined || queue === this.#emptyQueue) return;
    queue.lastTurn = ++this.#turnCount;
    this.#updateHeaps(queue);
  }

  /** O(callers). */
  countAhead(caller: string): number {
    // In each round of its own queue every other caller has a turn as well, while its queue lasts.
    const rounds = Math.max(1, this.#queues.get(caller)?.size ?? 0);
    let count = 0;
    for (const queue of this.#queues.values()) count += Math.min(queue.size, rounds);
    return count;
  }

  /** The ticket to reject for a new one of the caller: the youngest of the longest queue, if that stays the longer one. */
  evictionCandidate(caller: string): QueueTicket | undefined {
    const longest = this.#byLength.first;
    const own = this.#queues.get(caller)?.size ?? 0;
    return longest !== undefined && longest.waitingCount >= own + 2 ? longest.youngestWaiting : undefined;
  }

  oldestReadyOf(caller: string): QueueTicket | undefined {
    return this.#queues.get(caller)?.permitQueue.oldest;
  }

  countReadyOlder(caller: string, arrivalNumber: number): number {
    return this.#queues.get(caller)?.permitQueue.countOlder(arrivalNumber) ?? 0;
  }

  /** Tickets that wait for a body slot, then those that wait for a permit. */
  waitingTickets(): readonly QueueTicket[] {
    const queues = [...this.#queues.values()];
    return [...queues.flatMap((queue) => [...queue.bodyQueue]), ...queues.flatMap((queue) => [...queue.permitQueue])];
  }

  #getOrCreateQueue(caller: string): CallerQueue {
    const present = this.#queues.get(caller);
    if (present !== undefined && present !== this.#emptyQueue) return present;
    this.#emptyQueue = present === undefined ? this.#emptyQueue : undefined;
    const queue = present ?? new CallerQueue(caller);
    queue.lastTurn = ++this.#turnCount;
    if (present === undefined) this.#queues.set(caller, queue);
    return queue;
  }

  #updateHeaps(queue: CallerQueue): void {
    this.#byLastTurn.update(queue, queue.permitQueue.size > 0);
    this.#byBodySlots.update(queue, queue.bodyQueue.size > 0);
    this.#byLength.update(queue, queue.waitingCount > 0);
    if (queue.size > 0) return;
    if (this.#emptyQueue !== undefined && this.#emptyQueue !== queue) this.#queues.delete(this.#emptyQueue.caller);
    this.#emptyQueue = queue;
  }
}
