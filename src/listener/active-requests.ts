/** The requests in progress and their connections: for the drain, and for parser errors within a body. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Exchange, RouteContext, PendingAttempt, RequestOutcome, RequestStats } from '../exchange/exchange.ts';
import type { AbortReason, RequestLifetime } from '../exchange/request-lifetime.ts';

/** A request that is or was in progress. The collection that it is in writes the links. An upgrade ends with its tunnel, not its connection. */
export interface ActiveRequest {
  readonly lifetime: RequestLifetime;
  readonly request: IncomingMessage;
  readonly response?: ServerResponse;
  readonly stats: RequestStats;
  onConnectionClosed?(): void;
  previous?: ActiveRequest | undefined;
  next?: ActiveRequest | undefined;
}

/**
 * A linked list, in order of arrival. V8 rebuilds a Set that many requests enter and leave, and keeps the old tables, with their
 * content, until the next full collection.
 */
export class ActiveRequests {
  count = 0;
  #oldest: ActiveRequest | undefined;
  #youngest: ActiveRequest | undefined;
  #idleWaiters: (() => void)[] = [];

  add(active: ActiveRequest): void {
    active.previous = this.#youngest;
    if (this.#youngest === undefined) this.#oldest = active;
    else this.#youngest.next = active;
    this.#youngest = active;
    this.count++;
  }

  /** To be called once for each request that was added. */
  remove(active: ActiveRequest): void {
    const { previous, next } = active;
    if (previous === undefined) this.#oldest = next;
    else previous.next = next;
    if (next === undefined) this.#youngest = previous;
    else next.previous = previous;
    active.previous = active.next = undefined;
    if (--this.count > 0) return;
    for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }

  whenIdle(): Promise<void> {
    if (this.count === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  /** Aborts all requests in progress. @returns how many had not been aborted */
  abortAll(reason: AbortReason): number {
    const aborted = [...this.#all()].filter(({ lifetime }) => lifetime.aborted === undefined);
    for (const { lifetime } of aborted) lifetime.abort(reason);
    return aborted.length;
  }

  /** Aborts the requests that follow on the connection of a response that has broken off: none of them gets a response. */
  abortFollowing(broken: ActiveRequest): void {
    const requests = this.listBySocket(broken.request.socket);
    for (const { lifetime } of requests.slice(requests.indexOf(broken) + 1)) lifetime.abort({ kind: 'client-left' });
  }

  /** The attempts that wait for a connection or a response, in no order. */
  listPending(): PendingAttempt[] {
    return [...this.#all()].flatMap(({ stats }) => stats.pending ?? []);
  }

  listBySocket(socket: Duplex): ActiveRequest[] {
    return [...this.#all()].filter(({ request }) => request.socket === socket);
  }

  endConnection(socket: Duplex): void {
    for (const active of this.listBySocket(socket)) active.onConnectionClosed?.();
  }

  /**
   * Keeps a connection readable to its end while requests of it are in progress. For one that node:http has handed over.
   * @param allowHalfClose the client may end its own side and go on reading
   * @returns false when the connection has no requests in progress
   */
  superviseHandedOver(socket: Duplex, allowHalfClose: boolean): boolean {
    if (this.listBySocket(socket).length === 0) return false;
    socket.on('error', () => socket.destroy());
    if (!allowHalfClose) socket.once('end', () => socket.destroy());
    socket.resume();
    return true;
  }

  /** The newest response of a connection closes it, and no earlier one that has not begun. */
  closeConnectionAfter(newest: ServerResponse): void {
    for (const { response } of this.listBySocket(newest.req.socket)) {
      if (response?.headersSent === false) response.shouldKeepAlive = true;
    }
    newest.shouldKeepAlive = false;
  }

  /** The last pending response of each connection closes it, unless it has begun. */
  closeAfterResponses(): void {
    const lastResponses = new Map([...this.#all()].map(({ request, response }) => [request.socket, response]));
    for (const response of lastResponses.values())
      if (response?.headersSent === false) response.shouldKeepAlive = false;
  }

  *#all(): Iterable<ActiveRequest> {
    for (let each = this.#oldest; each !== undefined; each = each.next) yield each;
  }
}

/** A request that passed the check, until the connection is done with its response. */
export interface ActiveExchange extends ActiveRequest, Exchange {
  readonly response: ServerResponse;
  readonly routeContext: RouteContext;
  outcome: RequestOutcome | undefined;
  isBroken: boolean;
  isClosed: boolean;
  readonly onConnectionClosed: () => void;
}
