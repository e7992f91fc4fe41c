/** Classifies how an attempt ended, for metrics and for the sidecar's own replies. */
import { SidecarError, type LocalReplyCode } from '../platform/errors.ts';
import type { AttemptOutcome, FaultCause } from '../telemetry/events.ts';
import type { CutReason } from '../throttle/throttle.ts';
import type { AttemptResult } from '../upstream/response-receiver.ts';
import type { FailureKind, UpstreamFailure } from '../upstream/failure.ts';
import type { ResponseHead } from '../upstream/upstream-response.ts';
import { describeInterception } from './interception.ts';
import { type AbortReason, type RequestAborted, toStageError } from './request-lifetime.ts';

/** @param isRateLimited the call was refused for its rate */
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

/** Why the sidecar gave the attempt up while the upstream might still have responded; undefined when it did not. */
export function cutReasonOf(result: AttemptResult, aborted: AbortReason | undefined): CutReason | undefined {
  const kind = result.kind === 'failed' ? result.failure.kind : undefined;
  if (kind === 'timeout' || (kind === 'aborted' && aborted?.kind === 'deadline')) return 'time-out';
  return kind === 'aborted' ? 'other' : undefined;
}

export interface AttemptEnd {
  readonly outcome: AttemptOutcome;
  /** The sidecar ended it: the client left, the drain cut it, or it could not be sent. */
  readonly isOwn: boolean;
  /** Undefined when the response is whole, was a refusal by its head, or when `isOwn`. */
  readonly cause: FaultCause | undefined;
  /** Why the response is missing or not whole, fit for a log; undefined when it is whole. */
  readonly detail: string | undefined;
  /** What helps. Default: not known here. */
  readonly advice?: string | undefined;
}

/**
 * @param aborted why the request was aborted, if it was
 * @param wasSent the request had begun on a connection
 */
export function classifyFailure(
  failure: UpstreamFailure,
  aborted: AbortReason | undefined,
  wasSent: boolean,
): AttemptEnd {
  const { kind } = failure;
  if (kind === 'aborted' && aborted?.kind === 'deadline') {
    const detail = `${wasSent ? 'no response came' : 'no connection was opened'} before the deadline passed (${aborted.limit})`;
    const cause = wasSent ? 'no_response_in_time' : 'connect_timeout';
    return { outcome: 'timeout', isOwn: false, cause, detail };
  }
  const { cause, detail, advice } = failure;
  const isOwn = kind === 'aborted' || kind === 'unsendable';
  if (aborted?.kind === 'client-left') return { outcome: 'client_left', isOwn, cause: undefined, detail };
  return { outcome: kind === 'unreachable' || kind === 'timeout' ? kind : 'reset', isOwn, cause, detail, advice };
}

/**
 * @param headOutcome the label of its head; undefined when none has come
 * @param aborted why the request was aborted, if it was
 * @param wasSent the request had begun on a connection
 */
export function classifyAttempt(
  result: AttemptResult,
  headOutcome: AttemptOutcome | undefined,
  aborted: AbortReason | undefined,
  wasSent: boolean,
): AttemptEnd {
  if (result.kind === 'failed') {
    const end = classifyFailure(result.failure, aborted, wasSent);
    return headOutcome === undefined || end.outcome === 'client_left' ? end : labelCutResponse(end, headOutcome);
  }
  const { fault, head } = result;
  if (fault === undefined && head.status < 400)
    return { outcome: headOutcome ?? 'ok', isOwn: false, cause: undefined, detail: undefined };
  if (fault === undefined) return classifyErrorResponse(head, headOutcome ?? 'error_status');
  const { cutBy, cause, detail } = fault;
  if (aborted?.kind === 'client-left') return { outcome: 'client_left', isOwn: true, cause: undefined, detail };
  return labelCutResponse({ outcome: 'cut', isOwn: cutBy === 'sidecar', cause, detail }, headOutcome);
}

function classifyErrorResponse(head: ResponseHead, outcome: AttemptOutcome): AttemptEnd {
  const detail = outcome === 'error_status' ? describeInterception(head) : undefined;
  return { outcome, isOwn: false, cause: detail === undefined ? undefined : 'intercepted', detail };
}

/** A refusal is one by its head alone. */
function labelCutResponse(end: AttemptEnd, headOutcome: AttemptOutcome | undefined): AttemptEnd {
  if (headOutcome !== 'rate_limited' && headOutcome !== 'unauthorized') return { ...end, outcome: 'cut' };
  return { ...end, outcome: headOutcome, cause: undefined };
}

const REPLY_CODES: Readonly<Record<FailureKind, LocalReplyCode>> = {
  unreachable: 'UPSTREAM_UNREACHABLE',
  timeout: 'UPSTREAM_TIMEOUT',
  protocol: 'UPSTREAM_PROTOCOL_ERROR',
  unsendable: 'BAD_REQUEST',
  unrecorded: 'UNKNOWN_CALLS_NOT_RECORDED',
  reset: 'UPSTREAM_RESET',
  aborted: 'UPSTREAM_RESET',
};

export function toSidecarError({ kind, detail, advice, proxyStatus }: UpstreamFailure): SidecarError {
  const message = advice === undefined ? detail : `${detail}; ${advice}`;
  return new SidecarError(REPLY_CODES[kind], message, kind === 'unsendable' ? {} : { proxyStatus });
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
