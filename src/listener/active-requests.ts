/** Which requests are under way, on which connections: for draining, cutting, and for faults found within a body. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { LifelineEnd, Lifeline } from '../exchange/lifeline.ts';

export interface ActiveRequest {
  readonly lifeline: Lifeline;
  readonly request: IncomingMessage;
  /** Undefined for an upgrade. */
  readonly response: ServerResponse | undefined;
}

export class ActiveRequests {
  /** In order of arrival. */
  readonly #requests = new Set<ActiveRequest>();
  #idleWaiters: (() => void)[] = [];

  get count(): number {
    return this.#requests.size;
  }

  add(active: ActiveRequest): void {
    this.#requests.add(active);
  }

  remove(active: ActiveRequest): void {
    this.#requests.delete(active);
    if (this.#requests.size > 0) return;
    for (const wake of this.#idleWaiters.splice(0)) wake();
  }

  /** Resolves when no request is under way. */
  whenIdle(): Promise<void> {
    if (this.#requests.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  /** Ends all requests under way. @returns how many */
  endAll(why: LifelineEnd): number {
    const ending = [...this.#requests];
    for (const { lifeline } of ending) lifeline.end(why);
    return ending.length;
  }

  /** Those of one connection, in order of arrival. */
  on(socket: Duplex): ActiveRequest[] {
    return [...this.#requests].filter(({ request }) => request.socket === socket);
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
    const lastOnes = new Map([...this.#requests].map(({ request, response }) => [request.socket, response]));
    for (const response of lastOnes.values()) if (response?.headersSent === false) response.shouldKeepAlive = false;
  }
}
