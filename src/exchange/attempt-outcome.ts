/** Classifies how an attempt ended, for metrics and for the sidecar's own replies. */
import { SidecarError } from '../platform/errors.ts';
import type { AttemptOutcome } from '../telemetry/events.ts';
import type { AttemptResult } from '../upstream/attempt-contract.ts';
import type { UpstreamFailure } from '../upstream/failure.ts';
import type { AbortReason, RequestAborted } from './request-lifetime.ts';
import { toStageError } from './stage.ts';

/**
 * The label of an attempt that brought a response.
 * @param isRateLimited the call was refused for its rate
 */
export function labelResponse(status: number, isRateLimited: boolean): AttemptOutcome {
  if (isRateLimited) return 'rate_limited';
  if (status === 401) return 'unauthorized';
  return status < 400 ? 'ok' : 'error_status';
}

/** Statuses that a gateway may send before it has checked the token, or instead of a 401. */
const SILENT_ABOUT_TOKEN = new Set([401, 403, 408, 429]);

/** Whether the upstream accepted the token of an attempt with this response. */
export function showsAcceptedToken(status: number): boolean {
  return status < 500 && !SILENT_ABOUT_TOKEN.has(status);
}

/**
 * The label of an attempt that brought no response.
 * @param aborted why the request was aborted, if it was
 */
export function labelFailure(failure: UpstreamFailure, aborted: AbortReason | undefined): AttemptOutcome {
  if (aborted?.kind === 'client-left') return 'client_left';
  if (failure.kind === 'unreachable' || failure.kind === 'timeout') return failure.kind;
  return failure.kind === 'aborted' && aborted?.kind === 'deadline' ? 'timeout' : 'reset';
}

/** Whether the sidecar gave the attempt up while the upstream had time to respond: deadline, time-out, client or drain. */
export function isCutShort({ kind }: UpstreamFailure): boolean {
  return kind === 'aborted' || kind === 'timeout';
}

/** Whether the failure speaks of trouble at the upstream, or on the way to it. */
export function isUpstreamFault({ kind }: UpstreamFailure): boolean {
  return kind !== 'aborted' && kind !== 'refused';
}

/** Whether the sidecar ended an attempt that brought no response: the client left, the drain cut it, it could not be sent. */
export function isLocalEnd(failure: UpstreamFailure, aborted: AbortReason | undefined): boolean {
  return failure.kind === 'refused' || (failure.kind === 'aborted' && aborted?.kind !== 'deadline');
}

/**
 * The outcome of an attempt.
 * @param headOutcome the label of its head; undefined when none has come
 * @param aborted why the request was aborted, if it was
 * @returns `isOwn`: the sidecar ended it
 */
export function classifyAttempt(
  result: AttemptResult,
  headOutcome: AttemptOutcome | undefined,
  aborted: AbortReason | undefined,
): { readonly outcome: AttemptOutcome; readonly isOwn: boolean } {
  if (result.kind === 'failed') {
    const label = labelFailure(result.failure, aborted);
    const isBeforeHead = headOutcome === undefined || label === 'client_left';
    const outcome = isBeforeHead ? label : labelCutResponse(headOutcome);
    return { outcome, isOwn: isLocalEnd(result.failure, aborted) };
  }
  if (result.fault === undefined) return { outcome: headOutcome ?? 'ok', isOwn: false };
  if (aborted?.kind === 'client-left') return { outcome: 'client_left', isOwn: true };
  return { outcome: labelCutResponse(headOutcome), isOwn: result.fault.cutBy === 'sidecar' };
}

/** A refusal is one by its head alone. */
function labelCutResponse(headOutcome: AttemptOutcome | undefined): AttemptOutcome {
  return headOutcome === 'rate_limited' || headOutcome === 'unauthorized' ? headOutcome : 'cut';
}

/** The sidecar's own reply for an attempt that brought no response. */
export function toSidecarError(failure: UpstreamFailure): SidecarError {
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

/**
 * The reply for an attempt that brought no response.
 * @param aborted the end of its request, if that ended the attempt
 * @param wasSent the call may have been carried out: its reply must not say that it was not
 */
export function toAttemptError(failure: UpstreamFailure, aborted: RequestAborted | undefined, wasSent: boolean): Error {
  if (aborted === undefined) return toSidecarError(failure);
  if (!wasSent || aborted.reason.kind !== 'draining') return toStageError('upstream', aborted);
  return new SidecarError('UPSTREAM_TIMEOUT', 'the sidecar shut down before the upstream responded');
}
