/** A waiting room without time: bodies are there the moment they may be read, and permits are given when the test says so. */
import { type TicketHost, QueueTicket } from '../../../src/throttle/queue/queue-ticket.ts';
import type { Priority, QueueClass } from '../../../src/throttle/throttle.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { RequestQueue } from '../../../src/throttle/queue/request-queue.ts';

const unasked = (): never => {
  throw new Error('nobody asks the desk here');
};

const DESK: TicketHost = {
  isShutDown: false,
  clock: new ManualClock(),
  waitForBodySlot: unasked,
  waitForPermit: unasked,
  tryTakePermit: unasked,
  retryWaitMs: unasked,
  leave: unasked,
  recordBodyEnd: unasked,
};

export class RoomDriver {
  readonly room: RequestQueue;
  /** In order of their permits. */
  readonly granted: QueueTicket[] = [];
  #arrivals = 0;

  constructor(places = Infinity) {
    this.room = new RequestQueue(places);
  }

  enter(priority: Priority = 'normal', caller = ''): QueueTicket {
    const ticket = this.createTicket({ priority, caller });
    this.room.add(ticket);
    this.#readBodies(ticket);
    return ticket;
  }

  createTicket(standing: QueueClass): QueueTicket {
    return new QueueTicket(DESK, this.#arrivals++, Infinity, Infinity, standing);
  }

  /** Gives the next permit; undefined when nobody waits. */
  grant(): QueueTicket | undefined {
    const ticket = this.room.nextReady;
    if (ticket === undefined) return undefined;
    this.room.move(ticket, 'granted');
    this.granted.push(ticket);
    this.#readBodies();
    return ticket;
  }

  retry(ticket: QueueTicket): void {
    this.room.move(ticket, 'ready');
  }

  leave(ticket: QueueTicket): void {
    this.room.move(ticket, 'left');
    this.#readBodies();
  }

  /** Gives permits until nobody waits. @returns who had them */
  drain(): QueueTicket[] {
    const from = this.granted.length;
    while (this.grant() !== undefined);
    return this.granted.slice(from);
  }

  #readBodies(entered?: QueueTicket): void {
    if (entered?.phase === 'buffering') this.room.move(entered, 'ready');
    for (let next = this.room.admitNext(); next !== undefined; next = this.room.admitNext())
      this.room.move(next, 'ready');
  }
}
