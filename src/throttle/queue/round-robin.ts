/**
 * The callers of one priority take turns: a permit goes to the caller that has been without one for longest, a place for a body
 * to the one that holds fewest. Within a caller it goes by age. How much the priority gets is fair-order.ts's.
 */
import { CallerQueue } from './caller-queue.ts';
import { Heap, type HeapOrder } from './heap.ts';
import type { TicketPhase, QueueTicket } from './queue-ticket.ts';
import { RankCounts } from './rank-counts.ts';

const BY_LAST_TURN: HeapOrder<CallerQueue> = {
  precedes: (one, other) => one.lastTurn < other.lastTurn,
  getIndex: (line) => line.grantHeapIndex,
  setIndex: (line, slot) => {
    line.grantHeapIndex = slot;
  },
};

// The round in which a body's request will have its permit, and the turn in that round.
const BY_BODY_SLOTS: HeapOrder<CallerQueue> = {
  precedes: (one, other) =>
    one.bodySlotsUsed < other.bodySlotsUsed ||
    (one.bodySlotsUsed === other.bodySlotsUsed && one.lastTurn < other.lastTurn),
  getIndex: (line) => line.bodyHeapIndex,
  setIndex: (line, slot) => {
    line.bodyHeapIndex = slot;
  },
};

const BY_QUEUE_LENGTH: HeapOrder<CallerQueue> = {
  precedes: (one, other) =>
    one.waitingCount > other.waitingCount || (one.waitingCount === other.waitingCount && one.lastTurn > other.lastTurn),
  getIndex: (line) => line.lengthHeapIndex,
  setIndex: (line, slot) => {
    line.lengthHeapIndex = slot;
  },
};

/** Who waits in one class, by caller. O(log n) in the number of callers to move a ticket; nothing is kept of the absent. */
export class CallerRoundRobin {
  readonly #queues = new Map<string, CallerQueue>();
  readonly #byLastTurn = new Heap(BY_LAST_TURN);
  readonly #byBodySlots = new Heap(BY_BODY_SLOTS);
  readonly #byLength = new Heap(BY_QUEUE_LENGTH);
  readonly #ranks = new RankCounts();
  /** The line that was left last stays open: while nobody has to wait each request needs one for a moment. */
  #emptyQueue: CallerQueue | undefined;
  #turnCount = 0;
  #size = 0;
  #bodySlotsUsed = 0;

  /** Tickets outside, preparing or ready. */
  get size(): number {
    return this.#size;
  }

  /** Places for bodies that they take. */
  get bodySlotsUsed(): number {
    return this.#bodySlotsUsed;
  }

  /** Callers of whom a record is kept. */
  get callerCount(): number {
    return this.#queues.size - (this.#emptyQueue === undefined ? 0 : 1);
  }

  get nextReady(): QueueTicket | undefined {
    return this.#byLastTurn.first?.permitQueue.oldest;
  }

  get nextQueued(): QueueTicket | undefined {
    return this.#byBodySlots.first?.bodyQueue.oldest;
  }

  /** The youngest of the caller that has most waiting. */
  get youngestOfLongestQueue(): QueueTicket | undefined {
    return this.#byLength.first?.youngestWaiting;
  }

  /** Brings a ticket in, on or out; `granted` costs its caller the turn. */
  move(ticket: QueueTicket, from: TicketPhase, to: TicketPhase): void {
    const line = this.#getOrCreateQueue(ticket.queueClass.caller);
    const { size, bodySlotsUsed } = line;
    line.move(ticket, from, to);
    if (line.size > size) this.#ranks.add(line.size);
    else if (line.size < size) this.#ranks.remove(size);
    this.#size += line.size - size;
    this.#bodySlotsUsed += line.bodySlotsUsed - bodySlotsUsed;
    if (to === 'granted') line.lastTurn = ++this.#turnCount;
    this.#updateHeaps(line);
  }

  /** A permit went to the caller for a ticket that stands in no line. */
  chargeTurn(caller: string): void {
    const line = this.#queues.get(caller);
    if (line === undefined || line === this.#emptyQueue) return;
    line.lastTurn = ++this.#turnCount;
    this.#updateHeaps(line);
  }

  /** How many at least will have a permit before a new ticket of the caller's has one, if all of them stay. */
  countAhead(caller: string): number {
    // In each round that its own line takes, every other line has a turn as well, as long as it lasts.
    return this.#ranks.countUpTo(Math.max(1, this.#queues.get(caller)?.size ?? 0));
  }

  /** Who may be sent away for a new ticket of the caller's: the last of a line that stays the longer one even so. */
  evictionCandidate(caller: string): QueueTicket | undefined {
    const longest = this.#byLength.first;
    const own = this.#queues.get(caller)?.size ?? 0;
    return longest !== undefined && longest.waitingCount >= own + 2 ? longest.youngestWaiting : undefined;
  }

  /** Of the caller's own. */
  oldestReadyOf(caller: string): QueueTicket | undefined {
    return this.#queues.get(caller)?.permitQueue.oldest;
  }

  /** Of the caller's own. O(result). */
  countReadyOlder(caller: string, age: number): number {
    return this.#queues.get(caller)?.permitQueue.countOlder(age) ?? 0;
  }

  /** All that stand in queues, those outside first. */
  waitingTickets(): readonly QueueTicket[] {
    const lines = [...this.#queues.values()];
    return [...lines.flatMap((line) => [...line.bodyQueue]), ...lines.flatMap((line) => [...line.permitQueue])];
  }

  #getOrCreateQueue(caller: string): CallerQueue {
    const present = this.#queues.get(caller);
    if (present !== undefined && present !== this.#emptyQueue) return present;
    this.#emptyQueue = present === undefined ? this.#emptyQueue : undefined;
    const line = present ?? new CallerQueue(caller);
    line.lastTurn = ++this.#turnCount;
    if (present === undefined) this.#queues.set(caller, line);
    return line;
  }

  #updateHeaps(line: CallerQueue): void {
    this.#byLastTurn.update(line, line.permitQueue.size > 0);
    this.#byBodySlots.update(line, line.bodyQueue.size > 0);
    this.#byLength.update(line, line.waitingCount > 0);
    if (line.size > 0) return;
    if (this.#emptyQueue !== undefined && this.#emptyQueue !== line) this.#queues.delete(this.#emptyQueue.caller);
    this.#emptyQueue = line;
  }
}
