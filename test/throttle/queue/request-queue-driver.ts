/** A waiting queue without time: bodies are there the moment they may be read, and permits are given when the test says so. */
import { type TicketHost, QueueTicket } from '../../../src/throttle/queue/queue-ticket.ts';
import type { Priority, QueueClass } from '../../../src/throttle/throttle.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { RequestQueue } from '../../../src/throttle/queue/request-queue.ts';

const unasked = (): never => {
  throw new Error('not called in this test');
};

const HOST: TicketHost = {
  isShutDown: false,
  clock: new ManualClock(),
  waitForBodySlot: unasked,
  waitForPermit: unasked,
  tryTakePermit: unasked,
  retryWaitMs: unasked,
  responseTimes: { longestMs: unasked, shortestMs: unasked },
  leave: unasked,
  recordBodyEnd: unasked,
};

export class QueueDriver {
  readonly queue: RequestQueue;
  /** In order of their permits. */
  readonly granted: QueueTicket[] = [];
  #arrivals = 0;

  constructor(places = Infinity) {
    this.queue = new RequestQueue(places);
  }

  enter(priority: Priority = 'normal', caller = ''): QueueTicket {
    const ticket = this.createTicket({ priority, caller });
    this.queue.add(ticket);
    this.#readBodies(ticket);
    return ticket;
  }

  createTicket(queueClass: QueueClass): QueueTicket {
    return new QueueTicket(HOST, this.#arrivals++, Infinity, Infinity, queueClass);
  }

  /** Gives the next permit; undefined when no ticket waits. */
  grant(): QueueTicket | undefined {
    const ticket = this.queue.nextReady;
    if (ticket === undefined) return undefined;
    this.queue.move(ticket, 'granted');
    this.granted.push(ticket);
    this.#readBodies();
    return ticket;
  }

  retry(ticket: QueueTicket): void {
    this.queue.move(ticket, 'ready');
  }

  leave(ticket: QueueTicket): void {
    this.queue.move(ticket, 'left');
    this.#readBodies();
  }

  /** Grants until no ticket waits. @returns the tickets in order */
  drain(): QueueTicket[] {
    const from = this.granted.length;
    while (this.grant() !== undefined);
    return this.granted.slice(from);
  }

  #readBodies(entered?: QueueTicket): void {
    if (entered?.phase === 'buffering') this.queue.move(entered, 'ready');
    for (let next = this.queue.admitNext(); next !== undefined; next = this.queue.admitNext())
      this.queue.move(next, 'ready');
  }
}
