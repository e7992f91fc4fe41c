/** What an attempt's end is called: in metrics, and in the sidecar's own replies. */
import { SidecarError } from '../errors.ts';
import type { AttemptOutcome } from '../telemetry/events.ts';
import type { UpstreamFailure } from '../upstream/failure.ts';

/**
 * The label of an attempt that brought an answer.
 * @param isRateLimited the answer refused the call for its rate
 */
export function answerOutcome(status: number, isRateLimited: boolean): AttemptOutcome {
  if (isRateLimited) return 'rate_limited';
  if (status === 401) return 'unauthorized';
  return status < 400 ? 'ok' : 'error_status';
}

/** The label of an attempt that brought none. */
export function failureOutcome(failure: UpstreamFailure, isPastDeadline: boolean): AttemptOutcome {
  if (failure.kind === 'unreachable' || failure.kind === 'timeout') return failure.kind;
  return failure.kind === 'aborted' && isPastDeadline ? 'timeout' : 'reset';
}

/** Whether the upstream has no part in it that an attempt brought no answer: clients leave, and drains cut. */
export function isOwnEnd(failure: UpstreamFailure, isPastDeadline: boolean): boolean {
  return failure.kind === 'refused' || (failure.kind === 'aborted' && !isPastDeadline);
}

/** The sidecar's own reply for an attempt that brought no answer. */
export function faultOf(failure: UpstreamFailure): SidecarError {
  const options = { proxyStatus: failure.proxyStatus };
  switch (failure.kind) {
    case 'unreachable':
      return new SidecarError('UPSTREAM_UNREACHABLE', failure.detail, options);
    case 'timeout':
      return new SidecarError('UPSTREAM_TIMEOUT', failure.detail, options);
    case 'protocol':
      return new SidecarError('UPSTREAM_PROTOCOL_ERROR', failure.detail, options);
    case 'refused':
      return new SidecarError('BAD_REQUEST', failure.detail);
    case 'reset':
    case 'aborted':
      return new SidecarError('UPSTREAM_RESET', failure.detail, options);
  }
}
