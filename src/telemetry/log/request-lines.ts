/**
 * Requests whose lines are yet to be written: spelt out many at a time, each costs less than among everything else that a request does.
 * Bounded in number and time; no line overtakes them.
 */
import type { Cancel, Clock } from '../../platform/clock.ts';
import type { RequestEnded } from '../events.ts';

/** Spelt out when so many have gathered ... */
const BATCH_REQUESTS = 64;
/** ... or this long after the first of them. */
const BATCH_DELAY_MS = 250;

export interface RequestLogBatchOptions {
  readonly clock: Clock;
  /** Writes the line of a request that ended at this instant. */
  readonly writeLine: (event: RequestEnded, wallAt: number) => void;
  /** Called behind the last line of a full batch, or when the first of it has waited for long enough. */
  readonly onBatch: () => void;
}

export class RequestLogBatch {
  readonly #options: RequestLogBatchOptions;
  readonly #events: RequestEnded[] = [];
  readonly #endedAt: number[] = [];
  #cancel: Cancel | undefined;
  #isTelling = false;

  constructor(options: RequestLogBatchOptions) {
    this.#options = options;
  }

  add(event: RequestEnded): void {
    this.#events.push(event);
    this.#endedAt.push(this.#options.clock.wallNow());
    if (this.#events.length >= BATCH_REQUESTS) this.#finishBatch();
    else this.#cancel ??= this.#options.clock.after(BATCH_DELAY_MS, () => this.#finishBatch());
  }

  #finishBatch(): void {
    this.writeAll();
    this.#options.onBatch();
  }

  /** Writes the lines of all that have gathered. Does nothing when there is none, and when called by one of these lines. */
  writeAll(): void {
    if (this.#isTelling || this.#events.length === 0) return;
    this.#cancel?.();
    this.#cancel = undefined;
    this.#isTelling = true;
    try {
      for (const [index, event] of this.#events.entries()) this.#options.writeLine(event, this.#endedAt[index] ?? NaN);
    } finally {
      this.#events.length = this.#endedAt.length = 0;
      this.#isTelling = false;
    }
  }
}
