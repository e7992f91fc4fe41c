/**
 * The open connections of a port: how many may be open, and which one a new connection displaces when the port is full. That is the one
 * that has waited longest without a complete request, idle or within a request head; never one with a pending request.
 */
import type { Socket } from 'node:net';
import type { Clock } from './clock.ts';

/** One connection. Waiting ones form a linked list, so that a request allocates nothing. */
class ConnectionSlot {
  readonly socket: Socket;
  pendingRequests = 0;
  requestCount = 0;
  waitStartedAt = 0;
  older: ConnectionSlot | undefined;
  newer: ConnectionSlot | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
  }
}

/** The decision about a new connection. */
export type SlotDecision =
  | { readonly kind: 'accept' }
  /** Accepted in place of `socket`, which the caller has to end. */
  | {
      readonly kind: 'displace';
      readonly socket: Socket;
      /** It has had no complete request yet. */
      readonly isNew: boolean;
    }
  /** No connection has waited long enough to be displaced. */
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
   * @param max the number of connections that may be open
   * @param minWaitMs the shortest wait before a connection may be displaced, so that new ones do not displace each other
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

  /** Adds a connection if there is a free slot, or one that can be freed. */
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

  /**
   * To be called when an added connection has closed; does nothing when it was displaced.
   * @returns the number of its pending requests
   */
  remove(socket: Socket): number {
    const slot = this.#slots.get(socket);
    if (slot === undefined) return 0;
    this.#slots.delete(socket);
    if (slot.pendingRequests === 0) this.#unlink(slot);
    return slot.pendingRequests;
  }

  /** Its connection cannot be displaced until `endRequest`. @returns the number of its pending requests */
  beginRequest(socket: Socket): number {
    const slot = this.#slots.get(socket);
    if (slot === undefined) return 1;
    if (slot.pendingRequests === 0) this.#unlink(slot);
    slot.requestCount++;
    return ++slot.pendingRequests;
  }

  /** To be called once for each `beginRequest`; does nothing when the connection has closed. */
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
