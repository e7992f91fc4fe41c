/**
 * Who is next among all priorities: stride scheduling (Waldspurger 1995). Each class has a pass that a permit moves on by its
 * stride, and the class whose pass is lowest is next: of 81 permits with all classes waiting 64 go to high, 16 to normal and 1 to
 * low. A class that comes back starts a stride behind where the others are. Within a class it is caller-turns.ts's.
 */
import { CallerRoundRobin } from './round-robin.ts';
import type { TicketPhase, QueueTicket } from './queue-ticket.ts';
import type { Priority, QueueClass } from '../throttle.ts';

/** Permits out of 81 while every class has somebody waiting. */
const WEIGHTS: Readonly<Record<Priority, number>> = { high: 64, normal: 16, low: 1 };

const ALL_WEIGHTS = WEIGHTS.high + WEIGHTS.normal + WEIGHTS.low;

class PriorityClass {
  readonly priority: Priority;
  /** How far one permit moves its pass: the lower the weight, the farther. */
  readonly stride: number;
  readonly callers = new CallerRoundRobin();
  pass = 0;

  constructor(priority: Priority) {
    this.priority = priority;
    this.stride = WEIGHTS.high / WEIGHTS[priority];
  }
}

/** All that wait for their first permit, in the order in which they will have it. Retries stand before them, elsewhere. */
export class FairOrder {
  readonly #high = new PriorityClass('high');
  readonly #normal = new PriorityClass('normal');
  readonly #low = new PriorityClass('low');
  /** The first wins a tie. */
  readonly #classes = [this.#high, this.#normal, this.#low] as const;
  #lowPriorityBodySlots: number;
  /** The pass of whoever was last served in turn. */
  #globalPass = 0;

  /** @param places how many may have their bodies; low priority leaves a quarter of them to the others, so that those find one */
  constructor(places: number) {
    this.#lowPriorityBodySlots = lowPriorityBodySlots(places);
  }

  /** Who has a body keeps it, even if there are fewer places now. */
  setBodySlots(places: number): void {
    this.#lowPriorityBodySlots = lowPriorityBodySlots(places);
  }

  /** Places for bodies that they take. */
  get bodySlotsUsed(): number {
    return this.#high.callers.bodySlotsUsed + this.#normal.callers.bodySlotsUsed + this.#low.callers.bodySlotsUsed;
  }

  /** Callers of whom a record is kept, counted once for each priority. */
  get callerCount(): number {
    return this.#high.callers.callerCount + this.#normal.callers.callerCount + this.#low.callers.callerCount;
  }

  /** Whose turn for a permit is next. */
  get nextReady(): QueueTicket | undefined {
    let next: PriorityClass | undefined;
    for (const each of this.#classes) {
      if (each.callers.nextReady === undefined) continue;
      if (next === undefined || this.#passOf(each) < this.#passOf(next)) next = each;
    }
    return next?.callers.nextReady;
  }

  /**
   * Who should read a body next: the one outside who will have a permit first, if those before it keep their places; undefined
   * when nobody outside may.
   */
  get nextQueued(): QueueTicket | undefined {
    let next: PriorityClass | undefined;
    for (const each of this.#classes) {
      if (each.callers.nextQueued === undefined || !this.#canUseMoreBodySlots(each)) continue;
      if (next === undefined || this.#passForNextBody(each) < this.#passForNextBody(next)) next = each;
    }
    return next?.callers.nextQueued;
  }

  /** Whether a new ticket may read its body before all that are outside. */
  canBufferNow({ priority }: QueueClass): boolean {
    return this.nextQueued === undefined && this.#canUseMoreBodySlots(this.#classOf(priority));
  }

  sizesByPriority(): Record<Priority, number> {
    return { high: this.#high.callers.size, normal: this.#normal.callers.size, low: this.#low.callers.size };
  }

  /** Brings a ticket in, on or out; `granted` costs its class and its caller the turn. */
  move(ticket: QueueTicket, from: TicketPhase, to: TicketPhase): void {
    const own = this.#classOf(ticket.queueClass.priority);
    own.pass = this.#passOf(own);
    if (to === 'granted') this.#charge(own);
    own.callers.move(ticket, from, to);
  }

  /** A permit went to a ticket that stands elsewhere: it costs its class and its caller the turn all the same. */
  chargeTurn({ priority, caller }: QueueClass): void {
    const own = this.#classOf(priority);
    this.#charge(own);
    own.callers.chargeTurn(caller);
  }

  /** All classes begin again at the same pass. Only while no ticket waits. */
  forgetTurns(): void {
    this.#globalPass = 0;
    for (const each of this.#classes) each.pass = 0;
  }

  /** How many at least will have a permit before a new ticket of this standing has one, if all of them stay. */
  countAhead({ priority, caller }: QueueClass): number {
    const own = this.#classOf(priority);
    const ownCount = own.callers.countAhead(caller);
    const pass = this.#passOf(own) + ownCount * own.stride;
    let count = ownCount;
    let winsTies = true;
    for (const other of this.#classes) {
      if (other === own) {
        winsTies = false;
        continue;
      }
      const turns = (pass - this.#passOf(other)) / other.stride;
      const before = winsTies ? Math.floor(turns) + 1 : Math.ceil(turns);
      count += Math.max(0, Math.min(before, other.callers.size));
    }
    return count;
  }

  /**
   * Who may be sent away so that a new ticket of this standing finds a place in a queue of `max`: the last of a lower class that
   * holds more than its share by weight, else the last of a longer line in its own class.
   */
  evictionCandidate({ priority, caller }: QueueClass, max: number): QueueTicket | undefined {
    for (const each of this.#classes.toReversed()) {
      if (each.priority === priority) return each.callers.evictionCandidate(caller);
      const share = Math.ceil((max * WEIGHTS[each.priority]) / ALL_WEIGHTS);
      const last = each.callers.size > share ? each.callers.youngestOfLongestQueue : undefined;
      if (last !== undefined) return last;
    }
    return undefined;
  }

  oldestReadyOf({ priority, caller }: QueueClass): QueueTicket | undefined {
    return this.#classOf(priority).callers.oldestReadyOf(caller);
  }

  countReadyOlder({ priority, caller }: QueueClass, age: number): number {
    return this.#classOf(priority).callers.countReadyOlder(caller, age);
  }

  /** All that stand in queues. */
  waitingTickets(): readonly QueueTicket[] {
    return this.#classes.flatMap((each) => each.callers.waitingTickets());
  }

  #classOf(priority: Priority): PriorityClass {
    switch (priority) {
      case 'high':
        return this.#high;
      case 'normal':
        return this.#normal;
      case 'low':
        return this.#low;
    }
  }

  #canUseMoreBodySlots(each: PriorityClass): boolean {
    return each !== this.#low || each.callers.bodySlotsUsed < this.#lowPriorityBodySlots;
  }

  /** Nobody saves turns up while it has nothing to send: it waits for its first as it would for another. */
  #passOf(each: PriorityClass): number {
    const isBack = each.callers.size === 0 && each.pass <= this.#globalPass;
    return isBack ? this.#globalPass + each.stride : Math.max(each.pass, this.#globalPass);
  }

  #passForNextBody(each: PriorityClass): number {
    return this.#passOf(each) + each.callers.bodySlotsUsed * each.stride;
  }

  #charge(own: PriorityClass): void {
    const pass = this.#passOf(own);
    let reached = pass;
    // A retry is served out of turn: the others, who wait, do not lose theirs by it.
    for (const each of this.#classes)
      if (each.callers.nextReady !== undefined) reached = Math.min(reached, this.#passOf(each));
    this.#globalPass = reached;
    own.pass = pass + own.stride;
  }
}

function lowPriorityBodySlots(places: number): number {
  return Math.max(1, Math.floor(places * 0.75));
}
