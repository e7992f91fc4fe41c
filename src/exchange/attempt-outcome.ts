/** What an attempt's end is called: in metrics, and in the sidecar's own replies. */
import { SidecarError } from '../platform/errors.ts';
import type { AttemptOutcome } from '../telemetry/events.ts';
import type { AttemptResult } from '../upstream/attempt-contract.ts';
import type { UpstreamFailure } from '../upstream/failure.ts';
import type { AbortReason } from './request-lifetime.ts';

/**
 * The label of an attempt that brought an answer.
 * @param isRateLimited the answer refused the call for its rate
 */
export function labelResponse(status: number, isRateLimited: boolean): AttemptOutcome {
  if (isRateLimited) return 'rate_limited';
  if (status === 401) return 'unauthorized';
  return status < 400 ? 'ok' : 'error_status';
}

/**
 * The label of an attempt that brought none.
 * @param why how the request itself has ended, if it has
 */
export function labelFailure(failure: UpstreamFailure, why: AbortReason | undefined): AttemptOutcome {
  if (why?.kind === 'client-left') return 'client_left';
  if (failure.kind === 'unreachable' || failure.kind === 'timeout') return failure.kind;
  return failure.kind === 'aborted' && why?.kind === 'deadline' ? 'timeout' : 'reset';
}

/** Whether the upstream has no part in it that an attempt brought no answer: clients leave, and drains cut. */
export function isLocalEnd(failure: UpstreamFailure, why: AbortReason | undefined): boolean {
  return failure.kind === 'refused' || (failure.kind === 'aborted' && why?.kind !== 'deadline');
}

/**
 * The outcome of an attempt, reported once.
 * @param headOutcome the label of its head; undefined when none has come
 * @param why how the request itself has ended, if it has
 */
export function classifyAttempt(
  end: AttemptResult,
  headOutcome: AttemptOutcome | undefined,
  why: AbortReason | undefined,
): ClassifiedAttempt {
  if (end.kind === 'failed') {
    const isOwn = isLocalEnd(end.failure, why);
    const outcome = labelFailure(end.failure, why);
    return {
      outcome: headOutcome === undefined || outcome === 'client_left' ? outcome : labelCutResponse(headOutcome),
      isOwn,
    };
  }
  const fault = end.kind === 'held' ? end.response.fault : end.fault;
  if (fault === undefined) return { outcome: headOutcome ?? 'ok', isOwn: false };
  const hasLeft = why?.kind === 'client-left';
  return { outcome: hasLeft ? 'client_left' : labelCutResponse(headOutcome), isOwn: hasLeft || isCutBySidecar(end) };
}

export interface ClassifiedAttempt {
  readonly outcome: AttemptOutcome;
  /** The upstream has no part in it. */
  readonly isOwn: boolean;
}

/** A refusal is one by its head alone. */
function labelCutResponse(headOutcome: AttemptOutcome | undefined): AttemptOutcome {
  return headOutcome === 'rate_limited' || headOutcome === 'unauthorized' ? headOutcome : 'cut';
}

function isCutBySidecar(end: AttemptResult): boolean {
  return end.kind === 'relayed' && end.fault?.cutBy === 'sidecar';
}

/** The sidecar's own reply for an attempt that brought no answer. */
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
