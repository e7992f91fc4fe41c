/** Which requests are under way, on which connections: for draining, cutting, and for faults found within a body. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { LifelineEnd, Lifeline } from '../exchange/lifeline.ts';

/** A request that is, or was, under way; it is in at most one collection, which alone writes the links. */
export class ActiveRequest {
  readonly lifeline: Lifeline;
  readonly request: IncomingMessage;
  /** Undefined for an upgrade. */
  readonly response: ServerResponse | undefined;
  older: ActiveRequest | undefined;
  younger: ActiveRequest | undefined;

  constructor(lifeline: Lifeline, request: IncomingMessage, response?: ServerResponse) {
    this.lifeline = lifeline;
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
    active.older = this.#youngest;
    if (this.#youngest === undefined) this.#oldest = active;
    else this.#youngest.younger = active;
    this.#youngest = active;
    this.#count++;
  }

  /** To be called once for each that was added. */
  remove(active: ActiveRequest): void {
    const { older, younger } = active;
    if (older === undefined) this.#oldest = younger;
    else older.younger = younger;
    if (younger === undefined) this.#youngest = older;
    else younger.older = older;
    active.older = active.younger = undefined;
    if (--this.#count > 0) return;
    for (const wake of this.#idleWaiters.splice(0)) wake();
  }

  /** Resolves when no request is under way. */
  whenIdle(): Promise<void> {
    if (this.#count === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  /** Ends all requests under way. @returns how many */
  endAll(why: LifelineEnd): number {
    const ending = [...this.#all()];
    for (const { lifeline } of ending) lifeline.end(why);
    return ending.length;
  }

  /** Those of one connection, in order of arrival. */
  on(socket: Duplex): ActiveRequest[] {
    return [...this.#all()].filter(({ request }) => request.socket === socket);
  }

  /**
   * Sees to the requests under way on a connection that node:http has handed over, so that it no longer tells them of its end.
   * False when there are none.
   * @param allowHalfClose its client may end its own side and go on reading
   */
  takeOver(socket: Duplex, allowHalfClose: boolean): boolean {
    if (this.on(socket).length === 0) return false;
    socket.on('error', () => socket.destroy());
    if (!allowHalfClose) socket.once('end', () => socket.destroy());
    socket.once('close', () => {
      for (const { request, response } of this.on(socket)) {
        request.destroy();
        response?.destroy();
      }
    });
    socket.resume();
    return true;
  }

  /** This newest answer of its connection closes it, and no longer an earlier one that has not begun. */
  closeAfter(newest: ServerResponse): void {
    for (const { response } of this.on(newest.req.socket)) {
      if (response?.headersSent === false) response.shouldKeepAlive = true;
    }
    newest.shouldKeepAlive = false;
  }

  /** Each connection is closed by the last of the answers that it waits for, unless that has begun. */
  closeAfterAnswers(): void {
    const lastOnes = new Map([...this.#all()].map(({ request, response }) => [request.socket, response]));
    for (const response of lastOnes.values()) if (response?.headersSent === false) response.shouldKeepAlive = false;
  }

  *#all(): Iterable<ActiveRequest> {
    for (let each = this.#oldest; each !== undefined; each = each.younger) yield each;
  }
}
