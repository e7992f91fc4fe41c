/**
 * The last calls of clients (pure), newest first, for the status page and /status: method, path without query, result. No header field and
 * no body. Kept in memory alone, until as many newer calls have ended or the process ends.
 */
import type { RequestEvent } from '../../telemetry/events.ts';

export interface RecentCall {
  /** Epoch milliseconds of the end of its response. */
  readonly wallAt: number;
  readonly event: RequestEvent;
}

const MAX_CALLS = 50;

export class RecentCalls {
  readonly #calls: RecentCall[] = [];
  /** Index of the oldest call, once the ring is full. */
  #next = 0;

  /** @param wallAt epoch milliseconds */
  add(event: RequestEvent, wallAt: number): void {
    this.#calls[this.#next] = { wallAt, event };
    this.#next = (this.#next + 1) % MAX_CALLS;
  }

  /** Newest first, at most 50. */
  read(): RecentCall[] {
    return [...this.#calls.slice(this.#next), ...this.#calls.slice(0, this.#next)].reverse();
  }
}
