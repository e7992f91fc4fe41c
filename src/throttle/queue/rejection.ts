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
  const reserve = reserveMs > 0 ? `, with ${formatSeconds(reserveMs)} kept for the upstream's response` : '';
  const reject = (code: SidecarError['code'], message: string) => new SidecarError(code, message, { retryAfterMs });
  switch (reason) {
    case 'full':
      return reject('QUEUE_FULL', 'The queue is full: queue.max (SIDECAR_QUEUE_MAX).');
    case 'timeout':
      return reject('QUEUE_TIMEOUT', `The request waited as long as it may${reserve} and had no turn. ${LIMITS}`);
    case 'expected_wait':
      return reject(
        'QUEUE_TIMEOUT',
        `The request would wait about ${formatSeconds(retryAfterMs)}, longer than it may${reserve}. ${LIMITS}`,
      );
    case 'quota':
      return reject(
        'QUOTA_EXHAUSTED',
        `The limit ${limit} (throttle.limits) is used up: the request may go in about ${formatSeconds(retryAfterMs)}, which is longer than it may wait${reserve}.`,
      );
    case 'draining':
      return new SidecarError('DRAINING', 'The sidecar is shutting down.');
  }
}

function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
