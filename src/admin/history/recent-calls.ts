/**
 * The last calls of clients (pure), newest first, for the status page and /status: method, path without query, result. No header field and
 * no body. Kept in memory alone, until as many newer calls have ended or the process ends.
 */
import type { RequestRecord } from '../../telemetry/request-record.ts';

export interface RecentCall {
  /** Epoch milliseconds of the end of its response. */
  readonly wallAt: number;
  readonly record: RequestRecord;
}

const MAX_CALLS = 50;

export class RecentCalls {
  readonly #calls: RecentCall[] = [];
  /** Index of the oldest call, once the ring is full. */
  #next = 0;

  /** @param wallAt epoch milliseconds */
  add(record: RequestRecord, wallAt: number): void {
    this.#calls[this.#next] = { wallAt, record };
    this.#next = (this.#next + 1) % MAX_CALLS;
  }

  /** Newest first, at most 50. */
  read(): RecentCall[] {
    return [...this.#calls.slice(this.#next), ...this.#calls.slice(0, this.#next)].reverse();
  }
}
