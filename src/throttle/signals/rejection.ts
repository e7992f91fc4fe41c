/** The faults with which the queue turns requests away, in words for the client. */
import { SidecarError } from '../../platform/errors.ts';
import type { QueueRejectionReason } from '../../telemetry/events.ts';

/** Why the queue itself refuses; a client that left needs no answer. */
export type RejectionReason = Exclude<QueueRejectionReason, 'client_left'>;

/** @param waitMs when those that wait now will have been served, milliseconds: becomes `Retry-After` */
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

/** Another instance is likely to answer by then. */
const DRAINING_RETRY_AFTER_MS = 1_000;
