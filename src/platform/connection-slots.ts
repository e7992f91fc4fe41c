/**
 * The open connections of a port: how many there may be, and which one gives way when the port is full. It is the one that has waited longest
 * without a complete request, whether it is idle or within a request head; never one with a request that has no response yet.
 */
import type { Socket } from 'node:net';
import type { Clock } from './clock.ts';

/** One connection. Those that wait form a linked list, which costs no allocation per request. */
class Slot {
  readonly socket: Socket;
  /** Requests without a response. */
  unanswered = 0;
  requests = 0;
  waitsSince = 0;
  longer: Slot | undefined;
  shorter: Slot | undefined;

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
  readonly #slots = new Map<Socket, Slot>();
  #longest: Slot | undefined;
  #shortest: Slot | undefined;

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
      const slot = this.#longest;
      if (slot === undefined || this.#clock.now() - slot.waitsSince < this.#minWaitMs) return REFUSE;
      this.remove(slot.socket);
      decision = { kind: 'displace', socket: slot.socket, isNew: slot.requests === 0 };
    }
    const slot = new Slot(socket);
    this.#slots.set(socket, slot);
    this.#append(slot);
    return decision;
  }

  /** To be called once for each connection that was taken in, when it has closed; again, it does nothing. */
  remove(socket: Socket): void {
    const slot = this.#slots.get(socket);
    if (slot === undefined) return;
    this.#slots.delete(socket);
    if (slot.unanswered === 0) this.#unlink(slot);
  }

  /** A request has come whose connection must not give way. @returns how many of the connection have no response */
  requestBegins(socket: Socket): number {
    const slot = this.#slots.get(socket);
    if (slot === undefined) return 1;
    if (slot.unanswered === 0) this.#unlink(slot);
    slot.requests++;
    return ++slot.unanswered;
  }

  /** To be called once for each request that began; it does nothing once the connection has closed. */
  requestEnds(socket: Socket): void {
    const slot = this.#slots.get(socket);
    if (slot !== undefined && --slot.unanswered === 0) this.#append(slot);
  }

  #append(slot: Slot): void {
    slot.waitsSince = this.#clock.now();
    slot.longer = this.#shortest;
    if (this.#shortest === undefined) this.#longest = slot;
    else this.#shortest.shorter = slot;
    this.#shortest = slot;
  }

  #unlink(slot: Slot): void {
    const { longer, shorter } = slot;
    if (longer === undefined) this.#longest = shorter;
    else longer.shorter = shorter;
    if (shorter === undefined) this.#shortest = longer;
    else shorter.longer = longer;
    slot.longer = slot.shorter = undefined;
  }
}
