/** The errors with which the queue rejects requests, with their texts for the client. */
import { SidecarError } from '../../platform/errors.ts';
import type { QueueRejectionReason } from '../../telemetry/events.ts';

/** Why the queue rejects a request; a client that left needs no response. */
export type RejectionReason = Exclude<QueueRejectionReason, 'client_left'>;

/** @param waitMs expected time until the present queue is served, milliseconds: becomes `Retry-After` */
export function createRejectionError(reason: RejectionReason, waitMs: number): SidecarError {
  const retryAfterMs = Math.max(0, waitMs);
  switch (reason) {
    case 'full':
      return new SidecarError('QUEUE_FULL', 'The queue is full (queue.max).', { retryAfterMs });
    case 'timeout':
      return new SidecarError(
        'QUEUE_TIMEOUT',
        'The request waited as long as it may (queue.timeoutMs, or its deadline) and had no turn.',
        { retryAfterMs },
      );
    case 'expected_wait':
      return new SidecarError(
        'QUEUE_TIMEOUT',
        `The request would wait about ${(retryAfterMs / 1000).toFixed(1)} s, longer than it may (queue.timeoutMs, or its deadline).`,
        { retryAfterMs },
      );
    case 'draining':
      return new SidecarError('DRAINING', 'The sidecar is shutting down.', { retryAfterMs: DRAINING_RETRY_AFTER_MS });
  }
}

/** By then another instance is likely to serve. */
const DRAINING_RETRY_AFTER_MS = 1_000;
