/** Requests whose log lines are not written yet: formatting many at once costs less per line. Bounded in number and time. */
import type { Cancel, Clock } from '../../platform/clock.ts';
import type { RequestRecord } from '../request-record.ts';

/** A batch is written when it has this many requests ... */
const BATCH_REQUESTS = 64;
/** ... or this long after the first of them. */
const BATCH_DELAY_MS = 250;

export interface RequestLogBatchOptions {
  readonly clock: Clock;
  readonly writeLine: (event: RequestRecord, wallAt: number) => void;
  /** Called after the last line of a batch that was full or old enough. */
  readonly onBatch: () => void;
}

export class RequestLogBatch {
  readonly #options: RequestLogBatchOptions;
  readonly #events: RequestRecord[] = [];
  readonly #endedAt: number[] = [];
  #cancel: Cancel | undefined;
  #isWriting = false;

  constructor(options: RequestLogBatchOptions) {
    this.#options = options;
  }

  add(event: RequestRecord): void {
    this.#events.push(event);
    this.#endedAt.push(this.#options.clock.wallNow());
    if (this.#events.length >= BATCH_REQUESTS) this.#finishBatch();
    else this.#cancel ??= this.#options.clock.after(BATCH_DELAY_MS, () => this.#finishBatch());
  }

  #finishBatch(): void {
    this.writeAll();
    this.#options.onBatch();
  }

  /** Writes the lines of the batch. Does nothing when it is empty, or when called while it writes. */
  writeAll(): void {
    if (this.#isWriting || this.#events.length === 0) return;
    this.#cancel?.();
    this.#cancel = undefined;
    this.#isWriting = true;
    try {
      for (const [index, event] of this.#events.entries()) this.#options.writeLine(event, this.#endedAt[index] ?? NaN);
    } finally {
      this.#events.length = this.#endedAt.length = 0;
      this.#isWriting = false;
    }
  }
}
