/**
 * Requests that wait for the limits of their operation, apart from the others, so that they hold up none of these. Whenever the limits let one
 * go, the first moves to the order of all requests, which decides when it really goes. Exists while requests of the lane wait.
 */
import type { LaneGate } from './lane-gate.ts';
import { PermitOrder } from './permit-order.ts';
import type { QueueTicket } from './queue-ticket.ts';

export class QueueLane {
  readonly gate: LaneGate;
  /** Has the tickets that wait for a body slot or for the gate; the others are in the order of all requests. */
  readonly order: PermitOrder;
  /** Tickets of the lane that wait, in either order. */
  size = 0;
  /** Counts the tickets that wait for the gate; `readyCount` those that it has let go and that have no permit yet. */
  heldCount = 0;
  readyCount = 0;
  bodySlotsUsed = 0;
  /** The ticket of the lane that waits for its body slot in the order of all requests. */
  nextQueued: QueueTicket | undefined;

  /** @param bodySlots as FairOrder's */
  constructor(gate: LaneGate, bodySlots: number) {
    this.gate = gate;
    this.order = new PermitOrder(bodySlots);
  }

  /** The held ticket that may go now. */
  openTicket(now: number): QueueTicket | undefined {
    const next = this.order.nextReady;
    if (next === undefined || this.gate.nextAt(now, next.isHigh) <= now) return next;
    const high = next.isHigh ? undefined : this.order.nextReadyHigh;
    return high !== undefined && this.gate.nextAt(now, true) <= now ? high : undefined;
  }

  /** When the first of the held tickets may go. */
  opensAt(now: number): number {
    return this.heldCount === 0 ? Infinity : this.gate.nextAt(now, this.order.nextReadyHigh !== undefined);
  }
}
