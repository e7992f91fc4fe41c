/**
 * What is recorded of requests and attempts, where they end. Metrics count it; log, traces, recent calls and the status page read the same
 * record. Types alone; the composition root connects them.
 */
import type { LocalReplyCode } from '../platform/errors.ts';
import type { AttemptOutcome, CutBy } from './events.ts';

export interface RequestRecord {
  readonly route: string;
  /** As the client sent it; metrics count unknown methods as `other`. */
  readonly method: string;
  /** Path without its query. */
  readonly path: string;
  /** As sent; 499 when the client left before the response had ended. */
  readonly code: number;
  readonly source: 'upstream' | 'sidecar';
  readonly localReply?: LocalReplyCode | undefined;
  readonly durationMs: number;
  readonly queuedMs: number;
  readonly attempts: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
  /** Set when the client received only a part of the response and had not left. */
  readonly cutBy?: CutBy | undefined;
  /** Why a response was cut off, or why an attempt failed. */
  readonly fault?: string | undefined;
  /** The call may have been carried out, and its client does not know. Default false. */
  readonly isOutcomeUnknown?: boolean | undefined;
  /** The client's own, or that of the trace. Undefined: `ensureRequestId` makes one when it is first needed. */
  requestId?: string | undefined;
  /** As the client names itself, if it does: never a metric label. */
  readonly caller?: string | undefined;
  /** The upstream's own id, of the response of the newest attempt, with tokens masked. */
  readonly upstreamRequestId?: string | undefined;
  /** The trace of the request, if known: 32 hexadecimal digits. */
  readonly traceId?: string | undefined;
}

/** Receives the record of each request, once. Must not throw and must not block. */
export type RecordRequest = (record: RequestRecord) => void;

/** Receives the wait of each permit, milliseconds. Must not throw and must not block. */
export type RecordPermit = (waitedMs: number) => void;

export interface RouteCounters {
  /** @param durationMs to the response head, or to the end without one @param isOwn the sidecar itself ended the attempt, or could not send it */
  recordAttempt(outcome: AttemptOutcome, durationMs: number, isOwn: boolean): void;
  readonly recordRequest: RecordRequest;
}

/** Each attempt and permit, for the log at level `debug`. */
export type DebugEvent =
  | {
      readonly kind: 'attempt-ended';
      readonly route: string;
      readonly outcome: AttemptOutcome;
      readonly durationMs: number;
      readonly isOwn: boolean;
    }
  | { readonly kind: 'permit-granted'; readonly route: string; readonly waitedMs: number };

/** Who gets what is recorded, besides the counters. */
export interface RecordObservers {
  /** Called with each record, in this order. */
  readonly requests: RecordRequest[];
  /** Undefined unless the level of the log is `debug`; read for each attempt. */
  debug?: ((event: DebugEvent) => void) | undefined;
}
