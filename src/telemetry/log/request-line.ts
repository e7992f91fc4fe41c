/**
 * The log lines of requests: fields (docs/logs.md), sampling, and the batch of those not written yet. Only successful, fast requests are sampled; all others are always
 * logged. With sampling, each line states the share that it represents.
 */
import type { Cancel, Clock, Random } from '../../platform/clock.ts';
import { ensureRequestId } from '../../platform/request-id.ts';
import type { Redact } from '../../platform/secret-redaction.ts';
import { MAX_UNCUT_CHARS, truncate } from '../../platform/truncate.ts';
import type { RequestRecord } from '../request-record.ts';

export interface AccessLogSampling {
  /** The share of successful, fast requests that is logged, 0 to 1. */
  readonly share: number;
  readonly slowMs: number;
  readonly random: Random;
}

/** Returns `warn` where the sidecar itself failed the request. */
export function levelOfRequest({ code, localReply }: RequestRecord): 'info' | 'warn' {
  return localReply !== undefined && code >= 500 ? 'warn' : 'info';
}

/**
 * Gives the fields of a line; undefined for a request that is not logged.
 * @param sampling Default: every request is logged, without the field `sampled`
 * @param mask for a path before it is cut
 */
export function createAccessDescriber(sampling?: AccessLogSampling, mask: Redact = (text) => text) {
  const { share, slowMs, random } = sampling ?? { share: 1, slowMs: 0, random: () => 0 };
  return (event: RequestRecord) => {
    if (share >= 1) return accessFields(event, undefined, mask);
    if (!isOrdinary(event, slowMs)) return accessFields(event, 1, mask);
    return random() < share ? accessFields(event, share, mask) : undefined;
  };
}

function isOrdinary({ code, fault, localReply, durationMs }: RequestRecord, slowMs: number): boolean {
  return code < 400 && fault === undefined && localReply === undefined && durationMs < slowMs;
}

function roundToTenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}

function accessFields(event: RequestRecord, sampled: number | undefined, mask: Redact) {
  const { path } = event;
  return {
    method: truncate(event.method),
    // Whole lines are masked when they are written: only what is cut here has to be masked before.
    path: truncate(path.length > MAX_UNCUT_CHARS ? mask(path) : path),
    route: event.route,
    code: event.code,
    source: event.source,
    localReply: event.localReply,
    durationMs: roundToTenths(event.durationMs),
    queuedMs: roundToTenths(event.queuedMs),
    attempts: event.attempts,
    requestBytes: event.requestBytes,
    responseBytes: event.responseBytes,
    fault: event.fault === undefined ? undefined : truncate(event.fault),
    outcome: event.isOutcomeUnknown === true ? 'unknown' : undefined,
    requestId: ensureRequestId(event),
    caller: event.caller,
    upstreamRequestId: event.upstreamRequestId,
    traceId: event.traceId,
    sampled,
  };
}

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

/** Formatting many lines at once costs less per line. Bounded in number and time. */
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
