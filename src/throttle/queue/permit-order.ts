/**
 * Tickets in the order of their permits: retries in order of arrival, then the others by stride scheduling of their priorities (Waldspurger
 * 1995). Each priority has a pass, which a permit raises by its stride; the lowest pass is next. Of 81 permits with all priorities waiting 64 go
 * to high, 16 to normal and 1 to low. A priority that comes back starts one stride behind the others. CallerRoundRobin orders the callers
 * within a priority. Reads no clock.
 */
import { ArrivalQueue } from './arrival-queue.ts';
import { CallerRoundRobin } from './round-robin.ts';
import type { TicketPhase, QueueTicket } from './queue-ticket.ts';
import type { Priority, QueueClass } from '../throttle.ts';

const WEIGHTS: Readonly<Record<Priority, number>> = { high: 64, normal: 16, low: 1 };

const ALL_WEIGHTS = WEIGHTS.high + WEIGHTS.normal + WEIGHTS.low;

class PriorityClass {
  readonly priority: Priority;
  /** How far one permit moves its pass: the lower the weight, the farther. */
  readonly stride: number;
  /** Tickets that wait for their first permit. */
  readonly callers = new CallerRoundRobin();
  pass = 0;

  constructor(priority: Priority) {
    this.priority = priority;
    this.stride = WEIGHTS.high / WEIGHTS[priority];
  }
}

export class PermitOrder {
  readonly #retries = new ArrivalQueue<QueueTicket>();
  #retriesWithSlot = 0;
  readonly #byPriority = {
    high: new PriorityClass('high'),
    normal: new PriorityClass('normal'),
    low: new PriorityClass('low'),
  };
  /** The first wins a tie. */
  readonly #classes: readonly PriorityClass[] = Object.values(this.#byPriority);
  #lowPriorityBodySlots = 0;
  /** The pass of the priority that was last served in turn. */
  #globalPass = 0;

  constructor(bodySlots: number) {
    this.setBodySlots(bodySlots);
  }

  /** Low priority leaves a quarter of them to the others. */
  setBodySlots(bodySlots: number): void {
    this.#lowPriorityBodySlots = Math.max(1, Math.floor(bodySlots * 0.75));
  }

  get bodySlotsUsed(): number {
    return this.#classes.reduce((used, { callers }) => used + callers.bodySlotsUsed, this.#retriesWithSlot);
  }

  get callerCount(): number {
    return this.#classes.reduce((count, { callers }) => count + callers.callerCount, 0);
  }

  get nextReady(): QueueTicket | undefined {
    const retry = this.#retries.oldest;
    if (retry === undefined) return this.nextInTurn;
    // A caller's requests stay in order: its older request, whose body took longer, goes before the retry.
    const { priority, caller } = retry.queueClass;
    const ownOldest = this.#byPriority[priority].callers.oldestReadyOf(caller);
    return ownOldest !== undefined && ownOldest.arrivalNumber < retry.arrivalNumber ? ownOldest : retry;
  }

  /** The next of high priority. */
  get nextReadyHigh(): QueueTicket | undefined {
    for (const retry of this.#retries) if (retry.isHigh) return retry;
    return this.#byPriority.high.callers.nextReady;
  }

  /** The queued ticket that gets the next body slot: the one whose permit comes first, if those before it keep their slots. */
  get nextQueued(): QueueTicket | undefined {
    let next: PriorityClass | undefined;
    for (const each of this.#classes) {
      if (each.callers.nextQueued === undefined || !this.#canUseMoreBodySlots(each)) continue;
      if (next === undefined || this.#passForNextBody(each) < this.#passForNextBody(next)) next = each;
    }
    return next?.callers.nextQueued;
  }

  /** A new ticket of this class may read its body before all queued ones. */
  canBufferNow({ priority }: QueueClass): boolean {
    return this.nextQueued === undefined && this.#canUseMoreBodySlots(this.#byPriority[priority]);
  }

  /** Adds waiting tickets by priority to `sizes`. O(1) plus the number of retries. */
  addSizesTo(sizes: Record<Priority, number>): void {
    for (const { priority, callers } of this.#classes) sizes[priority] += callers.size;
    for (const { queueClass } of this.#retries) sizes[queueClass.priority]++;
  }

  /** Moves a ticket in, on or out; `granted` costs its priority and its caller the turn. */
  move(ticket: QueueTicket, from: TicketPhase, to: TicketPhase): void {
    if (ticket.wasGranted) {
      this.#moveRetry(ticket, from, to);
      return;
    }
    const own = this.#byPriority[ticket.queueClass.priority];
    own.pass = this.#passOf(own);
    if (to === 'granted') this.#charge(own);
    own.callers.move(ticket, from, to);
  }

  /** A permit went to a ticket that is kept elsewhere: it costs its priority and its caller the turn as well. */
  chargeTurn({ priority, caller }: QueueClass): void {
    const own = this.#byPriority[priority];
    this.#charge(own);
    own.callers.chargeTurn(caller);
  }

  /** All priorities begin again at the same pass. Only while no ticket waits. */
  forgetTurns(): void {
    this.#globalPass = 0;
    for (const each of this.#classes) each.pass = 0;
  }

  /** As RequestQueue's. */
  countAhead({ priority, caller }: QueueClass): number {
    const own = this.#byPriority[priority];
    const ownCount = own.callers.countAhead(caller);
    const pass = this.#passOf(own) + ownCount * own.stride;
    let count = this.#retries.size + ownCount;
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

  /** As RequestQueue's. */
  countAheadOfRetry({ queueClass: { priority, caller }, arrivalNumber }: QueueTicket): number {
    const { callers } = this.#byPriority[priority];
    return this.#retries.countOlder(arrivalNumber) + callers.countReadyOlder(caller, arrivalNumber);
  }

  /**
   * The ticket to reject so that a new one of this class finds a place in a queue of `max`: the youngest of a lower priority that
   * holds more than its share by weight, else the youngest of a caller of its own priority with a longer queue. Never a retry.
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

  /** The youngest of the lowest priority that waits. Never a retry. */
  get youngest(): QueueTicket | undefined {
    for (const each of this.#classes.toReversed())
      if (each.callers.youngestOfLongestQueue !== undefined) return each.callers.youngestOfLongestQueue;
    return undefined;
  }

  waitingTickets(): readonly QueueTicket[] {
    return [...this.#classes.flatMap((each) => each.callers.waitingTickets()), ...this.#retries];
  }

  /** As `nextReady`, without retries. */
  get nextInTurn(): QueueTicket | undefined {
    let next: PriorityClass | undefined;
    for (const each of this.#classes) {
      if (each.callers.nextReady === undefined) continue;
      if (next === undefined || this.#passOf(each) < this.#passOf(next)) next = each;
    }
    return next?.callers.nextReady;
  }

  #moveRetry(ticket: QueueTicket, from: TicketPhase, to: TicketPhase): void {
    // A waiting retry keeps the body that it has read, so it takes a slot.
    if (from === 'ready' && this.#retries.remove(ticket) && ticket.holdsBodySlot) this.#retriesWithSlot--;
    ticket.holdsBodySlot = to === 'ready' && ticket.awaitsBody;
    if (to === 'granted') this.chargeTurn(ticket.queueClass);
    if (to !== 'ready') return;
    this.#retries.insert(ticket);
    if (ticket.holdsBodySlot) this.#retriesWithSlot++;
  }

  #canUseMoreBodySlots(each: PriorityClass): boolean {
    return each.priority !== 'low' || each.callers.bodySlotsUsed < this.#lowPriorityBodySlots;
  }

  /** A priority without tickets saves up no turns: it waits for its first permit as for any other. */
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
    // A retry is served out of turn: the waiting priorities must not lose theirs by it.
    for (const each of this.#classes)
      if (each.callers.nextReady !== undefined) reached = Math.min(reached, this.#passOf(each));
    this.#globalPass = reached;
    own.pass = pass + own.stride;
  }
}
