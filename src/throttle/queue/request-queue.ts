/**
 * The tickets of one throttle: how many wait, in which phase, and until when. At most `bodySlots` requests without a permit
 * read their bodies; of those that have read them one is next. PermitOrder decides the order. Tickets of a lane that its gate holds back, or
 * that would take more than half of the body slots, wait in an order of their own. This file settles no promise and reads no clock.
 */
import { ArrivalQueue } from './arrival-queue.ts';
import { Heap } from './heap.ts';
import { PermitOrder } from './permit-order.ts';
import type { LaneGate } from './lane-gate.ts';
import { QueueLane } from './queue-lane.ts';
import type { PendingWait, TicketPhase, QueueTicket } from './queue-ticket.ts';
import type { Priority, QueueClass } from '../throttle.ts';

/** What one lane may take, while others wait, of the body slots and places that the other lanes leave. */
const LANE_SHARE = 0.5;
/** Phases with a place in an order. */
const WAITING: ReadonlySet<TicketPhase> = new Set(['queued', 'received', 'buffering', 'held', 'ready']);

export class RequestQueue {
  #bodySlots: number;
  readonly #order: PermitOrder;
  readonly #lanes = new Map<LaneGate, QueueLane>();
  #laneBodySlotsUsed = 0;
  readonly #readers = new ArrivalQueue<QueueTicket>();
  readonly #expiries = new Heap<QueueTicket>((one, other) => one.expiresAt < other.expiresAt);
  readonly #counts = {
    complete: 0,
    queued: 0,
    received: 0,
    buffering: 0,
    stalled: 0,
    held: 0,
    ready: 0,
    granted: 0,
    left: 0,
  };
  /** Tickets by phase. Those of `complete`, `granted` and `left` have no place here, and their counts mean nothing. */
  readonly counts: Readonly<Record<TicketPhase, number>> = this.#counts;
  #hasGrantedUncontended = false;

  /** @param bodySlots how many requests may read their bodies or keep them while they wait */
  constructor(bodySlots: number) {
    this.#bodySlots = bodySlots;
    this.#order = new PermitOrder(bodySlots);
  }

  /** A request that has a body slot keeps it, even when there are fewer now. */
  setBodySlots(bodySlots: number): void {
    this.#bodySlots = bodySlots;
    this.#order.setBodySlots(bodySlots);
    for (const { order } of this.#lanes.values()) order.setBodySlots(bodySlots);
  }

  /** Tickets that wait for a body slot, for their body or for a permit. Stalled ones are not counted. */
  get size(): number {
    const { queued, received, buffering, held, ready } = this.#counts;
    return queued + received + buffering + held + ready;
  }

  /** Lanes with tickets that wait. */
  get lanes(): Iterable<QueueLane> {
    return this.#lanes.values();
  }

  /** Undefined while no ticket of the gate waits. */
  laneOf(gate: LaneGate): QueueLane | undefined {
    return this.#lanes.get(gate);
  }

  /** Lanes whose limit this governor has learned. */
  lanesOf(governor: LaneGate['governor']): readonly QueueLane[] {
    return [...this.#lanes.values()].filter(({ gate }) => gate.governor === governor);
  }

  /** Callers that have a record, counted once for each priority and lane. */
  get callerCount(): number {
    let count = this.#order.callerCount;
    for (const { order } of this.#lanes.values()) count += order.callerCount;
    return count;
  }

  get nextReady(): QueueTicket | undefined {
    return this.#order.nextReady;
  }

  /** The next of high priority. */
  get nextReadyHigh(): QueueTicket | undefined {
    return this.#order.nextReadyHigh;
  }

  /** As `nextReady`, without retries. */
  get nextInTurn(): QueueTicket | undefined {
    return this.#order.nextInTurn;
  }

  /** When the first of the present waits expires; Infinity without one. */
  get nextExpiryAt(): number {
    return this.#expiries.first?.expiresAt ?? Infinity;
  }

  /** Waiting tickets by priority. O(1) plus the number of retries. */
  sizesByPriority(): Record<Priority, number> {
    const sizes = { high: 0, normal: 0, low: 0 };
    this.#order.addSizesTo(sizes);
    for (const { order } of this.#lanes.values()) order.addSizesTo(sizes);
    return sizes;
  }

  /** Takes in a new ticket whose body has to be read, or a stalled one whose body continues. It gets a body slot if one is free. */
  add(ticket: QueueTicket): void {
    const { gate, queueClass } = ticket;
    const lane = gate === undefined ? undefined : this.#lanes.get(gate);
    const mayBuffer = lane === undefined || (lane.order.nextQueued === undefined && this.#hasBodySlotFor(lane));
    const isNext = mayBuffer && this.#hasFreeBodySlot() && this.#order.canBufferNow(queueClass);
    this.move(ticket, isNext ? 'buffering' : 'queued');
  }

  /** Grants to a ticket that needed no place here, while no other waits but for its lane. @returns false when it has to move in here first */
  tryGrantUncontended(ticket: QueueTicket): boolean {
    const { queued, received, buffering, ready } = this.#counts;
    const hasPlace = ticket.phase !== 'complete' && ticket.phase !== 'granted';
    if (hasPlace || queued + received + buffering + ready > 0) return false;
    ticket.phase = 'granted';
    ticket.wasGranted = true;
    this.#hasGrantedUncontended = true;
    return true;
  }

  /**
   * Takes the slots of readers whose last byte came at `at` or before.
   * @returns the earliest last byte of the other readers; Infinity without others
   */
  markStalledReaders(at: number): number {
    let earliest = Infinity;
    for (const ticket of [...this.#readers]) {
      if (ticket.lastProgressAt <= at) this.move(ticket, 'stalled');
      else earliest = Math.min(earliest, ticket.lastProgressAt);
    }
    return earliest;
  }

  /** Gives a free body slot to the queued ticket whose turn for a permit comes first, and returns it. */
  admitNext(): QueueTicket | undefined {
    if (!this.#hasFreeBodySlot()) return undefined;
    for (const lane of this.#lanes.values()) this.#promoteQueued(lane);
    const ticket = this.#order.nextQueued;
    if (ticket !== undefined) this.move(ticket, 'buffering');
    return ticket;
  }

  move(ticket: QueueTicket, to: TicketPhase): void {
    const from = ticket.phase;
    ticket.phase = to;
    // Tickets of these phases have no place here.
    if (to === 'left' && (from === 'left' || from === 'complete' || from === 'granted')) return;
    if (this.#hasGrantedUncontended) this.#forgetTurns();
    this.#counts[from]--;
    this.#counts[to]++;
    if (from === 'buffering') this.#readers.remove(ticket);
    if (ticket.gate === undefined) this.#order.move(ticket, from, to);
    else this.#moveInLane(ticket, ticket.gate, from, to);
    if (to === 'granted') ticket.wasGranted = true;
    if (to === 'buffering') this.#readers.insert(ticket);
  }

  /** The gate of its lane lets the ticket go: it waits for its permit among all requests. */
  release(ticket: QueueTicket): void {
    if (ticket.gate !== undefined) this.#lanes.get(ticket.gate)?.order.chargeTurn(ticket.queueClass);
    this.move(ticket, 'ready');
  }

  /** Other limits of its operation hold it back now, or none. */
  changeGate(ticket: QueueTicket, gate: LaneGate | undefined): void {
    const { phase } = ticket;
    if (ticket.gate === gate) return;
    if (!WAITING.has(phase)) {
      ticket.gate = gate;
      return;
    }
    const holdsBodySlot = ticket.holdsBodySlot;
    this.move(ticket, 'stalled');
    ticket.gate = gate;
    ticket.holdsBodySlot = holdsBodySlot;
    if (phase === 'ready' || phase === 'held') this.move(ticket, gate === undefined ? 'ready' : 'held');
    else this.move(ticket, phase);
  }

  beginWait(ticket: QueueTicket, now: number, wait: PendingWait): void {
    ticket.beginWait(now, wait);
    this.#expiries.update(ticket, ticket.expiresAt < Infinity);
  }

  /** Ends the present wait and returns it, so that the caller settles it. */
  endWait(ticket: QueueTicket, now: number): PendingWait | undefined {
    this.#expiries.remove(ticket);
    return ticket.endWait(now);
  }

  /** @returns the wait that it has ended */
  remove(ticket: QueueTicket, now: number): PendingWait | undefined {
    this.move(ticket, 'left');
    return this.endWait(ticket, now);
  }

  expiringBy(at: number): QueueTicket | undefined {
    const ticket = this.#expiries.first;
    return ticket !== undefined && ticket.expiresAt <= at ? ticket : undefined;
  }

  /** Tickets that wait for a body slot or a permit. Those that read their bodies are not among them. */
  waitingTickets(): readonly QueueTicket[] {
    return [this.#order, ...Array.from(this.#lanes.values(), ({ order }) => order)].flatMap((each) =>
      each.waitingTickets(),
    );
  }

  /**
   * Minimum number of permits that other tickets get before a new ticket of this class, if no ticket leaves; those that other lanes hold back are not
   * counted. With one body slot, the result can exceed that number by up to 2: the ticket in the slot gets its permit first, regardless of its
   * priority.
   */
  countAhead(queueClass: QueueClass, gate?: LaneGate): number {
    return this.#order.countAhead(queueClass) + this.countAheadInLane(queueClass, gate);
  }

  /** As `countAhead`, among those that the limits of the same operation hold back. */
  countAheadInLane(queueClass: QueueClass, gate: LaneGate | undefined): number {
    return this.#orderOfGate(gate)?.countAhead(queueClass) ?? 0;
  }

  /** Lower bound of the permits that go out before a retry of this ticket gets one, if no ticket leaves. */
  countAheadOfRetry(ticket: QueueTicket): number {
    return this.#order.countAheadOfRetry(ticket) + (this.#orderOfGate(ticket.gate)?.countAheadOfRetry(ticket) ?? 0);
  }

  /** The ticket to reject so that a new one of this class and operation finds a place in a queue of `max`. Never a retry. */
  evictionCandidate(queueClass: QueueClass, max: number, gate?: LaneGate): QueueTicket | undefined {
    const ticket = this.#candidateByLane(queueClass, max, gate);
    // Without a pending wait there is no promise to reject.
    return ticket?.wait === undefined ? undefined : ticket;
  }

  #candidateByLane(queueClass: QueueClass, max: number, gate: LaneGate | undefined): QueueTicket | undefined {
    const lanes = [...this.#lanes.values()];
    const left = lanes.reduce((places, { size }) => places - size, max);
    const shareOf = (lane: QueueLane): number => LANE_SHARE * (left + lane.size);
    const [longest] = lanes.sort((one, other) => other.size - one.size);
    const own = gate === undefined ? undefined : this.#lanes.get(gate);
    if (longest !== undefined && longest !== own && longest.size > shareOf(longest)) return longest.order.youngest;
    // A lane that has its share takes no place from others.
    const mayTakeOthers = own === undefined || own.size < shareOf(own);
    const ofOthers = mayTakeOthers ? this.#order.evictionCandidate(queueClass, max) : undefined;
    return own?.order.evictionCandidate(queueClass, max) ?? ofOthers;
  }

  #moveInLane(ticket: QueueTicket, gate: LaneGate, from: TicketPhase, to: TicketPhase): void {
    const lane = this.#lanes.get(gate) ?? new QueueLane(gate, this.#bodySlots);
    const hadBodySlot = WAITING.has(from) && ticket.holdsBodySlot;
    const former = ticket.isInLane ? lane.order : this.#order;
    ticket.isInLane = to === 'queued' || to === 'held';
    const next = ticket.isInLane ? lane.order : this.#order;
    if (former !== next && WAITING.has(from) && WAITING.has(to)) transfer(ticket, former, next, from, to);
    else (WAITING.has(from) ? former : next).move(ticket, phaseInOrder(from), phaseInOrder(to));
    if (lane.nextQueued === ticket) lane.nextQueued = undefined;
    const bodySlots = Number(WAITING.has(to) && ticket.holdsBodySlot) - Number(hadBodySlot);
    lane.bodySlotsUsed += bodySlots;
    this.#laneBodySlotsUsed += bodySlots;
    lane.heldCount += Number(to === 'held') - Number(from === 'held');
    lane.readyCount += Number(to === 'ready') - Number(from === 'ready');
    lane.size += Number(WAITING.has(to)) - Number(WAITING.has(from));
    if (lane.size > 0) this.#lanes.set(gate, lane);
    else this.#lanes.delete(gate);
  }

  /** The next of the lane waits for a body slot among all requests, unless the lane has its share of them. */
  #promoteQueued(lane: QueueLane): void {
    const next = lane.nextQueued === undefined && this.#hasBodySlotFor(lane) ? lane.order.nextQueued : undefined;
    if (next === undefined) return;
    next.isInLane = false;
    lane.nextQueued = next;
    transfer(next, lane.order, this.#order, 'queued', 'queued');
  }

  #orderOfGate(gate: LaneGate | undefined): PermitOrder | undefined {
    return gate === undefined ? undefined : this.#lanes.get(gate)?.order;
  }

  #hasBodySlotFor(lane: QueueLane): boolean {
    const left = this.#bodySlots - this.#laneBodySlotsUsed + lane.bodySlotsUsed;
    return lane.bodySlotsUsed < Math.max(1, LANE_SHARE * left);
  }

  #hasFreeBodySlot(): boolean {
    let used = this.#order.bodySlotsUsed;
    for (const { order } of this.#lanes.values()) used += order.bodySlotsUsed;
    return used < this.#bodySlots;
  }

  // When a permit went out while no ticket waited, there was enough for all: turns taken before that no longer count.
  #forgetTurns(): void {
    this.#hasGrantedUncontended = false;
    this.#order.forgetTurns();
  }
}

/** Between two orders a ticket is `held` by neither, and keeps its body slot. */
function transfer(
  ticket: QueueTicket,
  former: PermitOrder,
  next: PermitOrder,
  from: TicketPhase,
  to: TicketPhase,
): void {
  former.move(ticket, phaseInOrder(from), 'held');
  next.move(ticket, 'held', phaseInOrder(to));
}

/** For the order of its lane, a held ticket is ready. */
function phaseInOrder(phase: TicketPhase): TicketPhase {
  return phase === 'held' ? 'ready' : phase;
}
