/**
 * One request's place in the queue: its age, the limit of its waits and how much of it is used up, and the wait it is in now.
 * Where it stands is the waiting room's, what becomes of it admission's.
 */
import { SidecarError } from '../../platform/errors.ts';
import type { Expiring } from './expiry-heap.ts';
import type { Permit, Standing, Ticket } from '../throttle.ts';
import type { QueueLinks } from './wait-queue.ts';

/** Who answers a ticket's calls. */
export interface Desk {
  now(): number;
  admit(ticket: QueueTicket): Promise<void>;
  queueForPermit(ticket: QueueTicket): Promise<Permit>;
  tryPermit(ticket: QueueTicket): Permit | undefined;
  readonly isCut: boolean;
  retryWaitMs(ticket: QueueTicket): number;
  leave(ticket: QueueTicket, reason: unknown): void;
  bodyReceived(ticket: QueueTicket): void;
}

/**
 * `unplaced`: has no body, and needs no place for reading · `outside`: waits for its turn to read a body · `received`: all of that came while it
 * waited · `preparing`: may read it · `stalled`: its
 * body stopped coming, and its place went to another · `ready`: waits for a permit · `granted`: has, or has had, a permit and waits
 * for none · `left`: is not, or no longer, in the throttle.
 */
export type Phase = 'unplaced' | 'outside' | 'received' | 'preparing' | 'stalled' | 'ready' | 'granted' | 'left';

/** A promise that is waited for. */
export type Wait =
  | {
      readonly kind: 'place';
      readonly resolve: (nothing: undefined) => void;
      readonly reject: (reason: unknown) => void;
    }
  | { readonly kind: 'permit'; readonly resolve: (permit: Permit) => void; readonly reject: (reason: unknown) => void };

/** A ticket as typed, with the state that its throttle keeps on it; nobody else writes that. */
export class QueueTicket implements Ticket, QueueLinks<QueueTicket>, Expiring {
  readonly age: number;
  readonly deadlineAt: number;
  readonly standing: Standing;
  readonly hasBody: boolean;
  phase: Phase = 'left';
  /** It takes one of the places for bodies; the line that it stands in writes this. */
  holdsPlace = false;
  /** When bytes of its body, or its place, came last; monotonic. */
  receivedAt = 0;
  /** The wait it is in now; undefined while it does not wait. */
  wait: Wait | undefined;
  /** When the present wait ends unserved. */
  expiresAt = Infinity;
  older: QueueTicket | undefined;
  younger: QueueTicket | undefined;
  queue: object | undefined;
  expirySlot = -1;
  readonly #desk: Desk;
  readonly #timeoutMs: number;
  #pastWaitsMs = 0;
  #waitsSince = 0;
  #toldMs = 0;

  /**
   * @param timeoutMs the sum that its waits may take
   * @param hasBody default true
   */
  constructor(desk: Desk, age: number, deadlineAt: number, timeoutMs: number, standing: Standing, hasBody = true) {
    this.#desk = desk;
    this.age = age;
    this.deadlineAt = deadlineAt;
    this.standing = standing;
    this.#timeoutMs = timeoutMs;
    this.hasBody = hasBody;
  }

  /** Why it cannot begin to wait; undefined when it can. */
  get misuse(): Error | undefined {
    if (this.phase === 'left') return new DOMException('The request has left the queue', 'AbortError');
    return this.wait === undefined ? undefined : new Error('The ticket waits already.');
  }

  get waitedMs(): number {
    return this.wait === undefined ? this.#pastWaitsMs : this.#waitedMsAt(this.#desk.now());
  }

  get isAdmitted(): boolean {
    return this.phase !== 'outside' && this.phase !== 'left' && this.wait === undefined && !this.#desk.isCut;
  }

  received(now: number): boolean {
    this.receivedAt = now;
    return this.phase !== 'stalled';
  }

  bodyReceived(): void {
    this.#desk.bodyReceived(this);
  }

  admitted(): Promise<void> {
    return this.#desk.admit(this);
  }

  permit(): Promise<Permit> {
    return this.#desk.queueForPermit(this);
  }

  tryPermit(): Permit | undefined {
    return this.#desk.tryPermit(this);
  }

  retryWaitMs(): number {
    return this.#desk.retryWaitMs(this);
  }

  leave(reason?: unknown): void {
    this.#desk.leave(this, reason);
  }

  /** What leaving for this reason counts as; undefined where it leaves no queue, or has failed by itself. */
  countsAs(reason: unknown): 'draining' | 'client_left' | undefined {
    // One whose body is being read waits for nothing, and is in the queue all the same.
    const isQueued = this.wait !== undefined || (reason !== undefined && this.#isReading());
    if (!isQueued) return undefined;
    if (this.#desk.isCut) return 'draining';
    return reason instanceof SidecarError ? undefined : 'client_left';
  }

  /** How much longer it may wait; 0 or less when it may not. */
  patienceMs(now: number): number {
    return Math.min(this.#timeoutMs - this.#waitedMsAt(now), this.deadlineAt - now);
  }

  beginWait(now: number, wait: Wait): void {
    this.expiresAt = now + this.patienceMs(now);
    this.#waitsSince = now;
    this.wait = wait;
  }

  /** Ends the present wait and hands it over to be settled. */
  endWait(now: number): Wait | undefined {
    const wait = this.wait;
    this.#pastWaitsMs = this.#waitedMsAt(now);
    this.wait = undefined;
    return wait;
  }

  /** Time waited since this was last asked: each grant tells its own part. */
  takeUntoldMs(): number {
    const untoldMs = this.#pastWaitsMs - this.#toldMs;
    this.#toldMs = this.#pastWaitsMs;
    return untoldMs;
  }

  #isReading(): boolean {
    const { phase } = this;
    return phase === 'preparing' || phase === 'received' || phase === 'stalled' || phase === 'unplaced';
  }

  #waitedMsAt(now: number): number {
    return this.#pastWaitsMs + (this.wait === undefined ? 0 : now - this.#waitsSince);
  }
}
