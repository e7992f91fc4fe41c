/**
 * The callers of one priority take turns: a permit goes to the caller that has been without one for longest, a place for a body
 * to the one that holds fewest. Within a caller it goes by age. How much the priority gets is fair-order.ts's.
 */
import { CallerLine } from './caller-line.ts';
import { Heap, type HeapOrder } from './heap.ts';
import type { Phase, QueueTicket } from './queue-ticket.ts';
import { RankCounts } from './rank-counts.ts';

const LONGEST_WITHOUT_PERMIT: HeapOrder<CallerLine> = {
  precedes: (one, other) => one.turn < other.turn,
  slotOf: (line) => line.grantSlot,
  putSlot: (line, slot) => {
    line.grantSlot = slot;
  },
};

// The round in which a body's request will have its permit, and the turn in that round.
const FEWEST_PLACES: HeapOrder<CallerLine> = {
  precedes: (one, other) => one.held < other.held || (one.held === other.held && one.turn < other.turn),
  slotOf: (line) => line.placeSlot,
  putSlot: (line, slot) => {
    line.placeSlot = slot;
  },
};

const LONGEST_LINE: HeapOrder<CallerLine> = {
  precedes: (one, other) => one.queued > other.queued || (one.queued === other.queued && one.turn > other.turn),
  slotOf: (line) => line.lengthSlot,
  putSlot: (line, slot) => {
    line.lengthSlot = slot;
  },
};

/** Who waits in one class, by caller. O(log n) in the number of callers to move a ticket; nothing is kept of the absent. */
export class CallerTurns {
  readonly #lines = new Map<string, CallerLine>();
  readonly #forPermit = new Heap(LONGEST_WITHOUT_PERMIT);
  readonly #forPlace = new Heap(FEWEST_PLACES);
  readonly #byLength = new Heap(LONGEST_LINE);
  readonly #ranks = new RankCounts();
  /** The line that was left last stays open: while nobody has to wait each request needs one for a moment. */
  #vacant: CallerLine | undefined;
  #turns = 0;
  #size = 0;
  #held = 0;
  #outside = 0;

  /** Tickets outside, preparing or ready. */
  get size(): number {
    return this.#size;
  }

  /** Places for bodies that they take. */
  get held(): number {
    return this.#held;
  }

  /** Tickets that wait for a place. */
  get outside(): number {
    return this.#outside;
  }

  /** Callers of whom a record is kept. */
  get callers(): number {
    return this.#lines.size - (this.#vacant === undefined ? 0 : 1);
  }

  get nextReady(): QueueTicket | undefined {
    return this.#forPermit.first?.ready.oldest;
  }

  get nextOutside(): QueueTicket | undefined {
    return this.#forPlace.first?.outside.oldest;
  }

  /** The youngest of the caller that has most waiting. */
  get lastQueued(): QueueTicket | undefined {
    return this.#byLength.first?.youngestQueued;
  }

  /** Brings a ticket in, on or out; `granted` costs its caller the turn. */
  move(ticket: QueueTicket, from: Phase, to: Phase): void {
    const line = this.#openLine(ticket.standing.caller);
    const { size, held } = line;
    line.move(ticket, from, to);
    if (line.size > size) this.#ranks.add(line.size);
    else if (line.size < size) this.#ranks.remove(size);
    this.#size += line.size - size;
    this.#held += line.held - held;
    this.#outside += Number(to === 'outside') - Number(from === 'outside');
    if (to === 'granted') line.turn = ++this.#turns;
    this.#file(line);
  }

  /** A permit went to the caller for a ticket that stands in no line. */
  passTurn(caller: string): void {
    const line = this.#lines.get(caller);
    if (line === undefined || line === this.#vacant) return;
    line.turn = ++this.#turns;
    this.#file(line);
  }

  /** How many at least will have a permit before a new ticket of the caller's has one, if all of them stay. */
  countAhead(caller: string): number {
    // In each round that its own line takes, every other line has a turn as well, as long as it lasts.
    return this.#ranks.countUpTo(Math.max(1, this.#lines.get(caller)?.size ?? 0));
  }

  /** Who may be sent away for a new ticket of the caller's: the last of a line that stays the longer one even so. */
  displaceableBy(caller: string): QueueTicket | undefined {
    const longest = this.#byLength.first;
    const own = this.#lines.get(caller)?.size ?? 0;
    return longest !== undefined && longest.queued >= own + 2 ? longest.youngestQueued : undefined;
  }

  /** Of the caller's own. */
  oldestReadyOf(caller: string): QueueTicket | undefined {
    return this.#lines.get(caller)?.ready.oldest;
  }

  /** Of the caller's own. O(result). */
  countReadyOlder(caller: string, age: number): number {
    return this.#lines.get(caller)?.ready.countOlder(age) ?? 0;
  }

  /** All that stand in queues, those outside first. */
  queued(): readonly QueueTicket[] {
    const lines = [...this.#lines.values()];
    return [...lines.flatMap((line) => [...line.outside]), ...lines.flatMap((line) => [...line.ready])];
  }

  #openLine(caller: string): CallerLine {
    const present = this.#lines.get(caller);
    if (present !== undefined && present !== this.#vacant) return present;
    this.#vacant = present === undefined ? this.#vacant : undefined;
    const line = present ?? new CallerLine(caller);
    line.turn = ++this.#turns;
    if (present === undefined) this.#lines.set(caller, line);
    return line;
  }

  #file(line: CallerLine): void {
    this.#forPermit.keep(line, line.ready.size > 0);
    this.#forPlace.keep(line, line.outside.size > 0);
    this.#byLength.keep(line, line.queued > 0);
    if (line.size > 0) return;
    if (this.#vacant !== undefined && this.#vacant !== line) this.#lines.delete(this.#vacant.caller);
    this.#vacant = line;
  }
}
