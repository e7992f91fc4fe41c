/** The errors with which the queue rejects requests, with their texts for the client. */
import { SidecarError } from '../../platform/errors.ts';
import type { QueueRejectionReason } from '../../telemetry/events.ts';

/** Why the queue rejects a request; a client that left needs no response. */
export type RejectionReason = Exclude<QueueRejectionReason, 'client_left'>;

const LIMITS =
  'The limit is queue.timeoutMs (SIDECAR_QUEUE_TIMEOUT_MS), or the deadline: request.deadlineMs (SIDECAR_DEADLINE_MS), x-sidecar-timeout-ms.';

/**
 * @param waitMs expected time until the present queue is served, milliseconds: becomes `Retry-After`
 * @param reserveMs part of the deadline that is kept for the upstream
 * @param limit the declared limit that is used up, for `quota`
 */
export function createRejectionError(
  reason: RejectionReason,
  waitMs: number,
  reserveMs: number,
  limit = '',
): SidecarError {
  const retryAfterMs = Math.max(0, waitMs);
  switch (reason) {
    case 'full':
      return new SidecarError('QUEUE_FULL', 'The queue is full: queue.max (SIDECAR_QUEUE_MAX).', { retryAfterMs });
    case 'timeout':
      return new SidecarError(
        'QUEUE_TIMEOUT',
        `The request waited as long as it may${describeReserve(reserveMs)} and had no turn. ${LIMITS}`,
        { retryAfterMs },
      );
    case 'expected_wait':
      return new SidecarError(
        'QUEUE_TIMEOUT',
        `The request would wait about ${formatSeconds(retryAfterMs)}, longer than it may${describeReserve(reserveMs)}. ${LIMITS}`,
        { retryAfterMs },
      );
    case 'quota':
      return new SidecarError(
        'QUOTA_EXHAUSTED',
        `The limit ${limit} (throttle.limits) is used up: the request may go in about ${formatSeconds(retryAfterMs)}, which is longer than it may wait${describeReserve(reserveMs)}.`,
        { retryAfterMs },
      );
    case 'draining':
      return new SidecarError('DRAINING', 'The sidecar is shutting down.');
  }
}

function describeReserve(reserveMs: number): string {
  return reserveMs > 0 ? `, with ${formatSeconds(reserveMs)} kept for the upstream's response` : '';
}

function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
