/** Gives the end of a request's lifeline the name of the stage in which it came: each has its own reply. */
import { SidecarError } from '../platform/errors.ts';
import type { TokenSource } from '../token/token.ts';
import { RequestAborted, type RequestLifetime } from './request-lifetime.ts';
import type { Stage, RequestTracer } from './request-tracer.ts';

/** Gives a deadline that passes in `wait` the name of the stage in which it passed. */
export async function waitInStage<T>(stage: Stage, wait: Promise<T>, watch?: RequestTracer): Promise<T> {
  watch?.startWait(stage);
  try {
    return await wait;
  } catch (error) {
    throw error instanceof RequestAborted ? toStageError(stage, error) : error;
  } finally {
    watch?.endWait();
  }
}

/**
 * Resolves when the source has a token that may be sent. Asked only while it has none: a wait, however short, lets the
 * request end unnoticed.
 * @throws SidecarError TOKEN_REJECTED, TOKEN_UNAVAILABLE; LifelineEnded (client-left)
 */
export async function awaitToken(tokens: TokenSource, lifeline: RequestLifetime, watch?: RequestTracer): Promise<void> {
  await waitInStage(
    'token',
    lifeline.withAbortSignal((signal) => tokens.waitForToken(signal)),
    watch,
  );
}

/** The error that a request ends with whose lifeline ended in this stage. */
export function toStageError(stage: Stage, reason: RequestAborted): Error {
  if (reason.reason.kind === 'failed') return reason.reason.error;
  if (reason.reason.kind === 'client-left') return reason;
  switch (stage) {
    case 'token':
      return new SidecarError('TOKEN_UNAVAILABLE', 'no access token was to be had before the deadline', {
        retryAfterMs: 1000,
      });
    case 'queue':
      return new SidecarError('QUEUE_TIMEOUT', 'the deadline passed in the queue', { retryAfterMs: 1000 });
    case 'body':
      return new SidecarError('REQUEST_TIMEOUT', 'the deadline passed before the request body was complete');
    case 'upstream':
      return new SidecarError('UPSTREAM_TIMEOUT', 'the upstream did not answer before the deadline');
  }
}

/** Asked anew after a wait, which the compiler does not know of. */
export function isAborted({ aborted }: RequestLifetime): boolean {
  return aborted !== undefined;
}

/** True for errors that end the request while its client is still connected. */
export function isClientFacing(thrown: unknown): boolean {
  return thrown instanceof SidecarError || (thrown instanceof RequestAborted && thrown.reason.kind !== 'client-left');
}
