/** Which requests are under way, on which connections: for draining, cutting, and for faults found within a body. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AbortReason, RequestLifetime } from '../exchange/request-lifetime.ts';

/** A request that is, or was, under way; it is in at most one collection, which alone writes the links. */
export class ActiveRequest {
  readonly lifetime: RequestLifetime;
  readonly request: IncomingMessage;
  /** Undefined for an upgrade. */
  readonly response: ServerResponse | undefined;
  previous: ActiveRequest | undefined;
  next: ActiveRequest | undefined;

  constructor(lifeline: RequestLifetime, request: IncomingMessage, response?: ServerResponse) {
    this.lifetime = lifeline;
    this.request = request;
    this.response = response;
  }
}

/**
 * A linked list, in order of arrival. A Set would be rebuilt after every few of them: V8 chains the tables that it leaves behind,
 * with all that was in them, and once one has grown old they last until the next full collection.
 */
export class ActiveRequests {
  #oldest: ActiveRequest | undefined;
  #youngest: ActiveRequest | undefined;
  #count = 0;
  #idleWaiters: (() => void)[] = [];

  get count(): number {
    return this.#count;
  }

  add(active: ActiveRequest): void {
    active.previous = this.#youngest;
    if (this.#youngest === undefined) this.#oldest = active;
    else this.#youngest.next = active;
    this.#youngest = active;
    this.#count++;
  }

  /** To be called once for each that was added. */
  remove(active: ActiveRequest): void {
    const { previous, next } = active;
    if (previous === undefined) this.#oldest = next;
    else previous.next = next;
    if (next === undefined) this.#youngest = previous;
    else next.previous = previous;
    active.previous = active.next = undefined;
    if (--this.#count > 0) return;
    for (const wake of this.#idleWaiters.splice(0)) wake();
  }

  /** Resolves when no request is under way. */
  whenIdle(): Promise<void> {
    if (this.#count === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  /** Ends all requests under way. @returns how many */
  abortAll(why: AbortReason): number {
    const ending = [...this.#all()];
    for (const { lifetime } of ending) lifetime.abort(why);
    return ending.length;
  }

  /** Those of one connection, in order of arrival. */
  listBySocket(socket: Duplex): ActiveRequest[] {
    return [...this.#all()].filter(({ request }) => request.socket === socket);
  }

  /**
   * Sees to the requests under way on a connection that node:http has handed over, so that it no longer tells them of its end.
   * False when there are none.
   * @param allowHalfClose its client may end its own side and go on reading
   */
  superviseHandedOver(socket: Duplex, allowHalfClose: boolean): boolean {
    if (this.listBySocket(socket).length === 0) return false;
    socket.on('error', () => socket.destroy());
    if (!allowHalfClose) socket.once('end', () => socket.destroy());
    socket.once('close', () => {
      for (const { request, response } of this.listBySocket(socket)) {
        request.destroy();
        response?.destroy();
      }
    });
    socket.resume();
    return true;
  }

  /** This newest answer of its connection closes it, and no longer an earlier one that has not begun. */
  closeConnectionAfter(newest: ServerResponse): void {
    for (const { response } of this.listBySocket(newest.req.socket)) {
      if (response?.headersSent === false) response.shouldKeepAlive = true;
    }
    newest.shouldKeepAlive = false;
  }

  /** Each connection is closed by the last of the answers that it waits for, unless that has begun. */
  closeAfterResponses(): void {
    const lastOnes = new Map([...this.#all()].map(({ request, response }) => [request.socket, response]));
    for (const response of lastOnes.values()) if (response?.headersSent === false) response.shouldKeepAlive = false;
  }

  *#all(): Iterable<ActiveRequest> {
    for (let each = this.#oldest; each !== undefined; each = each.next) yield each;
  }
}
