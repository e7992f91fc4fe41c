/** A waiting queue without time: bodies are there the moment they may be read, and permits are given when the test says so. */
import { QueueTicket } from '../../../src/throttle/queue/queue-ticket.ts';
import type { Priority, QueueClass } from '../../../src/throttle/throttle.ts';
import { ResponseTimes } from '../../../src/throttle/queue/response-times.ts';
import { RequestQueue } from '../../../src/throttle/queue/request-queue.ts';

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
    const arrival = { arrivedAt: 0, deadlineAt: Infinity, queueClass, awaitsBody: true, endpoint: '' };
    return new QueueTicket(new ResponseTimes(), { arrivalNumber: this.#arrivals++, ...arrival }, Infinity);
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
