/** Which requests are under way, on which connections: for draining, cutting, and for faults found within a body. */
import type { Duplex } from 'node:stream';
import type { LifelineEnd, Lifeline } from '../exchange/lifeline.ts';

export class ActiveRequests {
  readonly #lifelines = new Set<Lifeline>();
  readonly #bySocket = new WeakMap<Duplex, Set<Lifeline>>();
  #idleWaiters: (() => void)[] = [];

  get count(): number {
    return this.#lifelines.size;
  }

  add(lifeline: Lifeline, socket: Duplex): void {
    this.#lifelines.add(lifeline);
    const onSocket = this.#bySocket.get(socket) ?? new Set<Lifeline>();
    this.#bySocket.set(socket, onSocket.add(lifeline));
  }

  remove(lifeline: Lifeline, socket: Duplex): void {
    this.#bySocket.get(socket)?.delete(lifeline);
    this.#lifelines.delete(lifeline);
    if (this.#lifelines.size > 0) return;
    for (const wake of this.#idleWaiters.splice(0)) wake();
  }

  /** Resolves when no request is under way. */
  whenIdle(): Promise<void> {
    if (this.#lifelines.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  /** Ends all requests under way. @returns how many */
  endAll(why: LifelineEnd): number {
    return endEach(this.#lifelines, why);
  }

  /** Ends those of one connection. @returns how many */
  endOn(socket: Duplex, why: LifelineEnd): number {
    return endEach(this.#bySocket.get(socket) ?? [], why);
  }
}

function endEach(lifelines: Iterable<Lifeline>, why: LifelineEnd): number {
  const ending = [...lifelines];
  for (const lifeline of ending) lifeline.end(why);
  return ending.length;
}
