/**
 * The open connections of a port: how many there may be, and which one gives way when the port is full. It is the one that has waited longest
 * without a complete request, whether it is idle or within a request head; never one with a request that has no response yet.
 */
import type { Socket } from 'node:net';
import type { Clock } from './clock.ts';

/** One connection. Those that wait form a linked list, which costs no allocation per request. */
class ConnectionSlot {
  readonly socket: Socket;
  /** Requests without a response. */
  pendingRequests = 0;
  requestCount = 0;
  waitStartedAt = 0;
  older: ConnectionSlot | undefined;
  newer: ConnectionSlot | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
  }
}

/** What to do about a new connection. */
export type SlotDecision =
  | { readonly kind: 'accept' }
  /** It is in; `socket`, which is in no longer, has to go. */
  | {
      readonly kind: 'displace';
      readonly socket: Socket;
      /** It has had no request: what the peer has sent of its first one, if anything, is not read to its end. */
      readonly isNew: boolean;
    }
  /** It is not in: no connection has waited long enough to give way. */
  | { readonly kind: 'refuse' };

const ACCEPT: SlotDecision = { kind: 'accept' };
const REFUSE: SlotDecision = { kind: 'refuse' };

export class ConnectionSlots {
  readonly #max: number;
  readonly #minWaitMs: number;
  readonly #clock: Clock;
  readonly #slots = new Map<Socket, ConnectionSlot>();
  #oldestWaiting: ConnectionSlot | undefined;
  #newestWaiting: ConnectionSlot | undefined;

  /**
   * @param max how many may be open
   * @param minWaitMs none gives way sooner, so that connections of one moment do not displace each other unread
   */
  constructor(max: number, minWaitMs: number, clock: Clock) {
    this.#max = max;
    this.#minWaitMs = minWaitMs;
    this.#clock = clock;
  }

  get size(): number {
    return this.#slots.size;
  }

  get sockets(): Iterable<Socket> {
    return this.#slots.keys();
  }

  /** Takes a connection in until it closes, if there is a slot or one can be had. */
  add(socket: Socket): SlotDecision {
    let decision = ACCEPT;
    if (this.#slots.size >= this.#max) {
      const slot = this.#oldestWaiting;
      if (slot === undefined || this.#clock.now() - slot.waitStartedAt < this.#minWaitMs) return REFUSE;
      this.remove(slot.socket);
      decision = { kind: 'displace', socket: slot.socket, isNew: slot.requestCount === 0 };
    }
    const slot = new ConnectionSlot(socket);
    this.#slots.set(socket, slot);
    this.#append(slot);
    return decision;
  }

  /** To be called once for each connection that was taken in, when it has closed; again, it does nothing. */
  remove(socket: Socket): void {
    const slot = this.#slots.get(socket);
    if (slot === undefined) return;
    this.#slots.delete(socket);
    if (slot.pendingRequests === 0) this.#unlink(slot);
  }

  /** A request has come whose connection must not give way. @returns how many of the connection have no response */
  beginRequest(socket: Socket): number {
    const slot = this.#slots.get(socket);
    if (slot === undefined) return 1;
    if (slot.pendingRequests === 0) this.#unlink(slot);
    slot.requestCount++;
    return ++slot.pendingRequests;
  }

  /** To be called once for each request that began; it does nothing once the connection has closed. */
  endRequest(socket: Socket): void {
    const slot = this.#slots.get(socket);
    if (slot !== undefined && --slot.pendingRequests === 0) this.#append(slot);
  }

  #append(slot: ConnectionSlot): void {
    slot.waitStartedAt = this.#clock.now();
    slot.older = this.#newestWaiting;
    if (this.#newestWaiting === undefined) this.#oldestWaiting = slot;
    else this.#newestWaiting.newer = slot;
    this.#newestWaiting = slot;
  }

  #unlink(slot: ConnectionSlot): void {
    const { older, newer } = slot;
    if (older === undefined) this.#oldestWaiting = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newestWaiting = older;
    else newer.older = older;
    slot.older = slot.newer = undefined;
  }
}
