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
  /** What the heads of its pending requests take in memory. */
  headBytes = 0;
  requestCount = 0;
  waitStartedAt = 0;
  older: ConnectionSlot | undefined;
  newer: ConnectionSlot | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
  }
}

export type SlotDecision =
  | { readonly kind: 'accept' }
  /** Accepted in place of `socket`, which the caller has to end. */
  | {
      readonly kind: 'displace';
      readonly socket: Socket;
      readonly isNew: boolean;
    }
  /** No connection has waited long enough to be displaced. */
  | { readonly kind: 'reject' };

const ACCEPT: SlotDecision = { kind: 'accept' };
const REJECT: SlotDecision = { kind: 'reject' };

export class ConnectionSlots {
  #max: number;
  readonly #minWaitMs: number;
  readonly #clock: Clock;
  readonly #slots = new Map<Socket, ConnectionSlot>();
  /** What the heads of all pending requests take in memory. Read only. */
  headBytes = 0;
  #oldestWaiting: ConnectionSlot | undefined;
  #newestWaiting: ConnectionSlot | undefined;

  /** @param minWaitMs the shortest wait before a connection may be displaced, so that new ones do not displace each other */
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

  /** The connections without a pending request, that which has waited longest first. */
  *waiting(): Iterable<Socket> {
    for (let slot = this.#oldestWaiting; slot !== undefined; slot = slot.newer) yield slot.socket;
  }

  /** @returns the removed connections, without a pending request and beyond the new number: the caller has to end them */
  resize(max: number): Socket[] {
    this.#max = max;
    const excess = [...this.waiting()].slice(0, Math.max(0, this.#slots.size - max));
    for (const socket of excess) this.remove(socket);
    return excess;
  }

  /** Adds a connection if there is a free slot, or one that can be freed. @param canDisplace Default: true */
  add(socket: Socket, canDisplace = true): SlotDecision {
    let decision = ACCEPT;
    if (this.#slots.size >= this.#max) {
      const slot = canDisplace ? this.#oldestWaiting : undefined;
      if (slot === undefined || this.#clock.now() - slot.waitStartedAt < this.#minWaitMs) return REJECT;
      this.remove(slot.socket);
      decision = { kind: 'displace', socket: slot.socket, isNew: slot.requestCount === 0 };
    }
    const slot = new ConnectionSlot(socket);
    this.#slots.set(socket, slot);
    this.#append(slot, this.#clock.now());
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
    this.headBytes -= slot.headBytes;
    if (slot.pendingRequests === 0) this.#unlink(slot);
    return slot.pendingRequests;
  }

  /**
   * The connection cannot be displaced until `endRequest`.
   * @param headBytes what its head takes in memory. Default 0
   * @returns the number of its pending requests
   */
  beginRequest(socket: Socket, headBytes = 0): number {
    const slot = this.#slots.get(socket);
    if (slot === undefined) return 1;
    if (slot.pendingRequests === 0) this.#unlink(slot);
    slot.requestCount++;
    slot.headBytes += headBytes;
    this.headBytes += headBytes;
    return ++slot.pendingRequests;
  }

  /**
   * To be called once for each `beginRequest`; does nothing when the connection has closed.
   * @returns whether the connection has no pending request now
   */
  endRequest(socket: Socket, now = this.#clock.now()): boolean {
    const slot = this.#slots.get(socket);
    if (slot === undefined) return false;
    // One of several heads counts as the average of those that are left: the last one takes the rest.
    const headBytes = Math.floor(slot.headBytes / slot.pendingRequests);
    slot.headBytes -= headBytes;
    this.headBytes -= headBytes;
    if (--slot.pendingRequests > 0) return false;
    this.#append(slot, now);
    return true;
  }

  #append(slot: ConnectionSlot, now: number): void {
    slot.waitStartedAt = now;
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
