/** Gives the end of a request's lifetime the error of the stage in which it came: each stage has its own local reply. */
import { SidecarError } from '../platform/errors.ts';
import type { TokenCaller, TokenSource } from '../token/token.ts';
import { RequestAborted, type RequestLifetime } from './request-lifetime.ts';
import type { RequestTracer, Stage } from './request-tracer.ts';

/** Awaits `wait`; an abort of the request becomes the error of the stage. */
export async function waitInStage<T>(stage: Stage, wait: Promise<T>, tracer?: RequestTracer): Promise<T> {
  tracer?.startWait(stage);
  try {
    return await wait;
  } catch (error) {
    throw error instanceof RequestAborted ? toStageError(stage, error) : error;
  } finally {
    tracer?.endWait();
  }
}

/**
 * Resolves when the source has a token that may be sent. To be called only while it has none.
 * @throws SidecarError TOKEN_REJECTED, TOKEN_UNAVAILABLE; RequestAborted (client-left)
 */
export async function awaitToken(
  tokens: TokenSource,
  lifetime: RequestLifetime,
  tracer?: RequestTracer,
  caller: TokenCaller = lifetime,
): Promise<void> {
  await waitInStage(
    'token',
    lifetime.withAbortSignal((signal) => tokens.waitForToken(signal, caller)),
    tracer,
  );
}

/** @throws the error of the stage, when the request has been aborted */
export function throwIfAborted({ aborted }: RequestLifetime, stage: Stage): void {
  if (aborted !== undefined) throw toStageError(stage, aborted);
}

/** The error of a request that was aborted in this stage. */
export function toStageError(stage: Stage, aborted: RequestAborted): Error {
  const { reason } = aborted;
  if (reason.kind === 'client-left') return aborted;
  if (reason.kind !== 'deadline') return reason.error;
  const deadline = `the deadline passed (${reason.limit})`;
  switch (stage) {
    case 'token':
      return new SidecarError('TOKEN_UNAVAILABLE', `${deadline} before an access token was received`);
    case 'queue':
      return new SidecarError('QUEUE_TIMEOUT', `${deadline} in the queue`);
    case 'body':
      return new SidecarError('REQUEST_TIMEOUT', `${deadline} before the request body was complete`);
    case 'upstream':
      return new SidecarError('UPSTREAM_TIMEOUT', `${deadline} before the upstream responded`);
  }
}

/** Whether the client is still connected and gets a reply. */
export function isClientFacing(thrown: unknown): boolean {
  return thrown instanceof SidecarError || (thrown instanceof RequestAborted && thrown.reason.kind !== 'client-left');
}
