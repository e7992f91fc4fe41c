/** Gives the end of a request's lifeline the name of the stage in which it came: each has its own reply. */
import { SidecarError } from '../platform/errors.ts';
import type { TokenSource } from '../token/token.ts';
import { LifelineEnded, type Lifeline } from './lifeline.ts';
import type { Stage, Watch } from './watch.ts';

/** Gives a deadline that passes in `wait` the name of the stage in which it passed. */
export async function inStage<T>(stage: Stage, wait: Promise<T>, watch?: Watch): Promise<T> {
  watch?.waitBegins(stage);
  try {
    return await wait;
  } catch (error) {
    throw error instanceof LifelineEnded ? nameEnd(stage, error) : error;
  } finally {
    watch?.waitEnds();
  }
}

/**
 * Resolves when the source has a token that may be sent. Asked only while it has none: a wait, however short, lets the
 * request end unnoticed.
 * @throws SidecarError TOKEN_REJECTED, TOKEN_UNAVAILABLE; LifelineEnded (client-left)
 */
export async function awaitToken(tokens: TokenSource, lifeline: Lifeline, watch?: Watch): Promise<void> {
  await inStage(
    'token',
    lifeline.during((signal) => tokens.usable(signal)),
    watch,
  );
}

/** The error that a request ends with whose lifeline ended in this stage. */
export function nameEnd(stage: Stage, reason: LifelineEnded): Error {
  if (reason.end.kind === 'failed') return reason.end.error;
  if (reason.end.kind === 'client-left') return reason;
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
export function isOver({ ended }: Lifeline): boolean {
  return ended !== undefined;
}

/** True for errors that end the request while its client is still connected. */
export function isReason(thrown: unknown): boolean {
  return thrown instanceof SidecarError || (thrown instanceof LifelineEnded && thrown.end.kind !== 'client-left');
}
