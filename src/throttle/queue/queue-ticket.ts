/**
 * One request's place in the queue: its age, the limit of its waits and how much of it is used up, and the wait it is in now.
 * Where it stands is the waiting room's, what becomes of it admission's.
 */
import { SidecarError } from '../../platform/errors.ts';
import type { ExpiryEntry } from './expiry-heap.ts';
import type { Permit, QueueClass, Ticket } from '../throttle.ts';
import type { QueueLinks } from './linked-queue.ts';

/** Who answers a ticket's calls. */
export interface TicketHost {
  now(): number;
  waitForBodySlot(ticket: QueueTicket): Promise<void>;
  waitForPermit(ticket: QueueTicket): Promise<Permit>;
  tryTakePermit(ticket: QueueTicket): Permit | undefined;
  readonly isShutDown: boolean;
  retryWaitMs(ticket: QueueTicket): number;
  leave(ticket: QueueTicket, reason: unknown): void;
  recordBodyEnd(ticket: QueueTicket): void;
}

/**
 * `unplaced`: has no body, and needs no place for reading · `outside`: waits for its turn to read a body · `received`: all of that came while it
 * waited · `preparing`: may read it · `stalled`: its
 * body stopped coming, and its place went to another · `ready`: waits for a permit · `granted`: has, or has had, a permit and waits
 * for none · `left`: is not, or no longer, in the throttle.
 */
export type TicketPhase = 'unplaced' | 'outside' | 'received' | 'preparing' | 'stalled' | 'ready' | 'granted' | 'left';

/** A promise that is waited for. */
export type PendingWait =
  | {
      readonly kind: 'place';
      readonly resolve: (nothing: undefined) => void;
      readonly reject: (reason: unknown) => void;
    }
  | { readonly kind: 'permit'; readonly resolve: (permit: Permit) => void; readonly reject: (reason: unknown) => void };

/** A ticket as typed, with the state that its throttle keeps on it; nobody else writes that. */
export class QueueTicket implements Ticket, QueueLinks<QueueTicket>, ExpiryEntry {
  readonly arrivalNumber: number;
  readonly deadlineAt: number;
  readonly queueClass: QueueClass;
  readonly hasBody: boolean;
  phase: TicketPhase = 'left';
  /** It takes one of the places for bodies; the line that it stands in writes this. */
  holdsBodySlot = false;
  /** When bytes of its body, or its place, came last; monotonic. */
  lastProgressAt = 0;
  /** The wait it is in now; undefined while it does not wait. */
  wait: PendingWait | undefined;
  /** When the present wait ends unserved. */
  expiresAt = Infinity;
  older: QueueTicket | undefined;
  younger: QueueTicket | undefined;
  queue: object | undefined;
  expiryHeapIndex = -1;
  readonly #host: TicketHost;
  readonly #timeoutMs: number;
  #pastWaitsMs = 0;
  #waitStartedAt = 0;
  #reportedWaitMs = 0;

  /**
   * @param timeoutMs the sum that its waits may take
   * @param hasBody default true
   */
  constructor(
    desk: TicketHost,
    age: number,
    deadlineAt: number,
    timeoutMs: number,
    standing: QueueClass,
    hasBody = true,
  ) {
    this.#host = desk;
    this.arrivalNumber = age;
    this.deadlineAt = deadlineAt;
    this.queueClass = standing;
    this.#timeoutMs = timeoutMs;
    this.hasBody = hasBody;
  }

  /** Why it cannot begin to wait; undefined when it can. */
  get misuseError(): Error | undefined {
    if (this.phase === 'left') return new DOMException('The request has left the queue', 'AbortError');
    return this.wait === undefined ? undefined : new Error('The ticket waits already.');
  }

  get waitedMs(): number {
    return this.wait === undefined ? this.#pastWaitsMs : this.#waitedMsAt(this.#host.now());
  }

  get isAdmitted(): boolean {
    return this.phase !== 'outside' && this.phase !== 'left' && this.wait === undefined && !this.#host.isShutDown;
  }

  recordBodyBytes(now: number): boolean {
    this.lastProgressAt = now;
    return this.phase !== 'stalled';
  }

  recordBodyEnd(): void {
    this.#host.recordBodyEnd(this);
  }

  waitForAdmission(): Promise<void> {
    return this.#host.waitForBodySlot(this);
  }

  waitForPermit(): Promise<Permit> {
    return this.#host.waitForPermit(this);
  }

  tryTakePermit(): Permit | undefined {
    return this.#host.tryTakePermit(this);
  }

  retryWaitMs(): number {
    return this.#host.retryWaitMs(this);
  }

  leave(reason?: unknown): void {
    this.#host.leave(this, reason);
  }

  /** What leaving for this reason counts as; undefined where it leaves no queue, or has failed by itself. */
  rejectionReason(reason: unknown): 'draining' | 'client_left' | undefined {
    // One whose body is being read waits for nothing, and is in the queue all the same.
    const isQueued = this.wait !== undefined || (reason !== undefined && this.#isReading());
    if (!isQueued) return undefined;
    if (this.#host.isShutDown) return 'draining';
    return reason instanceof SidecarError ? undefined : 'client_left';
  }

  /** How much longer it may wait; 0 or less when it may not. */
  waitBudgetMs(now: number): number {
    return Math.min(this.#timeoutMs - this.#waitedMsAt(now), this.deadlineAt - now);
  }

  beginWait(now: number, wait: PendingWait): void {
    this.expiresAt = now + this.waitBudgetMs(now);
    this.#waitStartedAt = now;
    this.wait = wait;
  }

  /** Ends the present wait and hands it over to be settled. */
  endWait(now: number): PendingWait | undefined {
    const wait = this.wait;
    this.#pastWaitsMs = this.#waitedMsAt(now);
    this.wait = undefined;
    return wait;
  }

  /** Time waited since this was last asked: each grant tells its own part. */
  takeUnreportedWaitMs(): number {
    const untoldMs = this.#pastWaitsMs - this.#reportedWaitMs;
    this.#reportedWaitMs = this.#pastWaitsMs;
    return untoldMs;
  }

  #isReading(): boolean {
    const { phase } = this;
    return phase === 'preparing' || phase === 'received' || phase === 'stalled' || phase === 'unplaced';
  }

  #waitedMsAt(now: number): number {
    return this.#pastWaitsMs + (this.wait === undefined ? 0 : now - this.#waitStartedAt);
  }
}
